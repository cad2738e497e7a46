"""One handler table, called by the SDK's own client and by ours."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import grpc
import grpc.aio
import pytest
from google.protobuf.wrappers_pb2 import StringValue
from grpclib import GRPCError
from grpclib.client import (
    Channel,
    StreamStreamMethod,
    StreamUnaryMethod,
    UnaryStreamMethod,
    UnaryUnaryMethod,
)
from grpclib.const import Cardinality, Handler, Status

from cogwork.core.errors import CogworkError
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.api_methods import create_sdk_service
from cogwork.wire.clients.channel import SdkChannel
from cogwork.wire.table.handlers import HandlerTable, Method, Stream, methods_from_service
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.sensor import Sensor  # noqa: E402
from viam.components.sensor.client import SensorClient  # noqa: E402
from viam.components.sensor.service import SensorRPCService  # noqa: E402

pytestmark = pytest.mark.both_loops

SENSOR = Api.parse("rdk:component:sensor")


class NotReady(CogworkError):
    status = "UNAVAILABLE"


class Thermometer(Sensor):
    async def get_readings(
        self, *, extra: Mapping[str, Any] | None = None, timeout: float | None = None, **_: Any
    ) -> Mapping[str, Any]:
        if extra and extra.get("fail"):
            raise ValueError(f"the probe says {extra['fail']}")
        return {"celsius": 21.5, "timeout": timeout is not None, "extra": dict(extra or {})}


def find(name: ResourceName) -> object:
    if name.name == "broken":
        raise NotReady('sensor "broken" is not ready: the cable was pulled')
    return Thermometer(name.name)


class Echo:
    """A service with a method of every kind."""

    async def one(self, stream: Stream) -> None:
        request = await stream.recv_message()
        if request.value == "raise":
            raise GRPCError(Status.FAILED_PRECONDITION, "not like this: ü\n")
        word = str(stream.metadata.get("word", ""))
        await stream.send_message(StringValue(value=request.value + word))

    async def many(self, stream: Stream) -> None:
        request = await stream.recv_message()
        for number in range(3):
            await stream.send_message(StringValue(value=f"{request.value}{number}"))
        if request.value == "raise":
            raise NotReady("gone in the middle")

    async def collect(self, stream: Stream) -> None:
        words = [message.value async for message in stream]
        await stream.send_message(StringValue(value=" ".join(words)))

    async def converse(self, stream: Stream) -> None:
        async for message in stream:
            await stream.send_message(StringValue(value=message.value.upper()))

    async def hang(self, stream: Stream) -> None:
        await stream.recv_message()
        await asyncio.Event().wait()

    def __mapping__(self) -> Mapping[str, Handler]:
        kinds = Cardinality
        table = {
            "One": (self.one, kinds.UNARY_UNARY),
            "Many": (self.many, kinds.UNARY_STREAM),
            "Collect": (self.collect, kinds.STREAM_UNARY),
            "Converse": (self.converse, kinds.STREAM_STREAM),
            "Hang": (self.hang, kinds.UNARY_UNARY),
        }
        return {
            f"/test.Echo/{name}": Handler(function, kind, StringValue, StringValue)
            for name, (function, kind) in table.items()
        }


async def raw(stream: Stream) -> None:
    data = await stream.recv_message()
    assert isinstance(data, bytes)
    await stream.send_message(data[::-1])


@pytest.fixture
async def port() -> AsyncIterator[int]:
    table = HandlerTable()
    table.add(
        "viam.component.sensor.v1.SensorService",
        lambda: methods_from_service(create_sdk_service(SensorRPCService, SENSOR, find)),
    )
    table.add("test.Echo", lambda: methods_from_service(Echo()))
    table.add("test.Raw", lambda: [Method("/test.Raw/Reverse", Cardinality.UNARY_UNARY, raw)])
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield port
    await server.stop(None)


@pytest.fixture(params=["grpclib", "ours"])
async def channel(port: int, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    if request.param == "grpclib":
        theirs = Channel("127.0.0.1", port)
        yield theirs
        theirs.close()
    else:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as carrier:
            yield SdkChannel(carrier)


async def test_sdk_client_calls_sdk_service(channel: Any) -> None:
    sensor = SensorClient("t", channel)
    readings = await sensor.get_readings(extra={"a": 1}, timeout=60)
    assert readings == {"celsius": 21.5, "timeout": True, "extra": {"a": 1}}


async def test_typed_error_keeps_its_status_and_message(channel: Any) -> None:
    with pytest.raises(GRPCError) as told:
        await SensorClient("broken", channel).get_readings(timeout=60)
    assert told.value.status is Status.UNAVAILABLE
    assert told.value.message == 'sensor "broken" is not ready: the cable was pulled'


async def test_error_of_a_driver_is_reported_without_a_traceback(
    channel: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(GRPCError) as told:
        await SensorClient("t", channel).get_readings(extra={"fail": "ouch"}, timeout=60)
    assert told.value.status is Status.UNKNOWN
    assert told.value.message == "ValueError: the probe says ouch"
    assert "GetReadings failed" in caplog.text


async def test_unary_call(channel: Any) -> None:
    call = UnaryUnaryMethod(channel, "/test.Echo/One", StringValue, StringValue)
    reply = await call(StringValue(value="a"), timeout=60, metadata={"word": "b"})
    assert reply.value == "ab"


async def test_error_message_may_contain_any_text(channel: Any) -> None:
    call = UnaryUnaryMethod(channel, "/test.Echo/One", StringValue, StringValue)
    with pytest.raises(GRPCError) as told:
        await call(StringValue(value="raise"), timeout=60)
    assert (told.value.status, told.value.message) == (
        Status.FAILED_PRECONDITION,
        "not like this: ü\n",
    )


async def test_server_streaming_call(channel: Any) -> None:
    call = UnaryStreamMethod(channel, "/test.Echo/Many", StringValue, StringValue)
    replies = await call(StringValue(value="a"), timeout=60)
    assert [reply.value for reply in replies] == ["a0", "a1", "a2"]


async def test_error_after_some_replies_is_reported(channel: Any) -> None:
    call = UnaryStreamMethod(channel, "/test.Echo/Many", StringValue, StringValue)
    with pytest.raises(GRPCError) as told:
        await call(StringValue(value="raise"), timeout=60)
    assert (told.value.status, told.value.message) == (Status.UNAVAILABLE, "gone in the middle")


async def test_client_streaming_call(channel: Any) -> None:
    call = StreamUnaryMethod(channel, "/test.Echo/Collect", StringValue, StringValue)
    reply = await call([StringValue(value=word) for word in ("a", "b", "c")], timeout=60)
    assert reply.value == "a b c"


async def test_bidirectional_streaming_call(channel: Any) -> None:
    call = StreamStreamMethod(channel, "/test.Echo/Converse", StringValue, StringValue)
    async with call.open(timeout=60) as stream:
        for word in ("a", "b"):
            await stream.send_message(StringValue(value=word))
            reply = await stream.recv_message()
            assert reply is not None
            assert reply.value == word.upper()
        await stream.end()
        assert await stream.recv_message() is None


async def test_call_ends_at_its_deadline(channel: Any) -> None:
    call = UnaryUnaryMethod(channel, "/test.Echo/Hang", StringValue, StringValue)
    with pytest.raises((GRPCError, TimeoutError)):
        await call(StringValue(value="a"), timeout=0.1)


async def test_unknown_service_is_unimplemented(channel: Any) -> None:
    call = UnaryUnaryMethod(channel, "/test.Nobody/Knows", StringValue, StringValue)
    with pytest.raises(GRPCError) as told:
        await call(StringValue(value="a"), timeout=60)
    assert told.value.status is Status.UNIMPLEMENTED
    assert told.value.message == "/test.Nobody/Knows is not served here, or not in this version"


async def test_raw_bytes_pass_unchanged(port: int) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as carrier:
        call: Any = carrier.unary_unary("/test.Raw/Reverse")
        assert await call(b"abc", timeout=60) == b"cba"
