"""Calls from inside the process."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.protobuf.struct_pb2 import Struct
from grpclib.const import Cardinality

from cogwork.core.clock import ManualClock
from cogwork.core.errors import CogworkError, InvalidRequest, Unsupported
from cogwork.wire.concurrency_limit import ConcurrencyLimiter, ConcurrencyLimits, TooManyCalls
from cogwork.wire.handlers import Handler, HandlerTable, Method, Stream
from cogwork.wire.in_process_call import call

PATH = "/test.Service/Do"


def hello(word: str = "hello") -> Struct:
    struct = Struct()
    struct["word"] = word
    return struct


def table(
    handle: Handler,
    cardinality: Cardinality = Cardinality.UNARY_UNARY,
    *,
    request: Any = Struct,
    **options: Any,
) -> HandlerTable:
    made = HandlerTable(**options)
    made.add("test.Service", lambda: [Method(PATH, cardinality, handle, request)])
    return made


async def ask(
    table: HandlerTable, path: str = PATH, timeout: float | None = 10, **more: Any
) -> Any:
    return await call(table, path, hello(), peer="job:j", timeout=timeout, **more)


async def echo(stream: Stream) -> None:
    await stream.send_initial_metadata(metadata={"a": "b"})
    await stream.send_message(stream.request)
    await stream.send_trailing_metadata()


async def test_the_reply_comes_back() -> None:
    assert await ask(table(echo)) == hello()


async def test_a_method_sees_a_call_like_any_other() -> None:
    seen: list[Any] = []

    async def look(stream: Stream) -> None:
        assert stream.deadline is not None
        seen.extend([stream.peer, dict(stream.metadata), stream.deadline.time_remaining()])
        seen.append([message async for message in stream])
        seen.append(await stream.recv_message())
        await stream.send_message(hello("done"), end=True)

    assert await ask(table(look), metadata={"opid": "x"}) == hello("done")
    peer, metadata, left, messages, after = seen
    assert (peer, metadata, messages, after) == ("job:j", {"opid": "x"}, [hello()], None)
    assert 9 < left <= 10


async def test_without_a_timeout_there_is_no_deadline() -> None:
    async def look(stream: Stream) -> None:
        assert stream.deadline is None
        assert stream.metadata == {}
        await stream.send_message(hello())

    assert await ask(table(look), timeout=None) == hello()


async def test_a_method_that_takes_bytes_gets_them() -> None:
    assert await ask(table(echo, request=None)) == hello().SerializeToString()


async def test_who_serves_what_nobody_registered_gets_bytes_too() -> None:
    async def unknown(path: str, stream: Stream) -> None:
        await stream.send_message(path.encode() + await stream.recv_message())

    reply = await ask(HandlerTable(fallback=unknown), "/acme.Own/Do")
    assert reply == b"/acme.Own/Do" + hello().SerializeToString()


@pytest.mark.parametrize("error", [InvalidRequest("no"), RuntimeError("no"), TimeoutError("mine")])
async def test_an_error_comes_through_as_it_is(error: Exception) -> None:
    async def fail(_: Stream) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        await ask(table(fail))
    assert raised.value is error


async def test_what_takes_too_long_is_ended() -> None:
    ended = False

    async def wait(_: Stream) -> None:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended = True

    with pytest.raises(TimeoutError, match=r"/test.Service/Do took longer than 0.01s"):
        await ask(table(wait), timeout=0.01)
    assert ended


async def test_whoever_waits_may_be_cancelled() -> None:
    async def wait(_: Stream) -> None:
        await asyncio.Event().wait()

    asking = asyncio.ensure_future(ask(table(wait)))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking


async def test_a_method_that_forgets_to_reply() -> None:
    async def forget(_: Stream) -> None:
        return

    with pytest.raises(CogworkError, match="ended without a reply"):
        await ask(table(forget))


@pytest.mark.parametrize("path", ["/test.Service/Other", "/test.Other/Do"])
async def test_what_is_not_served(path: str) -> None:
    with pytest.raises(Unsupported, match=f"{path} is not served"):
        await ask(table(echo), path)


@pytest.mark.parametrize(
    "cardinality",
    [Cardinality.UNARY_STREAM, Cardinality.STREAM_UNARY, Cardinality.STREAM_STREAM],
)
async def test_streams_are_refused(cardinality: Cardinality) -> None:
    with pytest.raises(Unsupported, match="is a stream"):
        await ask(table(echo, cardinality))


async def test_layers_around_the_table_hold() -> None:
    clock = ManualClock()
    limited = ConcurrencyLimiter(clock, ConcurrencyLimits(running=1, waiting=1))
    release = asyncio.Event()

    async def wait(stream: Stream) -> None:
        await release.wait()
        await stream.send_message(hello())

    made = table(wait, middleware=[limited.wrap])
    first = asyncio.ensure_future(ask(made))
    await clock.settle()
    second = asyncio.ensure_future(ask(made))
    await clock.advance(5)
    with pytest.raises(TooManyCalls, match="1 calls in flight, 1 of them yours"):
        await second
    release.set()
    assert await first == hello()
