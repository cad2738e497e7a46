"""The client's end of a data channel, for tests: it sends and receives single frames."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from typing import Any

from tests.support.waiting import run_others
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import (
    PacketMessage,
    Request,
    RequestHeaders,
    RequestMessage,
    Response,
)
from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Stream as StreamId

from cogwork.core.limits.byte_budget import ByteBudget
from cogwork.helpers.message_stream import MessageSplitter, join_messages
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import HandlerTable, Metadata
from cogwork.wire.transports.data_channel import DataChannel
from cogwork.wire.transports.unread_replies import UnreadReplies

DEADLINE = 30.0


class ChannelClient:
    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._splitter = MessageSplitter()
        self._received: list[Response] = []

    async def send(self, *requests: Request | bytes) -> None:
        frames = [
            each if isinstance(each, bytes) else each.SerializeToString() for each in requests
        ]
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self.connection, join_messages(frames))

    async def read(self) -> Response:
        """Return the next frame."""
        async with asyncio.timeout(DEADLINE):
            while not self._received:
                data = await asyncio.get_running_loop().sock_recv(self.connection, 1 << 20)
                assert data, "the server has closed the channel"
                self._received += map(Response.FromString, self._splitter.feed(data))
        return self._received.pop(0)

    async def read_call(self, number: int = 0) -> tuple[list[bytes], Any]:
        """Return the messages and the status of a call; other calls must be over."""
        first = await self.read()
        assert (first.stream.id, first.WhichOneof("type")) == (number, "headers")
        messages: list[bytes] = []
        packets = b""
        while True:
            frame = await self.read()
            assert frame.HasField("stream")
            assert frame.stream.id == number
            if frame.WhichOneof("type") == "trailers":
                assert not packets
                return messages, frame.trailers.status
            packets += frame.message.packet_message.data
            if frame.message.packet_message.eom:
                messages.append(packets)
                packets = b""


def headers(path: str, number: int = 0, metadata: dict[str, str] | None = None) -> Request:
    found = RequestHeaders(method=path)
    for name, value in (metadata or {}).items():
        found.metadata.md[name].values.append(value)
    return Request(stream=StreamId(id=number), headers=found)


def message(data: bytes = b"", number: int = 0, *, eom: bool = True, eos: bool = False) -> Request:
    packet = PacketMessage(data=data, eom=eom)
    body = RequestMessage(has_message=True, packet_message=packet, eos=eos)
    return Request(stream=StreamId(id=number), message=body)


def half_close(number: int = 0) -> Request:
    """End the messages with a frame of its own, as the SDK's peer does."""
    return Request(stream=StreamId(id=number), message=RequestMessage(eos=True))


def reset(number: int = 0) -> Request:
    return Request(stream=StreamId(id=number), rst_stream=True)


@contextlib.asynccontextmanager
async def open_channel(
    table: HandlerTable,
    login: Metadata | None = None,
    budget: ByteBudget | None = None,
) -> AsyncIterator[ChannelClient]:
    ours, theirs = socket.socketpair()
    ended = asyncio.Event()
    client = Peer("webrtc:192.0.2.7:1", is_encrypted=True)
    table.requests = budget or table.requests
    channel = DataChannel(table, client, login or {}, UnreadReplies(), ended.set)
    for each in (ours, theirs):
        each.setblocking(False)
    await asyncio.get_running_loop().create_connection(lambda: channel, sock=ours)
    with theirs:
        yield ChannelClient(theirs)
    async with asyncio.timeout(DEADLINE):
        await ended.wait()
        await asyncio.gather(*channel._tasks, return_exceptions=True)
        await run_others()  # for what reacts to the end of the tasks
