"""What real peers sent over a data channel, played back: see `record_frames.py`."""

from __future__ import annotations

import base64
import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from tests.support.waiting import run_others
from tests.unit.wire.channel_client import open_channel
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Request

from cogwork.wire.table.handlers import HandlerTable, Method, Stream

RECORDED = json.loads(Path(__file__).with_name("recorded_frames.json").read_text())
KINDS = {
    "GetAudio": Cardinality.UNARY_STREAM,
    "Tunnel": Cardinality.STREAM_STREAM,
}
REPLIES = (b"first", b"second")
PROBLEM = "süß\n is not there"


class Service:
    """Notes every call, and answers with two messages where it may."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.streams: list[Stream] = []

    async def answer(self, stream: Stream) -> None:
        self.streams.append(stream)
        self.received.append(await stream.recv_message())
        if "süß".encode() in self.received[0]:
            raise GRPCError(Status.NOT_FOUND, PROBLEM)
        await stream.send_message(REPLIES[0])

    async def converse(self, stream: Stream) -> None:
        self.streams.append(stream)
        self.received += [message async for message in stream]
        for reply in REPLIES:
            await stream.send_message(reply)

    def table(self) -> HandlerTable:
        table = HandlerTable()
        paths = {each["method"] for calls in RECORDED.values() for each in calls}
        for service in {path.split("/")[1] for path in paths}:
            methods = [
                Method(path, KINDS[name_of(path)], self.converse, None)
                if name_of(path) in KINDS
                else Method(path, Cardinality.UNARY_UNARY, self.answer, None)
                for path in paths
                if path.split("/")[1] == service
            ]
            table.add(service, partial(list, methods))
        return table


def name_of(path: str) -> str:
    return path.rpartition("/")[2]


def read_frames(call: Any) -> list[bytes]:
    return [base64.b64decode(each) for each in call["frames"]]


def read_messages(frames: list[bytes]) -> list[bytes]:
    """Return the messages that the peer split into packets."""
    messages, packets = [], b""
    for frame in frames:
        body = Request.FromString(frame).message
        if body.has_message:
            packets += body.packet_message.data
            if body.packet_message.eom:
                messages.append(packets)
                packets = b""
    return messages


CALLS = [
    pytest.param(peer, call, id=f"{peer}-{number}-{name_of(call['method'])}")
    for peer, calls in RECORDED.items()
    for number, call in enumerate(calls)
]


@pytest.mark.parametrize(("peer", "call"), CALLS)
async def test_recorded_call(peer: str, call: Any) -> None:
    service, frames = Service(), read_frames(call)
    number = Request.FromString(frames[0]).stream.id
    async with open_channel(service.table()) as client:
        await client.send(*frames)
        replies, status = await client.read_call(number)
    assert service.received == read_messages(frames)
    (stream,) = service.streams
    assert not {"te", "content-type", "user-agent", "grpc-timeout"} & set(stream.metadata or {})
    assert re.match("python;|typescript;", str((stream.metadata or {})["viam_client"]))
    if "süß".encode() in service.received[0]:
        # The SDK's peer copies the text into an HTTP header, and a browser shows it as it is.
        assert status.code == Status.NOT_FOUND.value
        assert (unquote(status.message) if peer == "rust" else status.message) == PROBLEM
        assert status.message.isascii() == (peer == "rust")
    else:
        assert status.code == 0
        assert tuple(replies) == (REPLIES if name_of(call["method"]) in KINDS else REPLIES[:1])
    has_timeout = b"grpc-timeout" in frames[0]
    assert (stream.deadline is not None) == has_timeout


@pytest.mark.parametrize("peer", RECORDED)
async def test_recorded_calls_at_once(peer: str) -> None:
    """Frames of several calls arrive in turns."""
    service = Service()
    calls = [read_frames(call) for call in RECORDED[peer]]
    longest = max(map(len, calls))
    async with open_channel(service.table()) as client:
        for turn in range(longest):
            for frames in calls:
                if turn < len(frames):
                    await client.send(frames[turn])
        ended: set[int] = set()
        while len(ended) < len(calls):
            frame = await client.read()
            if frame.WhichOneof("type") == "trailers":
                ended.add(frame.stream.id)
        await run_others()
    expected = [message for frames in calls for message in read_messages(frames)]
    assert sorted(service.received) == sorted(expected)


def test_recording_has_the_rules() -> None:
    """Guards against a recording of a peer that behaves differently."""
    rust = [list(map(Request.FromString, read_frames(call))) for call in RECORDED["rust"]]
    browser = [list(map(Request.FromString, read_frames(call))) for call in RECORDED["typescript"]]
    # The first call of a browser has the number 0, which is not encoded.
    assert browser[0][0].HasField("stream")
    assert browser[0][0].stream.id == 0
    # The SDK's peer ends its messages in a frame of its own; a browser does not end a unary call.
    assert all(call[-1].message.eos and not call[-1].message.has_message for call in rust)
    assert not any(frame.message.eos for frame in browser[0])
    # An empty message is a message.
    empty = [frame.message for call in rust for frame in call if frame.HasField("message")]
    assert any(each.has_message and not each.packet_message.data for each in empty)
    # Both split messages in the same way, and send the deadline nowhere or in the metadata.
    for calls in (rust, browser):
        sizes = [len(frame.message.packet_message.data) for call in calls for frame in call]
        assert max(sizes) == 16_373
        assert not any(call[0].headers.HasField("timeout") for call in calls)
