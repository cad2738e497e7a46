"""Clients get a status code and a message, whatever was raised."""

from __future__ import annotations

import asyncio
import gc
import logging
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import BytesValue, StringValue
from grpclib import GRPCError
from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.const import Cardinality, Handler, Status
from tests.support.waiting import wait_until

from cogwork.core.errors import CogworkError
from cogwork.wire.table.handlers import HandlerTable, Method, Stream, methods_from_service
from cogwork.wire.table.request_limits import DEFAULT_MAX_SIZE
from cogwork.wire.table.status import MAX_MESSAGE_BYTES
from cogwork.wire.transports.grpc import grpc_server
from cogwork.wire.transports.grpc_options import MAX_MESSAGE_SIZE

SERVICE = "test.Driver"
KINDS = ("One", "Many", "Collect", "Converse")


class Panic(BaseException):
    """Derives from BaseException, like errors of libraries in other languages."""


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Driver:
    """Behaves as the test demands, in a method of every kind."""

    def __init__(self) -> None:
        self.does: Callable[[Stream], Any] = lambda _: None

    async def serve(self, stream: Stream) -> None:
        await stream.recv_message()
        result = self.does(stream)
        if result is not None:
            await result

    def __mapping__(self) -> Mapping[str, Handler]:
        kinds = (
            Cardinality.UNARY_UNARY,
            Cardinality.UNARY_STREAM,
            Cardinality.STREAM_UNARY,
            Cardinality.STREAM_STREAM,
        )
        return {
            f"/{SERVICE}/{name}": Handler(self.serve, kind, StringValue, StringValue)
            for name, kind in zip(KINDS, kinds, strict=True)
        }


@dataclass
class ServedDriver:
    driver: Driver
    carrier: grpc.aio.Channel
    sdk: Channel

    async def call(self, kind: str = "One", data: bytes = b"") -> tuple[Status, str]:
        """Call it by a client that sends any bytes, and return status and message."""
        call: Any = self.carrier.stream_stream(f"/{SERVICE}/{kind}")
        try:
            async with asyncio.timeout(60):
                _ = [reply async for reply in call(iter([data]))]
        except grpc.aio.AioRpcError as error:
            return Status(error.code().value[0]), error.details() or ""
        return Status.OK, ""

    async def call_by_sdk(self) -> tuple[Status, str]:
        call = UnaryUnaryMethod(self.sdk, f"/{SERVICE}/One", StringValue, StringValue)
        with pytest.raises(GRPCError) as error:
            await call(StringValue(), timeout=60)
        return error.value.status, error.value.message or ""


@pytest.fixture
async def served() -> AsyncIterator[ServedDriver]:
    driver = Driver()
    table = HandlerTable()
    table.add(SERVICE, lambda: methods_from_service(driver))
    table.add("test.Bytes", lambda: [Method("/test.Bytes/Zeros", Cardinality.UNARY_UNARY, zeros)])
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    sdk = Channel("127.0.0.1", port)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=options) as carrier:
        yield ServedDriver(driver, carrier, sdk)
    sdk.close()
    await server.stop(None)


async def zeros(stream: Stream) -> None:
    request = BytesValue.FromString(await stream.recv_message())
    await stream.send_message(bytes(int(request.value)))


def raiser(error: BaseException) -> Callable[[Stream], NoReturn]:
    def does(_: Stream) -> NoReturn:
        raise error

    return does


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("kind", KINDS)
async def test_undecodable_request_is_refused(served: ServedDriver, kind: str) -> None:
    assert await served.call(kind, b"\x0a\xff") == (
        Status.INVALID_ARGUMENT,
        f"the request to /{SERVICE}/{kind} is not a valid google.protobuf.StringValue message",
    )


@pytest.mark.parametrize("kind", ["One", "Collect"])
async def test_method_without_a_reply_is_an_internal_error(served: ServedDriver, kind: str) -> None:
    status, words = await served.call(kind)
    assert status is Status.INTERNAL
    assert words == (f"/{SERVICE}/{kind} ended without a reply; this is a bug in the server")


@pytest.mark.parametrize("kind", ["Many", "Converse"])
async def test_streaming_method_may_end_without_a_reply(served: ServedDriver, kind: str) -> None:
    assert await served.call(kind) == (Status.OK, "")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("ouch"), Status.UNKNOWN, "ValueError: ouch"),
        (ValueError(), Status.UNKNOWN, "ValueError"),
        (KeyError("fps"), Status.UNKNOWN, "KeyError: 'fps'"),
        (SystemExit(3), Status.UNKNOWN, "it called sys.exit(3)"),
        (SystemExit(), Status.UNKNOWN, "it called sys.exit(None)"),
        (KeyboardInterrupt(), Status.UNKNOWN, "KeyboardInterrupt"),
        (Panic("a bug in Rust"), Status.UNKNOWN, "Panic: a bug in Rust"),
        (Unspeakable(), Status.UNKNOWN, "Unspeakable (its message cannot be rendered)"),
        (NotImplementedError("not yet"), Status.UNIMPLEMENTED, "not yet"),
        (TimeoutError("no answer"), Status.DEADLINE_EXCEEDED, "no answer"),
        (CogworkError("it is broken"), Status.INTERNAL, "it is broken"),
        (GRPCError(Status.DATA_LOSS, "gone"), Status.DATA_LOSS, "gone"),
        (GRPCError(Status.NOT_FOUND), Status.NOT_FOUND, "{path} failed: NOT_FOUND"),
        (
            GRPCError(Status.UNIMPLEMENTED),
            Status.UNIMPLEMENTED,
            "{path} is not implemented here",
        ),
        (NotImplementedError(), Status.UNIMPLEMENTED, "{path} is not implemented here"),
        (TimeoutError(), Status.DEADLINE_EXCEEDED, "{path} took too long"),
        (
            OSError(5, "I/O error", "/dev/x"),
            Status.UNKNOWN,
            "OSError: [Errno 5] I/O error: '/dev/x'",
        ),
        (
            ExceptionGroup("two", [ValueError("a")]),
            Status.UNKNOWN,
            "ExceptionGroup: two (1 sub-exception)",
        ),
    ],
    ids=repr,
)
async def test_any_error_of_a_driver_is_reported(
    served: ServedDriver, kind: str, error: BaseException, status: Status, words: str
) -> None:
    served.driver.does = raiser(error)
    assert await served.call(kind) == (status, words.format(path=f"/{SERVICE}/{kind}"))
    served.driver.does = raiser(CogworkError("still served"))
    assert await served.call(kind) == (Status.INTERNAL, "still served")


async def test_driver_that_exits_does_not_end_the_server(
    served: ServedDriver, caplog: pytest.LogCaptureFixture
) -> None:
    served.driver.does = lambda _: sys.exit("enough")
    assert await served.call() == (Status.UNKNOWN, "it called sys.exit('enough')")
    assert "/test.Driver/One failed" in caplog.text


async def test_error_with_status_ok_becomes_unknown(served: ServedDriver) -> None:
    served.driver.does = raiser(GRPCError(Status.OK, "all is well"))
    status, words = await served.call()
    assert status is Status.UNKNOWN
    assert "all is well" in words


async def test_driver_whose_own_task_was_cancelled_is_reported(served: ServedDriver) -> None:
    """The call itself was not cancelled, so a client waits for its end."""

    async def wait_for_a_cancelled_task(_: Stream) -> None:
        task = asyncio.ensure_future(asyncio.Event().wait())
        asyncio.get_running_loop().call_soon(task.cancel)
        await task

    served.driver.does = wait_for_a_cancelled_task
    status, words = await served.call()
    assert status is Status.CANCELLED
    assert words == "/test.Driver/One was cancelled by the resource itself"


async def test_client_that_cancels_cancels_the_call(
    served: ServedDriver, caplog: pytest.LogCaptureFixture
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def hang(_: Stream) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    served.driver.does = hang
    one: Any = served.carrier.unary_unary(f"/{SERVICE}/One")
    call = one(b"")
    async with asyncio.timeout(60):
        await began.wait()
        call.cancel()
        await ended.wait()
    assert warnings_in(caplog) == []


async def test_driver_that_fails_after_the_client_cancelled_is_not_logged(
    served: ServedDriver, caplog: pytest.LogCaptureFixture
) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def fail_late(_: Stream) -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise CogworkError("could not be cancelled") from None
        finally:
            ended.set()

    served.driver.does = fail_late
    one: Any = served.carrier.unary_unary(f"/{SERVICE}/One")
    call = one(b"")
    async with asyncio.timeout(60):
        await began.wait()
        call.cancel()
        await ended.wait()
    served.driver.does = raiser(CogworkError("still served"))
    assert await served.call() == (Status.INTERNAL, "still served")
    assert warnings_in(caplog) == []


class LargeObject:
    """Something large that a call refers to."""


@pytest.mark.parametrize("kind", KINDS)
async def test_objects_of_a_failed_call_are_freed_at_once(served: ServedDriver, kind: str) -> None:
    """They are not left to the next garbage collection: by then they may be gigabytes."""
    pictures: list[weakref.ref[LargeObject]] = []

    def fail_with_large_object(_: Stream) -> NoReturn:
        picture = LargeObject()
        pictures.append(weakref.ref(picture))
        raise CogworkError("it is upside down")

    served.driver.does = fail_with_large_object
    gc.disable()
    try:
        assert await served.call(kind) == (Status.INTERNAL, "it is upside down")
        await wait_until(lambda: pictures[0]() is None)
    finally:
        gc.enable()


@pytest.mark.parametrize("character", ["x", "\n", "%", "ß", "🦆", "\udcff"])
async def test_very_long_message_is_truncated(served: ServedDriver, character: str) -> None:
    served.driver.does = raiser(CogworkError(character * 100_000))
    shown = "?" if character == "\udcff" else character
    for status, words in (await served.call(), await served.call_by_sdk()):
        assert status is Status.INTERNAL
        assert words.strip(shown) == "…"
        assert MAX_MESSAGE_BYTES // 13 < len(words) <= MAX_MESSAGE_BYTES + 1


@pytest.mark.parametrize("text", ["größe\n\t\0 100%", "a\udcffb", "\ud83e"])
async def test_any_text_arrives(served: ServedDriver, text: str) -> None:
    served.driver.does = raiser(CogworkError(text))
    shown = text.encode(errors="replace").decode()
    assert await served.call() == (Status.INTERNAL, shown)
    assert await served.call_by_sdk() == (Status.INTERNAL, shown)


async def test_reply_that_is_not_a_message_is_reported(served: ServedDriver) -> None:
    served.driver.does = lambda stream: stream.send_message({"not": "a message"})
    for kind in KINDS:
        status, words = await served.call(kind)
        assert status is Status.UNKNOWN
        assert "dict" in words


async def test_largest_reply_passes_and_one_byte_more_is_refused(served: ServedDriver) -> None:
    call: Any = served.carrier.unary_unary("/test.Bytes/Zeros")

    async def zeros(size: int) -> int:
        return len(await call(BytesValue(value=b"%d" % size).SerializeToString(), timeout=60))

    assert await zeros(MAX_MESSAGE_SIZE) == MAX_MESSAGE_SIZE
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await zeros(MAX_MESSAGE_SIZE + 1)
    assert told.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await zeros(3) == 3


async def test_largest_request_passes_and_one_byte_more_is_refused(served: ServedDriver) -> None:
    served.driver.does = raiser(CogworkError("it arrived"))
    overhead = len(StringValue(value="x" * DEFAULT_MAX_SIZE).SerializeToString()) - DEFAULT_MAX_SIZE
    largest = StringValue(value="x" * (DEFAULT_MAX_SIZE - overhead)).SerializeToString()
    assert len(largest) == DEFAULT_MAX_SIZE
    assert await served.call("One", largest) == (Status.INTERNAL, "it arrived")
    status, _ = await served.call("One", largest + b"\0")
    assert status is Status.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("path", ["/", "//", "/x", "/test.Driver/", "/test.Driver/Nope", "/ü/ß"])
async def test_unknown_path_is_unimplemented(served: ServedDriver, path: str) -> None:
    call: Any = served.carrier.unary_unary(path)
    with pytest.raises(grpc.aio.AioRpcError) as told:
        await call(b"", timeout=60)
    assert told.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_service_that_cannot_be_loaded_reports_the_error() -> None:
    """Its module is broken: its callers get the error, and other services work."""
    table = HandlerTable()

    def load() -> NoReturn:
        raise ImportError("no module named numpy")

    table.add("test.Broken", load)
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: Any = channel.unary_unary("/test.Broken/Any")
        for _ in range(2):
            with pytest.raises(grpc.aio.AioRpcError) as told:
                await call(b"", timeout=60)
            assert told.value.code() is grpc.StatusCode.UNKNOWN
            assert told.value.details() == "ImportError: no module named numpy"
    await server.stop(None)
