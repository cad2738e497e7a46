"""Calls of a gRPC server, as the streams that handlers expect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc.aio
from grpclib.metadata import Deadline
from multidict import MultiDict

from cogwork.core.limits.byte_budget import Hold
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import Metadata
from cogwork.wire.table.message_parser import Parse, accept_any, keep_bytes
from cogwork.wire.transports.grpc_clients import Context, GrpcClients


class _Call:
    """The common part of calls of every cardinality."""

    __slots__ = ("_clients", "_context", "_hold", "_sent_initial_metadata")

    def __init__(self, context: Context, clients: GrpcClients, hold: Hold) -> None:
        self._context = context
        self._clients = clients
        self._hold = hold
        self._sent_initial_metadata = False

    @property
    def request(self) -> Any:
        return None

    @property
    def metadata(self) -> Metadata:
        return MultiDict(self._context.invocation_metadata() or ())

    @property
    def deadline(self) -> Deadline | None:
        # `time_remaining` returns None for a call without a deadline, which its type stub does not
        # declare.
        left: float | None = self._context.time_remaining()
        return Deadline.from_timeout(left) if left is not None else None

    @property
    def peer(self) -> str:
        return self._clients.peer(self._context)

    @property
    def client(self) -> Peer:
        return self._clients.find(self._context)

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._sent_initial_metadata = True
        await self._context.send_initial_metadata(tuple((metadata or {}).items()))

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        self._context.set_trailing_metadata(tuple((metadata or {}).items()))

    async def recv_message(self) -> Any:
        raise NotImplementedError

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        if not self._sent_initial_metadata:
            # Send the metadata separately: if the write of a message that includes it is cancelled,
            # grpc sends neither the metadata nor the end of the call, and the client waits forever.
            await self.send_initial_metadata()
        await self._context.write(serialize(message))

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class UnaryStreamCall(_Call):
    """A call with one request, which is parsed on first use, after middleware has authenticated the
    caller."""

    __slots__ = ("_data", "_is_received", "_parse", "_request")

    def __init__(
        self, context: Context, clients: GrpcClients, hold: Hold, data: bytes, parse: Parse
    ) -> None:
        # Most calls are of this kind. Assigning the fields here is faster than calling
        # super().__init__.
        self._context = context
        self._clients = clients
        self._hold = hold
        self._sent_initial_metadata = False
        self._data = data
        self._parse = parse
        self._request: Any = None
        self._is_received = False

    @property
    def request(self) -> Any:
        if self._request is None:
            self._request = self._parse(self._data, self._hold)
            self._data = b""
        return self._request

    async def recv_message(self) -> Any:
        if self._is_received:
            return None
        self._is_received = True
        return self.request


class UnaryUnaryCall(UnaryStreamCall):
    __slots__ = ("reply",)

    def __init__(
        self, context: Context, clients: GrpcClients, hold: Hold, data: bytes, parse: Parse
    ) -> None:
        super().__init__(context, clients, hold, data, parse)
        self.reply: Any = None

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message


class StreamStreamCall(_Call):
    __slots__ = ("_check", "_held_by_metadata", "_parse", "_peeked", "reply")

    def __init__(
        self,
        context: Context,
        clients: GrpcClients,
        hold: Hold,
        parse: Parse,
        check: Callable[[bytes], None],
    ) -> None:
        super().__init__(context, clients, hold)
        self._parse = parse
        self._check = check
        self.reply: Any = None
        self._peeked: Any = None
        self._held_by_metadata = hold.size

    async def peek(self) -> bytes:
        """Return the first message without consuming it; empty if there is none."""
        self._peeked = await self._context.read()
        return b"" if self._peeked is grpc.aio.EOF else self._peeked

    def switch_to_raw(self) -> None:
        """Deliver all later messages as raw bytes, unchecked: the process that receives them limits
        their size."""
        self._parse = keep_bytes
        self._check = accept_any

    async def recv_message(self) -> Any:
        data, self._peeked = self._peeked, None
        if data is None:
            data = await self._context.read()
        # Release the memory of the previous message, which the handler has finished processing.
        self._hold.reduce(self._held_by_metadata)
        if data is grpc.aio.EOF:
            return None
        self._hold.acquire_message(len(data))
        self._check(data)
        return self._parse(data, self._hold)


class StreamUnaryCall(StreamStreamCall):
    __slots__ = ()

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message


def serialize(message: Any) -> bytes:
    data: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return data
