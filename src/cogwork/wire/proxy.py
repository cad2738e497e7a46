"""A call carried on to another process as it comes: bytes in, bytes out, and nothing read of them.

Deadline, metadata and cancellation go along; who does not read keeps the other from writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import grpc.aio
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from multidict import MultiDict

from cogwork.wire.channel import grpclib_errors
from cogwork.wire.handlers import Stream

Pairs = Iterable[tuple[str, str | bytes]] | None

_OWN = ("te", "content-type", "user-agent", "host")
"""What each connection says for itself, beside whatever begins with `grpc-` or a colon."""
_DETAILS = "grpc-status-details-bin"
"""What some add to a status."""


async def carry(
    channel: grpc.aio.Channel, path: str, cardinality: Cardinality, stream: Stream, first: Any
) -> None:
    """`first`: the message by which it became known where to; None: there was none."""
    deadline = stream.deadline
    options = {
        "timeout": deadline.time_remaining() if deadline is not None else None,
        "metadata": tuple(_along(stream.metadata.items())),
    }
    with grpclib_errors():
        try:
            if not cardinality.client_streaming and first is not None:
                await _asked_once(channel, path, cardinality, stream, first, options)
            else:
                await _conversed(channel, path, stream, first, options)
        except grpc.aio.AioRpcError as error:
            await _bid_farewell(stream, error.trailing_metadata())
            raise


async def _asked_once(
    channel: grpc.aio.Channel,
    path: str,
    cardinality: Cardinality,
    stream: Stream,
    request: bytes,
    options: dict[str, Any],
) -> None:
    if not cardinality.server_streaming:
        unary: Any = channel.unary_unary(path)
        asked = unary(request, **options)
        reply = await asked
        # Most say nothing beside it, and most calls are of this kind.
        if first := await asked.initial_metadata():
            await _greet(stream, first)
        if last := await asked.trailing_metadata():
            await _bid_farewell(stream, last)
        await stream.send_message(reply)
        return
    streaming: Any = channel.unary_stream(path)
    call = streaming(request, **options)
    try:
        await _hand_back(call, stream)
    finally:
        call.cancel()


async def _conversed(
    channel: grpc.aio.Channel, path: str, stream: Stream, first: Any, options: dict[str, Any]
) -> None:
    open_call: Any = channel.stream_stream(path)
    call = open_call(**options)
    sending = asyncio.ensure_future(_hand_on(call, stream, first))
    try:
        await _hand_back(call, stream)
    finally:
        sending.cancel()
        call.cancel()
        await asyncio.gather(sending, return_exceptions=True)


async def _hand_on(call: Any, stream: Stream, first: Any) -> None:
    message = first
    while message is not None:
        await call.write(message)
        message = await stream.recv_message()
    await call.done_writing()


async def _hand_back(call: Any, stream: Stream) -> None:
    await _greet(stream, await call.initial_metadata())
    while (message := await call.read()) is not grpc.aio.EOF:
        await stream.send_message(message)
    await _bid_farewell(stream, await call.trailing_metadata())
    code = await call.code()
    if code is not grpc.StatusCode.OK:
        raise GRPCError(Status(code.value[0]), await call.details())


async def _greet(stream: Stream, metadata: Pairs) -> None:
    if first := MultiDict(_along(metadata)):
        await stream.send_initial_metadata(metadata=first)


async def _bid_farewell(stream: Stream, metadata: Pairs) -> None:
    if last := MultiDict(_along(metadata)):
        await stream.send_trailing_metadata(metadata=last)


def _along(metadata: Pairs) -> Iterator[tuple[str, str | bytes]]:
    return ((key, value) for key, value in metadata or () if _goes_along(key))


def _goes_along(key: str) -> bool:
    if key.startswith(("grpc-", ":")):
        return key == _DETAILS
    return key not in _OWN
