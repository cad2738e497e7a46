"""Tunnels over real gRPC, between the SDK's generated stub and a socket."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import pytest
from grpclib.const import Cardinality, Status
from tests.support.machine.served import CHANNELS, _channel, refused
from tests.support.waiting import pass_time

from cogwork.config.schema.network import TunnelEndpoint
from cogwork.resource.sdk import clean_import as sdk
from cogwork.robot.services.tunnel import MAX_CHUNK_SIZE, list_tunnels, serve_tunnel
from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402
from viam.gen.robot.v1.robot_grpc import RobotServiceStub  # noqa: E402

DEADLINE = 30.0

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@contextlib.asynccontextmanager
async def serve_tunnels(*endpoints: TunnelEndpoint, by: str = "ours") -> AsyncIterator[Any]:
    """Serve tunnels; grpclib drops undelivered data when a call ends before its client, so it
    is only good for clients that end first."""
    ended: list[asyncio.Task[Any]] = []

    async def handle(stream: Stream) -> None:
        task = asyncio.current_task()
        assert task is not None
        ended.append(task)
        await serve_tunnel(stream, endpoints)

    path = "/viam.robot.v1.RobotService/Tunnel"
    method = Method(
        path, Cardinality.STREAM_STREAM, handle, robot.TunnelRequest, robot.TunnelResponse
    )
    table = HandlerTable()
    table.add("viam.robot.v1.RobotService", lambda: [method])
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with asyncio.timeout(DEADLINE), _channel(port, by) as channel:
            yield RobotServiceStub(channel)
            # No call may be left running after the test.
            await asyncio.wait(ended)
    finally:
        await server.stop(None)


@contextlib.asynccontextmanager
async def listen_once(serve: Serve, host: str = "127.0.0.1") -> AsyncIterator[TunnelEndpoint]:
    """Listen for one connection of a tunnel."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def handle_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
            done.set_result(None)
        except Exception as error:
            done.set_exception(error)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    server = await asyncio.start_server(handle_connection, host, 0)
    async with server:
        yield endpoint(server.sockets[0].getsockname()[1])
        async with asyncio.timeout(DEADLINE):
            await done


def endpoint(port: int, timeout: float = 5.0) -> TunnelEndpoint:
    return TunnelEndpoint.model_validate({"port": port, "connection_timeout": f"{timeout:g}s"})


def request(port: int, data: bytes = b"") -> robot.TunnelRequest:
    return robot.TunnelRequest(destination_port=port, data=data)


async def read_rest(stream: Any) -> bytes:
    return b"".join([message.data async for message in stream])


async def answer_in_upper_case(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer after everything was received."""
    writer.write((await reader.read()).upper())
    await writer.drain()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello")
    await writer.drain()


@pytest.mark.parametrize("by", CHANNELS)
async def test_client_that_ends_first_is_still_answered(by: str) -> None:
    async with (
        listen_once(answer_in_upper_case) as to,
        serve_tunnels(to, by=by) as stub,
        stub.Tunnel.open() as stream,
    ):
        await stream.send_message(request(to.port, b"with the port "))
        await stream.send_message(request(0, b"and after it"), end=True)
        assert await read_rest(stream) == b"WITH THE PORT AND AFTER IT"


async def test_call_ends_when_the_port_closes() -> None:
    async with listen_once(greet) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        assert await read_rest(stream) == b"hello"


async def test_half_closed_port_still_receives_data() -> None:
    received = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"go on")
        writer.write_eof()
        received.extend(await reader.read())

    sent = [os.urandom(MAX_CHUNK_SIZE) for _ in range(20)]
    async with listen_once(listen) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        assert (await stream.recv_message()).data == b"go on"
        for data in sent:
            await stream.send_message(request(0, data))
        await stream.end()
        assert await read_rest(stream) == b""
    assert received == b"".join(sent)


async def test_half_closed_port_receives_data_after_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cogwork.robot.services.tunnel._DRAIN_START_TIMEOUT", 0.5)
    received = bytearray()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"go on")
        writer.write_eof()
        received.extend(await reader.read())

    async with listen_once(listen) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        assert (await stream.recv_message()).data == b"go on"
        for pause, data in ((0.0, b"one "), (0.7, b"two "), (0.7, b"three")):
            # The pause itself is tested; there is no event to wait for.
            await pass_time(pause)
            await stream.send_message(request(0, data))
        await stream.end()
        assert await read_rest(stream) == b""
    assert received == b"one two three"


async def test_data_for_a_closed_port_is_an_error() -> None:
    async def leave(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"good bye")

    async with listen_once(leave) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        assert (await stream.recv_message()).data == b"good bye"
        with refused() as error:
            # The first message is lost, so the second one is known not to arrive.
            for _ in range(2):
                await stream.send_message(request(0, b"wait"))
                await pass_time(0.2)
            await read_rest(stream)
    assert error.status is Status.UNAVAILABLE
    assert error.words == f"port {to.port} closed before it received all data"


@pytest.mark.parametrize("by", CHANNELS)
async def test_data_flows_both_ways_concurrently(by: str) -> None:
    sent, replied = os.urandom(10 * MAX_CHUNK_SIZE + 7), os.urandom(10 * MAX_CHUNK_SIZE + 3)
    received = bytearray()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def reply() -> None:
            writer.write(replied)
            await writer.drain()

        _, data = await asyncio.gather(reply(), reader.read())
        received.extend(data)

    async with (
        listen_once(converse) as to,
        serve_tunnels(to, by=by) as stub,
        stub.Tunnel.open() as stream,
    ):
        await stream.send_message(request(to.port))

        async def send() -> None:
            for at in range(0, len(sent), MAX_CHUNK_SIZE):
                await stream.send_message(request(0, sent[at : at + MAX_CHUNK_SIZE]))
            await stream.end()

        _, answer = await asyncio.gather(send(), read_rest(stream))
    assert answer == replied
    assert received == sent


async def test_message_size_is_limited() -> None:
    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(8 * MAX_CHUNK_SIZE))
        await writer.drain()

    async with listen_once(flood) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        sizes = [len(message.data) async for message in stream]
    assert sum(sizes) == 8 * MAX_CHUNK_SIZE
    assert max(sizes) <= MAX_CHUNK_SIZE


async def test_slow_client_applies_back_pressure_to_the_port() -> None:
    """It can write no more than sockets and flow control hold."""
    written = 0
    stuck = asyncio.Event()

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.transport.set_write_buffer_limits(0)
        for _ in range(1024):
            writer.write(bytes(MAX_CHUNK_SIZE))
            try:
                await asyncio.wait_for(writer.drain(), 0.5)
            except TimeoutError:
                stuck.set()
                await writer.drain()
            written += MAX_CHUNK_SIZE

    async with listen_once(flood) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        await asyncio.wait_for(stuck.wait(), DEADLINE)
        assert written < 64 * MAX_CHUNK_SIZE
        assert len(await read_rest(stream)) == 1024 * MAX_CHUNK_SIZE


async def test_slow_port_applies_back_pressure_to_the_client() -> None:
    resume, received = asyncio.Event(), 0

    async def read_later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal received
        await resume.wait()
        while data := await reader.read(MAX_CHUNK_SIZE):
            received += len(data)

    async with (
        listen_once(read_later) as to,
        serve_tunnels(to) as stub,
        stub.Tunnel.open() as stream,
    ):
        await stream.send_message(request(to.port))
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 1024 * MAX_CHUNK_SIZE:
                async with asyncio.timeout(0.5):
                    await stream.send_message(request(0, bytes(MAX_CHUNK_SIZE)))
                sent += MAX_CHUNK_SIZE
        assert sent < 128 * MAX_CHUNK_SIZE
        resume.set()
        await stream.cancel()
    assert received <= sent + MAX_CHUNK_SIZE


async def test_cancelled_client_closes_the_connection() -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"here")
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""

    async with listen_once(wait) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port))
        assert (await stream.recv_message()).data == b"here"
        await stream.cancel()


async def test_ipv6_only_listener_is_reached() -> None:
    async with (
        listen_once(greet, "::1") as to,
        serve_tunnels(to) as stub,
        stub.Tunnel.open() as stream,
    ):
        await stream.send_message(request(to.port))
        assert await read_rest(stream) == b"hello"


@pytest.mark.parametrize(
    ("ports", "listed_ports"),
    [((), "has none"), ((22, 5900), "has 22, 5900")],
    ids=["none", "others"],
)
async def test_unlisted_port_is_refused(ports: Sequence[int], listed_ports: str) -> None:
    async with serve_tunnels(*map(endpoint, ports)) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(8022))
        with refused() as error:
            await stream.recv_message()
    assert error.status is Status.NOT_FOUND
    assert error.words == (
        f"tunnel not available at port 8022: network.traffic_tunnel_endpoints {listed_ports}"
    )


async def test_port_without_listener_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        async with serve_tunnels(endpoint(port)) as stub, stub.Tunnel.open() as stream:
            await stream.send_message(request(port))
            with refused() as error:
                await stream.recv_message()
    assert error.status is Status.UNAVAILABLE
    assert f"port {port} of the machine cannot be reached" in error.words


async def test_unresponsive_port_times_out() -> None:
    """A listener with a full queue neither accepts nor refuses connections."""
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        async with serve_tunnels(endpoint(port, 0.2)) as stub, stub.Tunnel.open() as stream:
            await stream.send_message(request(port))
            with refused() as error:
                await stream.recv_message()
    assert error.status is Status.UNAVAILABLE
    assert error.words == f"port {port} of the machine did not answer within 0.2 s"


async def test_broken_connection_is_an_error() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0"
        )

    async with listen_once(reset) as to, serve_tunnels(to) as stub, stub.Tunnel.open() as stream:
        await stream.send_message(request(to.port, b"x"))
        with refused() as error:
            await stream.recv_message()
    assert error.status is Status.UNAVAILABLE
    assert f"the connection to port {to.port} broke: " in error.words


async def test_client_without_a_port_is_refused() -> None:
    async with serve_tunnels(endpoint(22)) as stub, stub.Tunnel.open() as stream:
        await stream.send_request()
        await stream.end()
        with refused() as error:
            await stream.recv_message()
    assert error.status is Status.INVALID_ARGUMENT


def test_tunnels_are_listed_with_their_timeouts() -> None:
    listed = list_tunnels([endpoint(22, 1.5), endpoint(5900)])
    assert [
        (each.port, each.connection_timeout.ToTimedelta().total_seconds())
        for each in listed.tunnels
    ] == [
        (22, 1.5),
        (5900, 5.0),
    ]
