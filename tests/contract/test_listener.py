"""One public port serves each client the protocol it speaks, and no client blocks others."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import http.client as http_client
import logging
import resource
import socket
import struct
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality
from grpclib.health.v1.health_grpc import HealthStub
from grpclib.health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse
from grpclib.reflection.v1 import reflection_grpc as reflection_v1
from grpclib.reflection.v1 import reflection_pb2 as reflection_v1_messages
from grpclib.reflection.v1alpha import reflection_grpc as reflection_v1alpha
from grpclib.reflection.v1alpha import reflection_pb2 as reflection_v1alpha_messages
from hyperframe.frame import SettingsFrame
from tests.support.network import http2_frames as frames
from tests.support.waiting import pass_time, wait_until

from cogwork.front import burst as burst_module
from cogwork.front import relay as relay_module
from cogwork.front import socket_relay
from cogwork.front.connections import ConnectionLimits
from cogwork.front.listener_limits import ListenerLimits
from cogwork.front.peer_name import parse_socket_name
from cogwork.front.public_listener import PublicListener
from cogwork.net import listen_sockets as sockets_module
from cogwork.net.address import Address
from cogwork.net.listen_sockets import CannotListen
from cogwork.net.peer import Peer
from cogwork.serving import listeners as listeners_module
from cogwork.serving import public_port as port_module
from cogwork.serving.front import InProcessFront, ServerSockets
from cogwork.serving.listen_addresses import ListenAddresses
from cogwork.serving.listeners import Listeners
from cogwork.serving.public_port import PublicPort
from cogwork.serving.socket_directory import private_directory
from cogwork.wire.table.grpc_services import add_standard_services
from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports import uvicorn_server
from cogwork.wire.transports.asgi import Application
from cogwork.wire.transports.grpc import grpc_server
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE
from cogwork.wire.transports.http1 import Http1Server
from cogwork.wire.transports.running_calls import RunningCalls

pytestmark = pytest.mark.both_loops

SERVICE = "test.Wire"
MIB = 1 << 20
DEADLINE = 60.0
PATIENT = ListenerLimits(peek_timeout=DEADLINE)


def peer_of(name: str) -> Peer:
    return parse_socket_name(name)


@dataclass
class Site:
    """A listener before a gRPC server and an HTTP application, with counters of their calls."""

    served: HandlerTable = field(init=False)
    front: PublicListener = field(init=False)
    public: PublicPort = field(init=False)
    sent: int = 0
    """Megabytes that floods could hand over."""
    held: int = 0
    """Calls that wait until they are cancelled."""
    running: RunningCalls = field(default_factory=RunningCalls)
    work: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when calls end that go on although they are cancelled."""

    @property
    def port(self) -> int:
        return self.public.addresses[0][1]

    def table(self) -> HandlerTable:
        table = self.served = HandlerTable()
        methods = [
            Method(f"/{SERVICE}/Peer", Cardinality.UNARY_UNARY, self._peer, StringValue),
            Method(f"/{SERVICE}/Certificate", Cardinality.UNARY_UNARY, self._certificate),
            Method(f"/{SERVICE}/Echo", Cardinality.UNARY_UNARY, self._echo),
            Method(f"/{SERVICE}/Flood", Cardinality.UNARY_STREAM, self._flood, StringValue),
            Method(f"/{SERVICE}/Hold", Cardinality.UNARY_UNARY, self._hold),
            Method(f"/{SERVICE}/Work", Cardinality.UNARY_UNARY, self._go_on),
        ]
        table.add(SERVICE, lambda: methods)
        add_standard_services(table)
        return table

    async def application(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/hold":
            await self._wait_until_cancelled()
        body = f"{scope['method']} {scope['path']} {scope['client'][1]}".encode()
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    async def _peer(self, stream: Stream) -> None:
        await stream.send_message(StringValue(value=stream.peer))

    async def _certificate(self, stream: Stream) -> None:
        await stream.send_message(stream.client.certificate.encode())

    async def _echo(self, stream: Stream) -> None:
        await stream.send_message(await stream.recv_message())

    async def _flood(self, stream: Stream) -> None:
        for _ in range(int(stream.request.value)):
            await stream.send_message(bytes(MIB))
            self.sent += 1

    async def _hold(self, _: Stream) -> None:
        await self._wait_until_cancelled()

    async def _go_on(self, _: Stream) -> None:
        try:
            await self._wait_until_cancelled()
        finally:
            await self.work.wait()

    async def _wait_until_cancelled(self) -> None:
        self.held += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.held -= 1


@contextlib.asynccontextmanager
async def serve_site(
    limits: ListenerLimits | None = None, host: str = "127.0.0.1", http: Http1Server | None = None
) -> AsyncIterator[Site]:
    site = Site()
    with private_directory() as directory:
        http = http or Http1Server(lambda: site.application)
        http.listen(directory / "http")
        front = InProcessFront(lambda *_: None, site.running.count_cancelled, limits)
        front.use_sockets(ServerSockets(directory / "grpc", directory / "http"))
        site.front, site.public = front.listener, PublicPort(front)
        server = grpc_server(site.table(), peer_of, running=site.running)
        server.add_insecure_port(f"unix:{directory / 'grpc'}")
        await server.start()
        await site.public.listen(host, 0)
        try:
            async with asyncio.timeout(50):
                yield site
        finally:
            stopping = asyncio.ensure_future(server.stop(None))
            await site.public.aclose()
            await http.aclose()
            await stopping
        assert site.front.connection_count == 0
        assert {path.name for path in directory.iterdir()} <= {"grpc", "http"}


@contextlib.asynccontextmanager
async def connect_grpclib(port: int, host: str = "127.0.0.1") -> AsyncIterator[Channel]:
    channel = Channel(host, port)
    try:
        yield channel
    finally:
        channel.close()


def connect_grpc(port: int, host: str = "127.0.0.1") -> grpc.aio.Channel:
    options = [
        ("grpc.max_receive_message_length", -1),
        ("grpc.max_send_message_length", -1),
        ("grpc.use_local_subchannel_pool", 1),
    ]
    return grpc.aio.insecure_channel(f"{host}:{port}", options=options)


async def call_echo(channel: grpc.aio.Channel, body: bytes, method: str = "Echo") -> bytes:
    call: Any = channel.unary_unary(f"/{SERVICE}/{method}")
    reply: bytes = await call(body, timeout=DEADLINE, wait_for_ready=True)
    return reply


async def read_peer(channel: Channel) -> str:
    call = UnaryUnaryMethod(channel, f"/{SERVICE}/Peer", StringValue, StringValue)
    reply: str = (await call(StringValue(), timeout=DEADLINE)).value
    return reply


def http_get(port: int, path: str, host: str = "127.0.0.1") -> tuple[int, str]:
    connection = http_client.HTTPConnection(host, port, timeout=DEADLINE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@contextlib.contextmanager
def connect(port: int, host: str = "127.0.0.1") -> Iterator[socket.socket]:
    with socket.create_connection((host, port), timeout=DEADLINE) as connection:
        connection.setblocking(False)
        yield connection


async def send(connection: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(connection, data)


async def read_to_end(connection: socket.socket) -> bytes:
    """Return everything until the other side closes."""
    read_until = bytearray()
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        while data := await asyncio.get_running_loop().sock_recv(connection, MIB):
            read_until += data
    return bytes(read_until)


async def read_until(connection: socket.socket, word: bytes) -> bytes:
    data = b""
    while word not in data:
        more = await asyncio.get_running_loop().sock_recv(connection, 65536)
        assert more, f"closed after {data!r}"
        data += more
    return data


def reset_connection(connection: socket.socket) -> None:
    """Close the connection with a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


GET = b"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def list_reflected_services(channel: Channel, version: str) -> list[str]:
    if version == "v1":
        v1 = reflection_v1.ServerReflectionStub(channel)
        [reply] = await v1.ServerReflectionInfo(
            [reflection_v1_messages.ServerReflectionRequest(list_services="")]
        )
        return [each.name for each in reply.list_services_response.service]
    v1alpha = reflection_v1alpha.ServerReflectionStub(channel)
    [old_reply] = await v1alpha.ServerReflectionInfo(
        [reflection_v1alpha_messages.ServerReflectionRequest(list_services="")]
    )
    return [each.name for each in old_reply.list_services_response.service]


async def test_one_port_serves_all_protocols_at_once() -> None:
    async def grpc_core(port: int) -> None:
        async with connect_grpc(port) as channel:
            for size in (0, 1, 70_000):
                assert await call_echo(channel, bytes(size)) == bytes(size)

    async def grpclib(port: int) -> None:
        async with connect_grpclib(port) as channel:
            assert (await read_peer(channel)).startswith("ipv4:127.0.0.1:")

    async def http(port: int) -> None:
        status, body = await asyncio.to_thread(http_get, port, "/page")
        assert (status, body.split()[:2]) == (200, ["GET", "/page"])

    async def reflection(port: int) -> None:
        async with connect_grpclib(port) as channel:
            for version in ("v1", "v1alpha"):
                assert SERVICE in await list_reflected_services(channel, version)

    async def health(port: int) -> None:
        async with connect_grpclib(port) as channel:
            reply = await HealthStub(channel).Check(HealthCheckRequest(service=SERVICE))
            assert reply.status == HealthCheckResponse.SERVING

    async with serve_site() as site:
        clients: list[Callable[[int], Awaitable[None]]] = [
            grpc_core,
            grpclib,
            http,
            reflection,
            health,
        ]
        await asyncio.gather(*(client(site.port) for client in clients * 6))
        await wait_until(lambda: site.front.connection_count == 0)


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
async def test_each_client_has_its_own_peer_address(host: str, shown: str) -> None:
    async with serve_site(host=host) as site:
        family = "ipv6" if ":" in host else "ipv4"
        async with (
            connect_grpclib(site.port, host) as one,
            connect_grpclib(site.port, host) as other,
        ):
            for channel in (one, other, one):
                peer = await read_peer(channel)
                transport = (await channel.__connect__()).processor.connection._transport
                own_port = transport.get_extra_info("sockname")[1]
                assert peer == f"{family}:{shown}:{own_port}"
        with connect(site.port, host) as connection:
            await send(connection, GET)
            assert str(connection.getsockname()[1]).encode() in await read_to_end(connection)


async def test_grpc_only_address_reports_peer_addresses() -> None:
    """Without a listener in between, peer names of grpc's core are converted to ours."""
    site = Site()
    server = grpc_server(site.table(), peer_of)
    ports = {host: server.add_insecure_port(f"{host}:0") for host in ("127.0.0.1", "[::1]")}
    await server.start()
    async with (
        connect_grpclib(ports["127.0.0.1"]) as four,
        connect_grpclib(ports["[::1]"], "::1") as six,
    ):
        assert (await read_peer(four)).startswith("ipv4:127.0.0.1:")
        assert (await read_peer(six)).startswith("ipv6:[::1]:")
    await server.stop(None)


@pytest.mark.parametrize("word", [b"", b"P", b"PR"])
async def test_silent_connection_is_closed(word: bytes) -> None:
    async with serve_site(ListenerLimits(peek_timeout=0.2)) as site:
        with connect(site.port) as connection:
            await send(connection, word)
            started = asyncio.get_running_loop().time()
            assert await read_to_end(connection) == b""
            assert 0.1 < asyncio.get_running_loop().time() - started < 5
        await wait_until(lambda: site.front.connection_count == 0)


@pytest.mark.parametrize(
    "parts",
    [
        (b"P", b"R", b"I * HTTP/2.0\r\n\r\nSM", b"\r\n\r\n", frames.settings()),
        (b"PR", b"I", b" * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frames.settings()),
        (frames.PREFACE[:3], frames.PREFACE[3:], frames.settings()),
    ],
)
async def test_http2_preface_may_arrive_in_parts(parts: tuple[bytes, ...]) -> None:
    async with serve_site() as site:
        with connect(site.port) as connection:
            for part in parts:
                await send(connection, part)
                await pass_time(0.05)  # the pause is what is tested
            await send(connection, frames.call(1, f"/{SERVICE}/Echo", b"hello"))
            assert b"hello" in await read_until(connection, b"grpc-status")


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "PROPFIND", "P", "PR", "GET"])
async def test_http1_method_may_arrive_in_parts(method: str) -> None:
    async with serve_site() as site:
        with connect(site.port) as connection:
            for letter in method.encode():
                await send(connection, bytes([letter]))
                await pass_time(0.03)  # the pause is what is tested
            await send(connection, b" /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert f"{method} /a ".encode() in await read_to_end(connection)


async def test_oldest_silent_connection_is_closed_for_a_new_one() -> None:
    async with serve_site(ListenerLimits(ConnectionLimits(4, 4), peek_timeout=DEADLINE)) as site:
        with contextlib.ExitStack() as stack:
            silent = [stack.enter_context(connect(site.port)) for _ in range(4)]
            await wait_until(lambda: site.front.connection_count == 4)
            assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
            assert await read_to_end(silent[0]) == b""
            async with connect_grpc(site.port) as channel:
                assert await call_echo(channel, b"x") == b"x"
            # Later ones can still send a request.
            await send(silent[-1], GET)
            assert (await read_to_end(silent[-1])).startswith(b"HTTP/1.1 200")


async def test_connections_beyond_the_limit_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    async with serve_site(ListenerLimits(ConnectionLimits(3, 3), peek_timeout=DEADLINE)) as site:
        with contextlib.ExitStack() as stack:
            taken = [stack.enter_context(connect(site.port)) for _ in range(3)]
            for connection in taken:
                await send(connection, frames.opening())
                await send(connection, frames.call(1, f"/{SERVICE}/Hold"))
            await wait_until(lambda: site.held == 3)
            for _ in range(4):
                with connect(site.port) as newcomer:
                    assert await read_to_end(newcomer) == b""
            assert ": too many are open, 3 in total (1 refused so far)" in caplog.text
            assert caplog.text.count("refused a connection") == 3, "1, 2 and 4"
            taken[0].close()
            await wait_until(lambda: site.front.connection_count == 2)
            assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
            await send(taken[1], frames.call(3, f"/{SERVICE}/Echo", b"still"))
            assert b"still" in await read_until(taken[1], b"grpc-status")


async def test_half_closed_client_gets_its_answer() -> None:
    async with serve_site() as site:
        with connect(site.port) as connection:
            await send(connection, GET)
            connection.shutdown(socket.SHUT_WR)
            assert (await read_to_end(connection)).startswith(b"HTTP/1.1 200")
        with connect(site.port) as connection:
            await send(connection, frames.opening())
            await read_until(connection, frames.settings(ack=True))
            connection.shutdown(socket.SHUT_WR)
            await read_to_end(connection)
        await wait_until(lambda: site.front.connection_count == 0)


@pytest.mark.parametrize("close", [reset_connection, socket.socket.close], ids=["reset", "close"])
async def test_clients_may_disconnect_at_any_moment(
    close: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uvicorn_server, "_SHUTDOWN_GRACE", 0.1)
    moments = [
        b"",
        b"P",
        b"GET / HT",
        GET,
        b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n",
        frames.PREFACE,
        frames.opening(),
        frames.opening() + frames.headers(1, f"/{SERVICE}/Echo"),
        frames.opening() + frames.call(1, f"/{SERVICE}/Hold"),
        frames.opening(frames.WIDEST) + frames.call(1, f"/{SERVICE}/Flood", b"\x0a\x02\x36\x34"),
        frames.opening() + frames.call(1, f"/{SERVICE}/Echo", b"x" * 9000)[:-50],
    ]
    async with serve_site(ListenerLimits(peek_timeout=0.2)) as site:
        for moment in moments:
            with connect(site.port) as connection:
                await send(connection, moment)
                if moment:
                    await pass_time(0.01)  # for the server to get somewhere with it
                close(connection)
        async with connect_grpc(site.port) as channel:
            assert await call_echo(channel, b"x") == b"x"
        await wait_until(lambda: len(site.front._grpc) <= 1)
        await wait_until(lambda: len(site.front._dispatcher._tasks) == 0)
        if close is reset_connection:
            await wait_until(lambda: site.front.connection_count == 0)


async def test_server_sees_an_http_client_only_when_its_head_is_complete() -> None:
    http = Http1Server(lambda: Site().application)
    async with serve_site(http=http) as site:
        with connect(site.port) as slow:
            for part in (b"GET /a HTTP/1.1\r\n", b"Host: localhost\r\n", b"\r"):
                await send(slow, part)
                await pass_time(0.02)
                assert http.connection_count == 0
            await send(slow, b"\n")
            reply = await asyncio.get_running_loop().sock_recv(slow, 1000)
            assert reply.startswith(b"HTTP/1.1 200 OK")


async def test_http_client_that_never_completes_its_head_is_closed() -> None:
    async with serve_site(ListenerLimits(head_timeout=0.2)) as site:
        with connect(site.port) as slow:
            await send(slow, b"GET /a HTTP/1.1\r\nHost: loc")
            with pytest.raises(ConnectionResetError):
                await asyncio.get_running_loop().sock_recv(slow, 1000)


@pytest.mark.parametrize(
    "last",
    [frames.PREFACE + b"\xff" * 64, b"PRI is no method of HTTP/1.1"],
    ids=["nonsense", "no HTTP/2"],
)
async def test_client_is_closed_after_grpc_has_finished(
    last: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client keeps its end open and sends nothing more."""
    monkeypatch.setattr(socket_relay, "_LINGER_TIMEOUT", 0.1)
    async with serve_site() as site:
        with connect(site.port) as connection:
            await send(connection, last)
            await read_to_end(connection)
            await wait_until(lambda: site.front.connection_count == 0)


async def request_flood(connection: socket.socket, megabytes: int) -> None:
    """Request many megabytes and read none; the HTTP/2 window allows to send them all."""
    request = StringValue(value=str(megabytes)).SerializeToString()
    await send(connection, frames.opening(frames.WIDEST))
    await send(connection, frames.call(1, f"/{SERVICE}/Flood", request))


async def test_client_that_stops_reading_blocks_only_itself() -> None:
    async with serve_site() as site:
        with connect(site.port) as lazy:
            before = psutil.Process().memory_info().rss
            await request_flood(lazy, 200)
            async with connect_grpc(site.port) as channel:
                for _ in range(200):
                    await call_echo(channel, b"x")
                assert 0 < site.sent < 40, "sent to a client that reads nothing"
                assert psutil.Process().memory_info().rss - before < 64 * MIB
                reading = asyncio.ensure_future(discard_all(lazy))
                await wait_until(lambda: site.sent == 200)
                await call_echo(channel, b"x")
            reading.cancel()
            assert await asyncio.gather(reading, return_exceptions=True)


async def discard_all(connection: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(connection, 4 * MIB):
        pass


async def test_client_that_never_reads_is_closed_after_a_timeout() -> None:
    async with serve_site(ListenerLimits(unread_timeout=0.5)) as site:
        with connect(site.port) as lazy:
            await request_flood(lazy, 200)
            await wait_until(lambda: site.sent > 0)
            assert site.front.connection_count == 1
            await wait_until(lambda: site.front.connection_count == 0)


async def test_metadata_of_64_kb_is_accepted_and_more_is_refused() -> None:
    async with serve_site() as site, connect_grpc(site.port) as channel:
        call: Any = channel.unary_unary(f"/{SERVICE}/Echo")
        for _ in range(3):
            assert await call(b"1", metadata=(("padding", "x" * 64_000),)) == b"1"
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call(b"1", metadata=(("padding", "x" * 80_000),))
            assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert await call_echo(channel, b"2") == b"2"


async def test_memory_of_metadata_is_counted_while_the_call_lives() -> None:
    async with serve_site() as site, connect_grpc(site.port) as channel:
        hold: Any = channel.unary_unary(f"/{SERVICE}/Hold")
        call = hold(b"", metadata=(("padding", "x" * 60_000),))
        await wait_until(lambda: site.held == 1)
        assert site.served.requests.held.total > 60_000
        call.cancel()
        await wait_until(lambda: site.served.requests.held.total == 0)


async def test_largest_messages_pass() -> None:
    async with serve_site() as site, connect_grpc(site.port) as channel:
        body = bytes(range(256)) * (MAX_MESSAGE_SIZE // 256)
        assert await call_echo(channel, body) == body
        replies = await asyncio.gather(*(call_echo(channel, body[: 5 * MIB + n]) for n in range(4)))
        assert replies == [body[: 5 * MIB + n] for n in range(4)]


async def test_listening_on_another_port_keeps_connections() -> None:
    async with serve_site() as site, connect_grpc(site.port) as channel:
        old = site.port
        assert await call_echo(channel, b"1") == b"1"
        await site.public.listen("127.0.0.1", 0)
        assert site.port != old
        assert await call_echo(channel, b"2") == b"2"
        assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
        with pytest.raises(ConnectionRefusedError), connect(old):
            pass


async def test_listening_on_another_address_of_the_same_port_keeps_connections() -> None:
    """From loopback to every interface: the most common change."""
    async with serve_site() as site, connect_grpc(site.port) as channel:
        port = site.port
        for host in ("", "127.0.0.1", "localhost", "0.0.0.0", "127.0.0.1"):
            await site.public.listen(host, port)
            assert {own for _, own in site.public.addresses} == {port}
            assert await call_echo(channel, b"x") == b"x"
            assert (await asyncio.to_thread(http_get, port, "/a"))[0] == 200


async def test_unavailable_address_changes_nothing() -> None:
    async with serve_site() as site, connect_grpc(site.port) as channel:
        port = site.port
        with socket.create_server(("127.0.0.2", port)):
            # All interfaces are unavailable while another socket uses one of them.
            for host in ("", "127.0.0.2", "192.0.2.7", "nowhere.invalid"):
                with pytest.raises(CannotListen):
                    await site.public.listen(host, port)
                assert await call_echo(channel, b"x") == b"x"
                assert (await asyncio.to_thread(http_get, port, "/a"))[0] == 200


def create_port() -> PublicPort:
    return PublicPort(InProcessFront(lambda *_: None))


async def listen_error(host: str, port: int) -> str:
    with pytest.raises(CannotListen) as told:
        await create_port().listen(host, port)
    return str(told.value)


async def test_cannot_listen_on_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        expected = "the port is in use by another program; stop it or set network.bind_address"
        assert (
            await listen_error("127.0.0.1", port)
            == f"cannot listen on 127.0.0.1:{port}: {expected}"
        )
        assert (
            await listen_error("localhost", port)
            == f"cannot listen on localhost:{port}: {expected}"
        )
        assert await listen_error("", port) == f"cannot listen on *:{port}: {expected}"


async def test_cannot_listen_names_the_relevant_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One of two addresses does not exist, which alone would be fine."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        async def both(*_: object) -> list[tuple[int, tuple[Any, ...]]]:
            return [
                (socket.AF_INET6, ("2001:db8::1", port, 0, 0)),
                (socket.AF_INET, ("127.0.0.1", port)),
            ]

        monkeypatch.setattr(port_module, "resolve_addresses", both)
        assert "the port is in use by another program" in await listen_error("x", port)


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 70, "a b", "\0", "ü" * 80])
async def test_cannot_listen_on_an_unknown_name(host: str) -> None:
    told = await listen_error(host, 8080)
    assert told.startswith(
        f'cannot listen on {host}:8080: "{host}" is not an address of this computer'
    )
    assert told.endswith("; check network.bind_address")


async def test_cannot_listen_on_a_foreign_address() -> None:
    assert await listen_error("192.0.2.7", 8080) == (
        "cannot listen on 192.0.2.7:8080: this computer has no such address; "
        "check network.bind_address"
    )


async def test_cannot_listen_without_permission(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error is simulated: tests may run as a user with the permission."""

    def refuse(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(sockets_module, "_open_listener", refuse)
    assert await listen_error("127.0.0.1", 80) == (
        "cannot listen on 127.0.0.1:80: permission denied; use a port above 1023 "
        "or set network.bind_address"
    )


@pytest.mark.parametrize("taken_on", [socket.AF_INET, socket.AF_INET6])
async def test_chosen_port_in_use_on_the_other_address_is_retried(
    taken_on: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    bind = sockets_module._open_listener
    tries = 0

    def open_listener(family: int, address: tuple[Any, ...]) -> socket.socket:
        nonlocal tries
        tries += family == taken_on
        if family == taken_on and tries < 3:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        return bind(family, address)

    async def both(*_: object) -> list[tuple[int, tuple[Any, ...]]]:
        return [(socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0, 0, 0))]

    monkeypatch.setattr(sockets_module, "_open_listener", open_listener)
    monkeypatch.setattr(port_module, "resolve_addresses", both)
    public = create_port()
    await public.listen("localhost", 0)
    assert len({port for _, port in public.addresses}) == 1
    assert tries == 3
    await public.aclose()


async def test_accepting_resumes_when_descriptors_are_available(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with serve_site(ListenerLimits(accept_retry_delay=0.02)) as site:
        # They wait in the backlog, because the loop is blocked meanwhile.
        with contextlib.ExitStack() as stack:
            waiting = [stack.enter_context(connect(site.port)) for _ in range(3)]
            with no_descriptors():
                await wait_until(lambda: caplog.text.count("cannot accept connections") > 2)
            for connection in waiting:
                await send(connection, GET)
                assert (await read_to_end(connection)).startswith(b"HTTP/1.1 200")


@contextlib.contextmanager
def no_descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_close_leaves_nothing_behind(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This holds whatever the clients were doing; the leak guards of every test check the rest."""
    monkeypatch.setattr(uvicorn_server, "_SHUTDOWN_GRACE", 0.1)
    caplog.set_level(logging.WARNING)
    with contextlib.ExitStack() as stack:
        async with serve_site(PATIENT) as site:
            flood = frames.call(1, f"/{SERVICE}/Flood", b"\x0a\x02\x36\x34")
            opened = []
            for said in (
                b"",
                b"P",
                b"GET / HT",
                b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n",
                b"GET /hold HTTP/1.1\r\nHost: x\r\n\r\n",
                frames.opening(),
                frames.opening() + frames.call(1, f"/{SERVICE}/Hold"),
                frames.opening(frames.WIDEST) + flood,
            ):
                connection = stack.enter_context(connect(site.port))
                await send(connection, said)
                opened.append(connection)
            await wait_until(lambda: site.held == 2)
        assert site.held == 0
        for connection in opened:
            await read_to_end(connection)
    assert [record.getMessage() for record in caplog.records] == []


async def test_close_during_the_import_of_http() -> None:
    go_on = threading.Event()

    def load_slowly() -> Application:
        assert go_on.wait(DEADLINE)
        return Site().application

    async with serve_site(http=Http1Server(load_slowly)) as site:
        with connect(site.port) as connection:
            await send(connection, GET)
            await wait_until(lambda: site.front.connection_count == 1)
            asyncio.get_running_loop().call_later(0.05, go_on.set)
            await site.public.aclose()
            await read_to_end(connection)


async def test_client_that_reads_nothing_does_not_delay_the_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(listeners_module, "GRACE", 0.2)
    site = Site()
    with private_directory() as directory:
        listeners = Listeners(site.table(), lambda: site.application, directory)
        await listeners.start(ListenAddresses(Address("127.0.0.1", 0), None, ()))
        with connect(listeners.addresses[0][1]) as lazy:
            await request_flood(lazy, 200)
            await wait_until(lambda: site.sent > 0)
            async with asyncio.timeout(60):
                await listeners.aclose()


@pytest.mark.parametrize(
    ("path", "header"),
    [("/\udcff/\udcfe", "x"), (f"/{SERVICE}/Echo", "\udcff")],
    ids=["path", "header"],
)
async def test_headers_that_are_not_text_end_only_their_connection(
    path: str, header: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By itself, grpc.aio ends its main loop over such a path, and with it every call."""
    site = Site()
    with private_directory() as directory:
        listeners = Listeners(site.table(), lambda: site.application, directory)
        await listeners.start(ListenAddresses(Address("127.0.0.1", 0), None, ()))
        port = listeners.addresses[0][1]
        try:
            async with connect_grpc(port) as channel:
                held = asyncio.ensure_future(call_echo(channel, b"held", method="Hold"))
                await wait_until(lambda: site.held == 1)
                with connect(port) as connection:
                    await send(connection, frames.opening())
                    await send(connection, frames.headers(1, path, besides=[("x-a", header)]))
                    await read_to_end(connection)
                assert await call_echo(channel, b"after") == b"after"
                assert not held.done()
                held.cancel()
        finally:
            await listeners.aclose()
    assert "a header is not valid UTF-8" in caplog.text
    assert "gRPC server stopped" not in caplog.text


async def test_request_without_a_message_times_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "REQUEST_TIMEOUT", 0.2)
    async with serve_site() as site:
        with connect(site.port) as connection:
            await send(connection, frames.opening())
            await send(connection, frames.headers(1, f"/{SERVICE}/Echo"))
            await read_to_end(connection)
        with connect(site.port) as connection:
            await send(connection, frames.opening())
            await send(connection, frames.call(1, f"/{SERVICE}/Hold"))
            await wait_until(lambda: site.held == 1)
            await pass_time(0.3)  # time is what is tested
            assert site.held == 1


async def cancel_calls(site: Site, channel: grpc.aio.Channel, method: str, count: int) -> None:
    """Begin calls, and cancel each when the server works on it."""
    start: Any = channel.unary_unary(f"/{SERVICE}/{method}")
    for _ in range(count):
        call = start(b"")
        await wait_until(lambda: site.held == 1, every=0.001)
        call.cancel()
        await wait_until(lambda: site.held == 0, every=0.001)


async def test_cancelled_calls_give_their_places_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(burst_module, "_MAX_AGE", DEADLINE)
    async with serve_site() as site, connect_grpc(site.port) as channel:
        await cancel_calls(site, channel, "Hold", 200)
        assert await call_echo(channel, b"1") == b"1"


async def test_cancelled_calls_keep_their_places_while_the_server_works_on_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(burst_module, "_MAX_AGE", DEADLINE)
    working = {1: 64}
    monkeypatch.setattr(RunningCalls, "count_cancelled", lambda _: working)
    async with serve_site() as site, connect_grpc(site.port) as channel:
        await cancel_calls(site, channel, "Hold", 64)
        echo = asyncio.ensure_future(call_echo(channel, b"1"))
        async with connect_grpc(site.port) as other:
            assert await call_echo(other, b"2") == b"2"
        await pass_time(0.1)
        assert not echo.done()
        working.clear()
        assert await echo == b"1"


async def test_idle_connection_is_closed_for_a_new_one_but_a_busy_one_is_not() -> None:
    async with serve_site(ListenerLimits(ConnectionLimits(3, 3), peek_timeout=DEADLINE)) as site:
        with contextlib.ExitStack() as stack:
            busy, idle, unused = (stack.enter_context(connect(site.port)) for _ in range(3))
            for connection in (busy, idle, unused):
                await send(connection, frames.opening())
                await read_until(connection, frames.settings(ack=True))
            await send(busy, frames.call(1, f"/{SERVICE}/Hold"))
            await wait_until(lambda: site.held == 1)
            await send(idle, frames.call(1, f"/{SERVICE}/Echo", b"once"))
            await read_until(idle, b"grpc-status")
            with connect(site.port) as newcomer:
                assert await read_to_end(unused) == b""
                await send(newcomer, frames.opening())
                await send(newcomer, frames.call(1, f"/{SERVICE}/Hold"))
                await wait_until(lambda: site.held == 2)
                assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
                await read_to_end(idle)
                assert site.held == 2


async def test_settings_come_from_the_grpc_server() -> None:
    async with serve_site() as site:
        with connect(site.port) as connection:
            await send(connection, frames.opening())
            answer = await read_until(connection, frames.settings(ack=True))
            first = frames.split(answer)[0][0]
            assert isinstance(first, SettingsFrame)


TLS_HELLO = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)


@pytest.mark.parametrize("first", [1, 2, len(TLS_HELLO)])
async def test_tls_on_the_plaintext_port_is_reported_once(
    caplog: pytest.LogCaptureFixture, first: int
) -> None:
    async with serve_site(PATIENT) as site:
        for _ in range(3):
            with connect(site.port) as connection:
                await send(connection, TLS_HELLO[:first])
                await send(connection, TLS_HELLO[first:])
                # Clients that may fall back to plaintext recognize it by this reply.
                assert (await read_to_end(connection)).startswith(b"HTTP/1.1 400")
        (message,) = [each.getMessage() for each in caplog.records if "TLS" in each.getMessage()]
    assert "a client at 127.0.0.1 tried to connect with TLS" in message
    assert "insecure=True" in message
