"""A WebRTC client with the interface of grpclib's channel, for the SDK's client classes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Self

from benchmarks.parts.webrtc_client import CallFailed, ClientCall, WebRtcClient
from google.protobuf.message import Message
from grpclib import GRPCError
from grpclib.const import Cardinality, Status
from grpclib.metadata import Deadline
from tests.support.waiting import pass_time

from cogwork.contracts.harness import CALL_TIMEOUT

_PAUSE = 0.05


class WebRtcChannel:
    """Calls without a timeout get one, so that a missing reply does not hang the test."""

    def __init__(self, client: WebRtcClient) -> None:
        self._client = client

    def request(
        self,
        name: str,
        cardinality: Cardinality,
        request_type: type[Message],
        reply_type: type[Message],
        *,
        timeout: float | None = None,
        deadline: Deadline | None = None,
        metadata: Mapping[str, str] | Iterable[tuple[str, str]] | None = None,
    ) -> _Stream:
        del request_type
        if deadline is not None:
            timeout = deadline.time_remaining()
        pairs = metadata.items() if isinstance(metadata, Mapping) else metadata or ()
        call = self._client.open(name, pairs, CALL_TIMEOUT if timeout is None else timeout)
        return _Stream(call, cardinality, reply_type)

    def close(self) -> None:
        """Do nothing: the connection belongs to who opened it."""


class _Stream:
    def __init__(
        self, call: ClientCall, cardinality: Cardinality, reply_type: type[Message]
    ) -> None:
        self._call = call
        self._cardinality = cardinality
        self._reply_type = reply_type
        self.initial_metadata: Mapping[str, str] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._call.cancel()

    async def send_request(self) -> None:
        """Do nothing: the call has begun."""

    async def send_message(self, message: Any, *, end: bool = False) -> None:
        is_only = not self._cardinality.client_streaming
        await self._call.send(message.SerializeToString(), end=end or is_only)

    async def end(self) -> None:
        if self._cardinality.client_streaming:
            self._call.end()

    async def recv_initial_metadata(self) -> None:
        async with asyncio.timeout(CALL_TIMEOUT):
            self.initial_metadata = await self._call.receive_headers()
        # An error that follows at once takes the place of headers over HTTP/2.
        await pass_time(_PAUSE)
        if self._call.has_ended:
            await self.recv_message()

    async def recv_message(self) -> Any:
        """Return the next message; None after the last one."""
        try:
            async with asyncio.timeout(CALL_TIMEOUT):
                data = await self._call.receive()
        except CallFailed as error:
            raise GRPCError(Status(error.code), error.message) from None
        return None if data is None else self._reply_type.FromString(data)

    async def cancel(self) -> None:
        self._call.cancel()

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message
