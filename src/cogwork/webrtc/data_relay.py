"""Moves messages between a data channel and the socket that leads to the server.

If the peer reads slowly, the relay stops reading from the socket, so that the server waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import cast

from aiortc import RTCDataChannel

from cogwork.helpers.message_stream import MAX_MESSAGE_SIZE, MessageSplitter, join_messages

_MAX_BUFFERED = 256 * 1024
"""Bytes queued in the channel above which the server has to wait. The number is low, because short
messages, such as heartbeats, also wait for these bytes."""
_MAX_UNREAD = 16 << 20
"""Bytes unread by the server above which the peer is disconnected."""

_log = logging.getLogger("rdk.networking")


class DataRelay(asyncio.Protocol):
    def __init__(self, channel: RTCDataChannel, on_end: Callable[[], None]) -> None:
        """`on_end` is called when the relay cannot continue, such as when the server has closed the
        socket."""
        self._channel = channel
        self._on_end = on_end
        self._splitter = MessageSplitter()
        self._transport: asyncio.Transport | None = None
        self._is_closed = False
        channel.bufferedAmountLowThreshold = _MAX_BUFFERED // 2

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast instead of an assertion, because uvloop has its own class of transports.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Forward messages of the server to the peer."""
        assert self._transport is not None
        if self._channel.readyState != "open":
            self._on_end()
            return
        for message in self._splitter.feed(data):
            self._channel.send(message)
        if self._channel.bufferedAmount > _MAX_BUFFERED:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Resume reading from the server, because the peer has caught up."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def forward(self, message: bytes) -> None:
        """Forward a message of the peer to the server."""
        if self._transport is None or self._transport.is_closing():
            return
        if len(message) > MAX_MESSAGE_SIZE or self._transport.get_write_buffer_size() > _MAX_UNREAD:
            _log.warning(
                "disconnecting a WebRTC peer: its messages are too large, or arrive faster than "
                "the server reads them"
            )
            self._on_end()
            return
        self._transport.write(join_messages((message,)))

    def connection_lost(self, _: Exception | None) -> None:
        if not self._is_closed:
            self._on_end()

    def close(self) -> None:
        self._is_closed = True
        if self._transport is not None:
            self._transport.close()
