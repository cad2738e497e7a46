"""A call from inside the process, through the handler table: whatever holds for a client holds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.message import Message
from grpclib.metadata import Deadline

from cogwork.core.errors import Unsupported
from cogwork.wire.grpc import Unanswered
from cogwork.wire.handlers import Handle, HandlerTable, Metadata, Method


async def call(
    table: HandlerTable,
    path: str,
    request: Message,
    *,
    peer: str,
    timeout: float | None,
    metadata: Metadata | None = None,
) -> Message | bytes:
    """The reply. What goes wrong is raised as it is, without a status made of it."""
    given, handle = _served(_method(table, path), request)
    stream = LocalStream(
        given,
        peer=peer,
        metadata=metadata or {},
        deadline=Deadline.from_timeout(timeout) if timeout is not None else None,
    )
    try:
        async with asyncio.timeout(timeout) as limit:
            await handle(stream)
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(f"{path} took longer than {timeout:g}s") from None
    if stream.reply is None:
        raise Unanswered(f"{path} ended without a reply; this is a fault of the server")
    return stream.reply


def _served(method: Method, request: Message) -> tuple[Message | bytes, Handle]:
    """By its twin, where the resource lives in another process."""
    if method.request is not None and method.twin is None:
        return request, method.handle
    data = request.SerializeToString()
    if method.twin is not None and method.twin.takes(data):
        return data, method.twin.handle
    return request if method.request is not None else data, method.handle


def _method(table: HandlerTable, path: str) -> Method:
    method = table.find(path)
    if method is None:
        raise Unsupported(f"{path} is not served by this machine")
    streams = method.cardinality.client_streaming or method.cardinality.server_streaming
    # Of one that nobody registered, only who serves it knows.
    if streams and not method.foreign:
        raise Unsupported(f"{path} is a stream; from here, only a method with one reply is called")
    return method


class LocalStream:
    """One request, and one reply."""

    def __init__(
        self, request: Any, *, peer: str, metadata: Metadata, deadline: Deadline | None
    ) -> None:
        self.request = self._unread = request
        self.peer = peer
        self.metadata = metadata
        self.deadline = deadline
        self.reply: Message | bytes | None = None

    async def recv_message(self) -> Any:
        request, self._unread = self._unread, None
        return request

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        """Nobody here reads it."""

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        """Nobody here reads it."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message
