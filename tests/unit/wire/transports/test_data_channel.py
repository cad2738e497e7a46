"""The rules of calls over a data channel, one by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.wrappers_pb2 import StringValue
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from tests.support.waiting import run_others, wait_until_stable
from tests.unit.wire.channel_client import (
    ChannelClient,
    half_close,
    headers,
    message,
    open_channel,
    reset,
)
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Request

from cogwork.core.limits.byte_budget import ByteBudget
from cogwork.wire.table.handlers import HandlerTable, Method, Stream
from cogwork.wire.transports.data_channel import MAX_CALLS

SERVICE = "test.Service"
MIB = 1 << 20


class Service:
    def __init__(self) -> None:
        self.streams: list[Stream] = []
        self.cancelled = asyncio.Event()
        self.sent = 0

    async def echo(self, stream: Stream) -> None:
        self.streams.append(stream)
        await stream.send_message(await stream.recv_message())

    async def count(self, stream: Stream) -> None:
        for number in range(int(stream.request.value)):
            await stream.send_message(StringValue(value=str(number)))

    async def join(self, stream: Stream) -> None:
        words = [each.value async for each in stream]
        await stream.send_message(StringValue(value=" ".join(words)))

    async def converse(self, stream: Stream) -> None:
        async for each in stream:
            await stream.send_message(each)

    async def hang(self, stream: Stream) -> None:
        await stream.send_initial_metadata(metadata={"started": "yes"})
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()

    async def fail(self, stream: Stream) -> None:
        await stream.send_trailing_metadata(metadata={"why": "because"})
        raise GRPCError(Status.FAILED_PRECONDITION, stream.request.value)

    async def flood(self, stream: Stream) -> None:
        for _ in range(64):
            await stream.send_message(bytes(MIB))
            self.sent += 1

    def table(self) -> HandlerTable:
        one, many = Cardinality.UNARY_UNARY, Cardinality.UNARY_STREAM
        kinds = {
            "Echo": (one, self.echo, None),
            "EchoText": (one, self.echo, StringValue),
            "Count": (many, self.count, StringValue),
            "Join": (Cardinality.STREAM_UNARY, self.join, StringValue),
            "Converse": (Cardinality.STREAM_STREAM, self.converse, StringValue),
            "Hang": (one, self.hang, StringValue),
            "Fail": (one, self.fail, StringValue),
            "Flood": (many, self.flood, StringValue),
        }
        table = HandlerTable()
        methods = [
            Method(f"/{SERVICE}/{name}", kind, handle, request)
            for name, (kind, handle, request) in kinds.items()
        ]
        table.add(SERVICE, lambda: methods)
        return table


@pytest.fixture
def service() -> Service:
    return Service()


def call(method: str, number: int = 0, **metadata: str) -> Request:
    names = {name.replace("_", "-"): value for name, value in metadata.items()}
    return headers(f"/{SERVICE}/{method}", number, names)


def text(value: str) -> bytes:
    return StringValue(value=value).SerializeToString()


async def read_texts(client: ChannelClient, number: int = 0) -> list[str]:
    messages, status = await client.read_call(number)
    assert status.code == 0
    return [StringValue.FromString(each).value for each in messages]


@pytest.mark.parametrize("number", [0, 1, 2**63])
async def test_any_number_of_a_call_is_valid(service: Service, number: int) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("EchoText", number), message(text("a"), number, eos=True))
        assert await read_texts(client, number) == ["a"]


async def test_half_close_may_follow_in_a_frame_of_its_own(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Join"), message(text("a")), message(text("b")), half_close())
        assert await read_texts(client) == ["a b"]


async def test_end_of_stream_counts_only_with_the_end_of_a_message(service: Service) -> None:
    """Some clients mark every packet of the last message."""
    data = text("a" * 40)
    async with open_channel(service.table()) as client:
        packets = [
            message(data[start : start + 16], eom=start + 16 >= len(data), eos=True)
            for start in range(0, len(data), 16)
        ]
        await client.send(call("Join"), *packets)
        assert await read_texts(client) == ["a" * 40]


async def test_empty_messages_are_messages(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Echo"), message(eos=True))
        assert await client.read_call() == ([b""], _status(0))


async def test_all_four_kinds_of_calls(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Count"), message(text("3"), eos=True))
        assert await read_texts(client) == ["0", "1", "2"]
        await client.send(call("Converse"), message(text("a")))
        assert (await client.read()).WhichOneof("type") == "headers"
        reply = (await client.read()).message.packet_message
        assert (StringValue.FromString(reply.data).value, reply.eom) == ("a", True)
        await client.send(message(text("b")), half_close())
        assert StringValue.FromString((await client.read()).message.packet_message.data).value
        assert (await client.read()).trailers.status.code == 0


async def test_large_message_is_split_into_frames_that_fit(service: Service) -> None:
    data = bytes(range(256)) * (5 * MIB // 256)
    async with open_channel(service.table()) as client:
        sending = asyncio.ensure_future(_send_large(client, data))
        messages, status = await client.read_call()
        await sending
    assert status.code == 0
    assert messages == [data]


async def _send_large(client: ChannelClient, data: bytes) -> None:
    await client.send(call("Echo"))
    for start in range(0, len(data), 16_373):
        end = start + 16_373
        await client.send(message(data[start:end], eom=end >= len(data)))
    await client.send(half_close())


async def test_client_that_does_not_read_makes_the_handler_wait(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Flood"), message(text(""), eos=True))
        await client.read()
        assert await wait_until_stable(lambda: service.sent, 0.1) < 8


@pytest.mark.parametrize(
    "late", [message(b"x"), reset(), half_close(), Request(message=message(b"x").message)]
)
async def test_frames_of_unknown_calls_are_ignored(service: Service, late: Request) -> None:
    async with open_channel(service.table()) as client:
        await client.send(late, b"\xff garbage", call("Count", 7), message(text("1"), 7, eos=True))
        assert await read_texts(client, 7) == ["0"]


async def test_second_headers_end_the_call(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Hang"), message(eos=True))
        await client.read()
        await client.send(call("Hang"))
        status = (await client.read()).trailers.status
        assert (status.code, status.message) == (3, "headers already received")
        async with asyncio.timeout(60):
            await service.cancelled.wait()


async def test_reset_cancels_the_handler(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Hang"), message(eos=True))
        first = await client.read()
        assert first.headers.metadata.md["started"].values == ["yes"]
        await client.send(reset())
        status = (await client.read()).trailers.status
        assert (status.code, status.message) == (Status.CANCELLED.value, "request cancelled")
        async with asyncio.timeout(60):
            await service.cancelled.wait()


async def test_end_of_the_channel_cancels_its_calls(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Hang"), message(eos=True))
        await client.read()
    assert service.cancelled.is_set()


@pytest.mark.parametrize("in_metadata", [True, False])
async def test_deadline_of_the_field_or_of_the_metadata(
    service: Service, in_metadata: bool
) -> None:
    request = call("Hang", grpc_timeout="50m") if in_metadata else call("Hang")
    if not in_metadata:
        request.headers.timeout.CopyFrom(Duration(nanos=50_000_000))
    async with open_channel(service.table()) as client:
        await client.send(request, message(eos=True))
        _, status = await client.read_call()
        assert status.code == Status.DEADLINE_EXCEEDED.value


async def test_invalid_deadline_is_refused(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Echo", grpc_timeout="soon"))
        _, status = await client.read_call()
        assert status.code == Status.INVALID_ARGUMENT.value


async def test_unknown_method_is_refused(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Nothing"), message(eos=True))
        _, status = await client.read_call()
        assert status.code == Status.UNIMPLEMENTED.value


@pytest.mark.parametrize(
    ("peer", "expected"),
    [({}, "ü\n"), ({"te": "trailers"}, "%C3%BC%0A"), ({"content_type": "a"}, "%C3%BC%0A")],
)
async def test_status_is_quoted_for_peers_that_copy_it_into_a_header(
    service: Service, peer: dict[str, str], expected: str
) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Fail", 0, **peer), message(text("ü\n"), eos=True))
        await client.read()
        trailers = (await client.read()).trailers
        assert (trailers.status.code, trailers.status.message) == (9, expected)
        assert trailers.metadata.md["why"].values == ["because"]


async def test_status_of_any_length_fits_a_frame(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Fail", te="trailers"), message(text("ü" * 30_000), eos=True))
        _, status = await client.read_call()
        assert 1000 < len(status.message) <= 4100


async def test_metadata_has_the_login_of_the_peer_and_nothing_of_http(service: Service) -> None:
    async with open_channel(service.table(), {"authorization": "Bearer mine"}) as client:
        given = {"te": "trailers", "Word": "hi", "authorization": "Bearer other"}
        await client.send(call("Echo", 0, **given), message(eos=True))
        await client.read_call()
    (stream,) = service.streams
    assert dict(stream.metadata) == {"word": "hi", "authorization": "Bearer mine"}
    assert stream.peer == "webrtc:192.0.2.7:1"
    assert stream.client.is_confidential


async def test_calls_in_flight_are_bounded(service: Service) -> None:
    async with open_channel(service.table()) as client:
        for number in range(MAX_CALLS + 1):
            await client.send(call("Hang", number), message(number=number, eos=True))
        refused = None
        while refused is None:
            frame = await client.read()
            if frame.WhichOneof("type") == "trailers":
                refused = frame
        assert refused.stream.id == MAX_CALLS
        assert refused.trailers.status.code == Status.RESOURCE_EXHAUSTED.value


async def test_bytes_held_for_a_client_are_bounded_and_given_back(service: Service) -> None:
    budget = ByteBudget("requests in flight", total=MIB, per_client=300_000)
    async with open_channel(service.table(), budget=budget) as client:
        for number in range(3):
            await client.send(call("Hang", number), message(bytes(50_000), number, eom=False))
        frame: Any = await client.read()
        while frame.WhichOneof("type") != "trailers":
            frame = await client.read()
        assert frame.trailers.status.code == Status.RESOURCE_EXHAUSTED.value
        await client.send(*(reset(number) for number in range(3)))
    assert budget.held.total == 0


async def test_call_that_is_reset_at_once_gives_back_its_bytes(service: Service) -> None:
    budget = ByteBudget("requests in flight", total=MIB, per_client=MIB)
    async with open_channel(service.table(), budget=budget) as client:
        for _ in range(3):
            await client.send(call("Hang"), message(bytes(50_000), eom=False), reset())
        await client.send(call("Count", 7), message(text("1"), 7, eos=True))
        frame = await client.read()
        while frame.stream.id != 7 or frame.WhichOneof("type") != "trailers":
            frame = await client.read()
    assert budget.held.total == 0


async def test_client_that_calls_and_never_reads_is_disconnected(service: Service) -> None:
    async with open_channel(service.table()) as client:
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(_call_forever(client), 10)


async def _call_forever(client: ChannelClient) -> None:
    refused = [call("Nothing" * 20, number) for number in range(500)]
    while True:
        await client.send(*refused)


async def test_many_frames_at_once_leave_time_for_others(service: Service) -> None:
    async with open_channel(service.table()) as client:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await run_others()
                ticks += 1

        ticking = asyncio.ensure_future(tick())
        await client.send(*(reset(number) for number in range(5000)))
        await client.send(call("Count", 7), message(text("1"), 7, eos=True))
        assert await read_texts(client, 7) == ["0"]
        ticking.cancel()
        assert ticks > 5000 / 64


async def test_message_that_is_too_large_is_refused(service: Service) -> None:
    packet = message(bytes(60_000), eom=False)
    async with open_channel(service.table()) as client:
        await client.send(call("Echo"))
        for _ in range(600):
            await client.send(packet)
        _, status = await client.read_call()
        assert status.code == Status.INVALID_ARGUMENT.value
        assert "more than 33554432 bytes" in status.message


async def test_unary_call_without_a_message_is_refused(service: Service) -> None:
    async with open_channel(service.table()) as client:
        await client.send(call("Echo"), half_close())
        _, status = await client.read_call()
        assert status.code == Status.INVALID_ARGUMENT.value


def _status(code: int) -> Any:
    from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import ResponseTrailers

    return ResponseTrailers(status={"code": code}).status
