"""Calls from inside the process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from grpclib.const import Cardinality
from tests.support.waiting import run_others

from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError, InvalidRequest, Unsupported
from cogwork.wire.table.concurrency_limit import ConcurrencyLimiter, ConcurrencyLimits, TooManyCalls
from cogwork.wire.table.handlers import Handler, HandlerTable, Method, Stream
from cogwork.wire.transports.in_process_call import call

PATH = "/test.Service/Do"


def make_struct(word: str = "hello") -> Struct:
    struct = Struct()
    struct["word"] = word
    return struct


def make_table(
    handle: Handler,
    cardinality: Cardinality = Cardinality.UNARY_UNARY,
    *,
    request: Any = Struct,
    **options: Any,
) -> HandlerTable:
    handlers = HandlerTable(**options)
    handlers.add("test.Service", lambda: [Method(PATH, cardinality, handle, request)])
    return handlers


async def call_method(
    handlers: HandlerTable, path: str = PATH, timeout: float | None = 10, **more: Any
) -> Any:
    return await call(handlers, path, make_struct(), peer="job:j", timeout=timeout, **more)


async def echo(stream: Stream) -> None:
    await stream.send_initial_metadata(metadata={"a": "b"})
    await stream.send_message(stream.request)
    await stream.send_trailing_metadata()


async def test_call_returns_the_reply() -> None:
    assert await call_method(make_table(echo)) == make_struct()


async def test_method_sees_peer_metadata_and_deadline() -> None:
    seen: list[Any] = []

    async def inspect_stream(stream: Stream) -> None:
        assert stream.deadline is not None
        seen.extend([stream.peer, dict(stream.metadata), stream.deadline.time_remaining()])
        seen.append([message async for message in stream])
        seen.append(await stream.recv_message())
        await stream.send_message(make_struct("done"), end=True)

    assert await call_method(make_table(inspect_stream), metadata={"opid": "x"}) == make_struct(
        "done"
    )
    peer, metadata, left, messages, after = seen
    assert (peer, metadata, messages, after) == ("job:j", {"opid": "x"}, [make_struct()], None)
    assert 9 < left <= 10


async def test_call_without_timeout_has_no_deadline() -> None:
    async def inspect_stream(stream: Stream) -> None:
        assert stream.deadline is None
        assert stream.metadata == {}
        await stream.send_message(make_struct())

    assert await call_method(make_table(inspect_stream), timeout=None) == make_struct()


async def test_method_without_a_message_type_gets_bytes() -> None:
    assert await call_method(make_table(echo, request=None)) == make_struct().SerializeToString()


async def test_fallback_gets_bytes() -> None:
    async def unknown(path: str, stream: Stream) -> None:
        await stream.send_message(path.encode() + await stream.recv_message())

    reply = await call_method(HandlerTable(fallback=unknown), "/acme.Own/Do")
    assert reply == b"/acme.Own/Do" + make_struct().SerializeToString()


@pytest.mark.parametrize("error", [InvalidRequest("no"), RuntimeError("no"), TimeoutError("mine")])
async def test_error_of_the_method_is_raised_unchanged(error: Exception) -> None:
    async def fail(_: Stream) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await call_method(make_table(fail))
    assert raised.value is error


async def test_call_that_times_out_is_cancelled() -> None:
    ended = False

    async def wait(_: Stream) -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    with pytest.raises(TimeoutError, match=r"/test.Service/Do took longer than 0.01s"):
        await call_method(make_table(wait), timeout=0.01)
    assert ended


async def test_waiting_call_can_be_cancelled() -> None:
    async def wait(_: Stream) -> None:
        await asyncio.Event().wait()

    calling = asyncio.ensure_future(call_method(make_table(wait)))
    await run_others()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_method_without_a_reply_raises() -> None:
    async def forget(_: Stream) -> None:
        return

    with pytest.raises(CogworkError, match="ended without a reply"):
        await call_method(make_table(forget))


@pytest.mark.parametrize("path", ["/test.Service/Other", "/test.Other/Do"])
async def test_unknown_method_is_unsupported(path: str) -> None:
    with pytest.raises(Unsupported, match=f"{path} is not served"):
        await call_method(make_table(echo), path)


@pytest.mark.parametrize(
    "cardinality",
    [Cardinality.UNARY_STREAM, Cardinality.STREAM_UNARY, Cardinality.STREAM_STREAM],
)
async def test_streaming_method_is_unsupported(cardinality: Cardinality) -> None:
    with pytest.raises(Unsupported, match="is a stream"):
        await call_method(make_table(echo, cardinality))


async def test_middleware_applies_to_in_process_calls() -> None:
    clock = ManualClock()
    limited = ConcurrencyLimiter(clock, ConcurrencyLimits(running=1, waiting=1))
    release = asyncio.Event()

    async def wait(stream: Stream) -> None:
        await release.wait()
        await stream.send_message(make_struct())

    handlers = make_table(wait, middleware=[limited.wrap])
    first = asyncio.ensure_future(call_method(handlers))
    await clock.settle()
    second = asyncio.ensure_future(call_method(handlers))
    await clock.advance(5)
    with pytest.raises(TooManyCalls, match="1 calls in flight, 1 of them yours"):
        await second
    release.set()
    assert await first == make_struct()
