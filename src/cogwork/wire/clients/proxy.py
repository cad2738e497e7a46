"""Forward a call to another process as raw bytes, without parsing its messages.

The deadline and cancellation are forwarded too, and the metadata that the caller passes.
Backpressure applies end to end: if one side does not read, the other side has to stop writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import grpc
import grpc.aio
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from multidict import MultiDict

from cogwork.wire.clients.channel import ForwardChannel, as_grpclib_errors
from cogwork.wire.table.handlers import Stream

MetadataPairs = Iterable[tuple[str, str | bytes]] | None

Rewrite = Callable[[bytes], bytes]

_HOP_BY_HOP = ("te", "content-type", "user-agent", "host")
"""Hop-by-hop headers of a reply, which are not forwarded. Most `grpc-` headers are not forwarded
either."""
_STATUS_DETAILS = "grpc-status-details-bin"
"""The only `grpc-` header that is forwarded: details that some servers add to a status."""


async def forward(
    channel: ForwardChannel,
    path: str,
    cardinality: Cardinality,
    stream: Stream,
    first: Any,
    rewrite: Rewrite | None = None,
    metadata: Iterable[tuple[str, str | bytes]] = (),
) -> None:
    """Forward a call to `channel`, with this metadata.

    `first` is the message that determined the destination; None if no message was read. `rewrite`
    changes each request, for example to rename its resource.
    """
    deadline = stream.deadline
    options = {
        "timeout": deadline.time_remaining() if deadline is not None else None,
        "metadata": tuple(metadata),
    }
    if rewrite is not None and first is not None:
        first = rewrite(first)
    with as_grpclib_errors():
        try:
            if not cardinality.client_streaming and first is not None:
                await _forward_single_request(channel, path, cardinality, stream, first, options)
            else:
                if rewrite is not None:
                    stream = RewrittenStream(stream, rewrite)
                await _forward_duplex(channel, path, stream, first, options)
        except grpc.aio.AioRpcError as error:
            await _send_trailing_metadata(stream, error.trailing_metadata())
            raise


class RewrittenStream:
    """A call whose requests are rewritten."""

    def __init__(self, stream: Stream, rewrite: Rewrite) -> None:
        self._stream = stream
        self._rewrite = rewrite

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def recv_message(self) -> Any:
        message = await self._stream.recv_message()
        return self._rewrite(message) if message is not None else None


async def _forward_single_request(
    channel: ForwardChannel,
    path: str,
    cardinality: Cardinality,
    stream: Stream,
    request: bytes,
    options: dict[str, Any],
) -> None:
    if not cardinality.server_streaming:
        unary: Any = channel.unary_unary(path)
        unary_call = unary(request, **options)
        reply = await unary_call
        # Most calls are unary and most replies have no metadata, so this path skips empty metadata.
        if initial := await unary_call.initial_metadata():
            await _send_initial_metadata(stream, initial)
        if trailing := await unary_call.trailing_metadata():
            await _send_trailing_metadata(stream, trailing)
        await stream.send_message(reply)
        return
    streaming: Any = channel.unary_stream(path)
    call = streaming(request, **options)
    try:
        await _forward_replies(call, stream)
    finally:
        call.cancel()


async def _forward_duplex(
    channel: ForwardChannel, path: str, stream: Stream, first: Any, options: dict[str, Any]
) -> None:
    open_call: Any = channel.stream_stream(path)
    call = open_call(**options)
    sending = asyncio.ensure_future(_forward_requests(call, stream, first))
    try:
        await _forward_replies(call, stream)
    finally:
        sending.cancel()
        call.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _forward_requests(call: Any, stream: Stream, first: Any) -> None:
    message = first
    while message is not None:
        await call.write(message)
        message = await stream.recv_message()
    await call.done_writing()


async def _forward_replies(call: Any, stream: Stream) -> None:
    initial = MultiDict(_filter_metadata(await call.initial_metadata()))
    if initial or not call.done():
        # Send the metadata even if it is empty, because it shows the client that the stream is
        # open.
        await stream.send_initial_metadata(metadata=initial)
    while (message := await call.read()) is not grpc.aio.EOF:
        await stream.send_message(message)
    await _send_trailing_metadata(stream, await call.trailing_metadata())
    code = await call.code()
    if code is not grpc.StatusCode.OK:
        raise GRPCError(Status(code.value[0]), await call.details())


async def _send_initial_metadata(stream: Stream, metadata: MetadataPairs) -> None:
    if initial := MultiDict(_filter_metadata(metadata)):
        await stream.send_initial_metadata(metadata=initial)


async def _send_trailing_metadata(stream: Stream, metadata: MetadataPairs) -> None:
    if trailing := MultiDict(_filter_metadata(metadata)):
        await stream.send_trailing_metadata(metadata=trailing)


def _filter_metadata(metadata: MetadataPairs) -> Iterator[tuple[str, str | bytes]]:
    return ((key, value) for key, value in metadata or () if _is_forwarded(key))


def _is_forwarded(key: str) -> bool:
    if key.startswith(("grpc-", ":")):
        return key == _STATUS_DETAILS
    return key not in _HOP_BY_HOP
