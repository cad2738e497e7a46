"""A grpc.aio channel with the interface of grpclib, for the SDK's client classes.

The clients only call `request`, and use only the part of the returned stream that is implemented
here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Protocol, Self

import grpc
import grpc.aio
from google.protobuf.message import Message
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from grpclib.metadata import Deadline

CHANNEL_CLOSED_TEXT = "the connection to the module or machine that runs it was closed; try again"

MetadataLike = Mapping[str, str | bytes] | Iterable[tuple[str, str | bytes]]


class ForwardChannel(Protocol):
    """The part of a grpc.aio channel that starts calls."""

    def unary_unary(self, method: str, /, *coding: Any, **named_coding: Any) -> Any: ...

    def unary_stream(self, method: str, /, *coding: Any, **named_coding: Any) -> Any: ...

    def stream_stream(self, method: str, /, *coding: Any, **named_coding: Any) -> Any: ...


class SdkChannel:
    """An adapter around a grpc.aio channel. The adapter neither opens nor closes the channel."""

    def __init__(self, channel: ForwardChannel) -> None:
        self._channel = channel
        self._callables: dict[str, Any] = {}

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: type[Message],
        reply_type: type[Message],
        *,
        timeout: float | None = None,
        deadline: Deadline | None = None,
        metadata: MetadataLike | None = None,
    ) -> ClientStream:
        if name not in self._callables:
            make = self._call_factory(cardinality)
            self._callables[name] = make(
                name,
                request_serializer=request_type.SerializeToString,
                response_deserializer=reply_type.FromString,
            )
        if deadline is not None:
            left = deadline.time_remaining()
            timeout = left if timeout is None else min(left, timeout)
        pairs = metadata.items() if isinstance(metadata, Mapping) else metadata or ()
        return ClientStream(self._callables[name], cardinality, timeout, tuple(pairs))

    def close(self) -> None:
        """Do nothing. Clients close their channel, but this channel belongs to its creator."""

    def _call_factory(self, cardinality: Cardinality) -> Callable[..., Any]:
        match cardinality:
            case Cardinality.UNARY_UNARY:
                return self._channel.unary_unary
            case Cardinality.UNARY_STREAM:
                return self._channel.unary_stream
            case _:
                return self._channel.stream_stream


class ClientStream:
    def __init__(
        self,
        start_call: Any,
        cardinality: Cardinality,
        timeout: float | None,
        metadata: tuple[tuple[str, str | bytes], ...],
    ) -> None:
        self._start_call = start_call
        self._cardinality = cardinality
        self._options = {"timeout": timeout, "metadata": metadata}
        self._call: Any = None
        self._has_replied = False
        self.initial_metadata: Mapping[str, Any] | None = None
        self.trailing_metadata: Mapping[str, Any] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._call is not None and not self._call.done():
            self._call.cancel()

    async def send_request(self) -> None:
        if self._call is None and self._cardinality.client_streaming:
            self._call = self._start_call(**self._options)

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        if not self._cardinality.client_streaming:
            with as_grpclib_errors():
                self._call = self._start_call(message, **self._options)
            return
        await self.send_request()
        try:
            with as_grpclib_errors():
                await self._call.write(message)
                if end:
                    await self._call.done_writing()
        except (GRPCError, asyncio.InvalidStateError):
            # If the call has failed, raise its status, which explains more than the error of this
            # write.
            await self._raise_if_failed()
            raise

    async def end(self) -> None:
        if self._cardinality.client_streaming:
            await self.send_request()
            with as_grpclib_errors():
                await self._call.done_writing()

    async def recv_message(self) -> Any:
        """Return the next message; None after the last message."""
        with as_grpclib_errors():
            if self._cardinality is Cardinality.UNARY_UNARY:
                return await self._recv_single_reply()
            message = await self._call.read()
            if message is grpc.aio.EOF:
                await self._raise_if_failed()
                return None
            return message

    async def recv_initial_metadata(self) -> None:
        with as_grpclib_errors():
            self.initial_metadata = dict(await self._call.initial_metadata())

    async def recv_trailing_metadata(self) -> None:
        with as_grpclib_errors():
            self.trailing_metadata = dict(await self._call.trailing_metadata())

    async def cancel(self) -> None:
        if self._call is not None:
            self._call.cancel()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message

    async def _recv_single_reply(self) -> Any:
        if self._has_replied:
            return None
        self._has_replied = True
        return await self._call

    async def _raise_if_failed(self) -> None:
        code = await self._call.code()
        if code is not grpc.StatusCode.OK:
            raise GRPCError(Status(code.value[0]), await self._call.details())


class _ErrorConversion:
    """A context manager that is run for every forwarded call. It is a class, because a generator
    would take three times as long."""

    __slots__ = ()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, grpc.aio.AioRpcError):
            raise GRPCError(Status(error.code().value[0]), error.details()) from None
        if isinstance(error, grpc.aio.UsageError):
            raise GRPCError(Status.UNAVAILABLE, CHANNEL_CLOSED_TEXT) from None
        if isinstance(error, asyncio.CancelledError):
            # If this task was not cancelled, the call was: closing the connection cancels all of
            # its calls.
            task = asyncio.current_task()
            if task is None or not task.cancelling():
                raise GRPCError(Status.UNAVAILABLE, CHANNEL_CLOSED_TEXT) from None


_CONVERSION: Final = _ErrorConversion()


def as_grpclib_errors() -> _ErrorConversion:
    """Convert errors of grpc.aio to errors of grpclib, which the SDK's code catches."""
    return _CONVERSION
