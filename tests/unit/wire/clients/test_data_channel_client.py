"""Calls of a client over a data channel, against the server's side of it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpclib.const import Status
from tests.unit.wire.channel_client import DEADLINE, open_channel
from tests.unit.wire.transports.test_data_channel import MIB, SERVICE, Service, text

from cogwork.helpers.message_stream import join_messages
from cogwork.wire.clients.data_channel_client import MAX_CALLS, DataChannelClient
from cogwork.wire.transports.channel_frames import encode_headers, encode_trailers


@contextlib.asynccontextmanager
async def connect(service: Service) -> AsyncIterator[DataChannelClient]:
    loop = asyncio.get_running_loop()
    async with open_channel(service.table()) as frames, asyncio.timeout(DEADLINE):
        connection = socket.socket(fileno=frames.connection.detach())
        _, client = await loop.create_connection(DataChannelClient, sock=connection)
        try:
            yield client
        finally:
            client.close()
            await client.lost


@pytest.fixture
async def service() -> Service:
    return Service()


def path(method: str) -> str:
    return f"/{SERVICE}/{method}"


async def test_unary_call(service: Service) -> None:
    async with connect(service) as client:
        method = client.unary_unary(
            path("EchoText"), StringValue.SerializeToString, StringValue.FromString
        )
        call = method(StringValue(value="hello"), metadata=(("x-kept", "1"), ("x-bin", b"\0\xff")))
        assert (await call).value == "hello"
        assert call.done()
        assert await call.code() is grpc.StatusCode.OK
        seen = service.streams[0].metadata
        assert (seen["x-kept"], seen["x-bin"]) == ("1", b"\0\xff")


@pytest.mark.parametrize("size", [0, 1, 16_373, 16_374, 20 * MIB])
async def test_messages_of_any_size(service: Service, size: int) -> None:
    async with connect(service) as client:
        data = bytes(range(256)) * (size // 256) + bytes(size % 256)
        assert await client.unary_unary(path("Echo"))(data) == data


async def test_server_stream(service: Service) -> None:
    async with connect(service) as client:
        call = client.unary_stream(path("Count"))(text("3"))
        assert [StringValue.FromString(each).value async for each in call] == ["0", "1", "2"]
        assert await call.read() is grpc.aio.EOF


async def test_client_stream(service: Service) -> None:
    async with connect(service) as client:
        call = client.stream_stream(path("Join"))()
        for word in ("a", "b"):
            await call.write(text(word))
        await call.done_writing()
        assert StringValue.FromString(await call.read()).value == "a b"
        assert await call.read() is grpc.aio.EOF


async def test_both_sides_stream(service: Service) -> None:
    async with connect(service) as client:
        call = client.stream_stream(path("Converse"))()
        for word in ("a", "b"):
            await call.write(text(word))
            assert StringValue.FromString(await call.read()).value == word
        await call.done_writing()
        assert await call.read() is grpc.aio.EOF
        with pytest.raises(asyncio.InvalidStateError):
            await call.write(text("late"))


async def test_requests_of_an_iterator(service: Service) -> None:
    async with connect(service) as client:
        call = client.stream_stream(path("Join"))(iter([text("a"), text("b")]))
        assert [StringValue.FromString(each).value async for each in call] == ["a b"]


async def test_error_has_its_details_and_trailers(service: Service) -> None:
    async with connect(service) as client:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await client.unary_unary(path("Fail"))(text("zu groß\n100 %"))
        assert failed.value.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert failed.value.details() == "zu groß\n100 %"
        assert ("why", "because") in tuple(failed.value.trailing_metadata())
        with pytest.raises(grpc.aio.AioRpcError) as unknown:
            await client.unary_unary(path("Nothing"))(b"")
        assert unknown.value.code() is grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("timeout", [0.05, 0.0, -1.0])
async def test_deadline(service: Service, timeout: float) -> None:
    async with connect(service) as client:
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await client.unary_unary(path("Hang"))(text(""), timeout=timeout)
        assert failed.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        if timeout > 0:
            await service.cancelled.wait()


async def test_cancellation_reaches_the_handler(service: Service) -> None:
    async with connect(service) as client:
        call = client.unary_unary(path("Hang"))(text(""))
        assert dict(await call.initial_metadata()) == {"started": "yes"}
        assert not call.done()
        assert call.cancel()
        assert not call.cancel()
        await service.cancelled.wait()
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert failed.value.code() is grpc.StatusCode.CANCELLED


async def test_cancelled_task_cancels_its_call(service: Service) -> None:
    async with connect(service) as client:
        call = client.unary_unary(path("Hang"))(text(""))
        waiting = asyncio.ensure_future(_wait_for(call))
        await call.initial_metadata()
        waiting.cancel()
        await service.cancelled.wait()
        assert await call.code() is grpc.StatusCode.CANCELLED


async def _wait_for(call: Any) -> Any:
    return await call


async def test_unread_replies_are_bounded_and_others_are_served(service: Service) -> None:
    """64 messages of 1 MiB exceed what one call may hold."""
    async with connect(service) as client:
        flood = client.unary_stream(path("Flood"))(text(""))
        await flood.initial_metadata()
        assert await flood.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert client.unread.held.total == 0
        assert await client.unary_unary(path("Echo"))(b"a") == b"a"
        with pytest.raises(grpc.aio.AioRpcError, match="not read"):
            await flood.read()


async def test_replies_that_are_read_are_not_bounded(service: Service) -> None:
    async with connect(service) as client:
        flood = client.unary_stream(path("Flood"))(text(""))
        assert sum([len(each) async for each in flood]) == 64 * MIB
        assert client.unread.held.total == 0


async def test_calls_in_flight_are_limited(service: Service) -> None:
    async with connect(service) as client:
        hanging = [client.unary_unary(path("Hang"))(text("")) for _ in range(MAX_CALLS)]
        with pytest.raises(grpc.aio.AioRpcError, match="calls in flight"):
            await client.unary_unary(path("Echo"))(b"")
        for call in hanging:
            await call.initial_metadata()
            call.cancel()
        assert await _until_answered(client) == b"again"


async def _until_answered(client: DataChannelClient) -> bytes:
    """The server counts calls until their handlers have ended."""
    while True:
        try:
            reply: bytes = await client.unary_unary(path("Echo"))(b"again")
        except grpc.aio.AioRpcError:
            continue
        return reply


async def test_metadata_of_64_kb_is_accepted_and_more_is_refused(service: Service) -> None:
    async with connect(service) as client:
        echo = client.unary_unary(path("Echo"))
        assert await echo(b"", metadata=(("x", "y" * 63_900),)) == b""
        with pytest.raises(grpc.aio.AioRpcError, match="metadata"):
            await echo(b"", metadata=(("x", "y" * 66_000),))


async def test_lost_channel_ends_all_calls(service: Service) -> None:
    async with connect(service) as client:
        calls = [client.unary_unary(path("Hang"))(text("")) for _ in range(3)]
        await calls[-1].initial_metadata()
        client.close()
        for call in (*calls, client.unary_unary(path("Echo"))(b"")):
            with pytest.raises(grpc.aio.AioRpcError, match="was lost") as failed:
                await call
            assert failed.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_error_right_after_the_headers_takes_their_place() -> None:
    """As over HTTP/2, although the two are frames of their own here."""
    loop = asyncio.get_running_loop()
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    with theirs:
        async with asyncio.timeout(DEADLINE):
            _, client = await loop.create_connection(DataChannelClient, sock=ours)
            call = client.unary_stream(path("Fail"))(b"")
            waiting = asyncio.ensure_future(call.initial_metadata())
            await loop.sock_sendall(theirs, join_messages([encode_headers(call.number, {})]))
            await asyncio.wait({waiting}, timeout=0.005)
            trailers = encode_trailers(call.number, Status.NOT_FOUND, "none", {}, quoted=False)
            await loop.sock_sendall(theirs, join_messages([trailers]))
            assert not await waiting
            assert call.done()
            client.close()
            await client.lost
