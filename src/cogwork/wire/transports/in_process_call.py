"""Calls a method of the handler table from inside the process, under the same rules as a client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from google.protobuf.message import Message
from grpclib.metadata import Deadline

from cogwork.core.errors import Unsupported
from cogwork.net.peer import Peer
from cogwork.wire.table.handlers import Handler, HandlerTable, Metadata, Method, NoReply, NotServed


async def call(
    table: HandlerTable,
    path: str,
    request: Message,
    *,
    peer: str,
    timeout: float | None,
    metadata: Metadata | None = None,
) -> Message | bytes:
    """Call the method and return the reply. Errors are raised unchanged, not converted to a
    status."""
    message, handle = _select_handler(_find_unary_method(table, path), request)
    stream = InProcessStream(
        message,
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
        raise NoReply(path)
    return stream.reply


def _select_handler(method: Method, request: Message) -> tuple[Message | bytes, Handler]:
    """Return the handler and its input. If another process has the resource, use the proxy
    route."""
    if method.request is not None and not method.is_routed:
        return request, method.handle
    data = request.SerializeToString()
    forward = method.find_proxy(data)
    if forward is not None:
        return data, forward
    return request if method.request is not None else data, method.handle


def _find_unary_method(table: HandlerTable, path: str) -> Method:
    method = table.find(path)
    if method is None:
        raise NotServed(path)
    streams = method.cardinality.client_streaming or method.cardinality.server_streaming
    # Accept an unregistered method, because only the module that serves it knows its cardinality.
    if streams and not method.is_unregistered:
        raise Unsupported(f"{path} is a streaming method; only unary methods can be called here")
    return method


class InProcessStream:
    """A stream with one request and one reply."""

    def __init__(
        self, request: Any, *, peer: str, metadata: Metadata, deadline: Deadline | None
    ) -> None:
        self.request = self._pending_request = request
        self.peer = peer
        self.client = Peer(peer, is_local=True)
        self.metadata = metadata
        self.deadline = deadline
        self.reply: Message | bytes | None = None

    async def recv_message(self) -> Any:
        request, self._pending_request = self._pending_request, None
        return request

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        del end
        self.reply = message

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None:
        """Discard the metadata, because callers in the process do not read it."""

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None:
        """Discard the metadata, because callers in the process do not read it."""

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message
