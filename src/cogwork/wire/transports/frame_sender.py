"""The sending half of the data channel protocol, used by both peers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import cast

from cogwork.helpers.message_stream import join_messages


class FrameSender(asyncio.Protocol):
    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._writable = asyncio.Event()
        self._writable.set()

    def close(self) -> None:
        """Close the channel, even if the other side does not read."""
        if self._transport is not None:
            self._transport.abort()

    async def send(self, frames: Iterable[bytes]) -> None:
        """Send frames. Wait while the other side does not read."""
        for frame in frames:
            if not self._writable.is_set():
                await self._writable.wait()
            self.send_now(frame)

    def send_now(self, *frames: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(join_messages(frames))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast instead of an assertion, because uvloop has its own class of transports.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()
