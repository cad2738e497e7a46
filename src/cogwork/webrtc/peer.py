"""One WebRTC peer: its connection, and the relay of its messages to the server.

A peer is a client of this machine, or another machine that this machine is a client of.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCSessionDescription,
)
from aiortc.sdp import candidate_from_sdp

from cogwork.net.session_description import is_usable_candidate
from cogwork.webrtc.aiortc_internals import has_exceeded_window
from cogwork.webrtc.data_relay import DataRelay
from cogwork.webrtc.video_negotiation import VideoNegotiation

OPEN_TIMEOUT = 20.0
"""Timeout in seconds for opening the channel."""
_LINGER = 3.0
"""Seconds between closing the channel and closing the connection. The SDK's peer crashes if the
connection is closed while the peer is still closing its channel."""
_CLOSE_TIMEOUT = 5.0
_ENDED = ("failed", "closed")

_log = logging.getLogger("rdk.networking")


class NotConnected(Exception):
    """The data channel was not opened."""


class WebRtcPeer:
    def __init__(
        self,
        ice_servers: Sequence[RTCIceServer],
        on_open: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        """`on_open` is called when the channel is open. `on_end` is called once, when the peer has
        disconnected."""
        self._notify_open = on_open
        self._on_end = on_end
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=list(ice_servers)))
        self._data = self._create_channel("data", 0)
        self.videos = VideoNegotiation(self._connection, self._create_channel("negotiation", 1))
        self._relay = DataRelay(self._data, self.end)
        self._gathered = asyncio.Event()
        """Set when the candidates of this computer are known, or gathering them has failed."""
        self._is_ended = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(OPEN_TIMEOUT, self.end)
        self._opened: asyncio.Future[None] = loop.create_future()
        self._data.on("open", self._on_open)
        self._data.on("message", self._on_message)
        self._data.on("bufferedamountlow", self._relay.resume)
        self._data.on("close", self._on_channel_closed)
        # Disconnect a peer that opens further channels.
        self._connection.on("datachannel", lambda _: self.end())
        self._connection.on("connectionstatechange", self._on_state_change)

    async def answer(self, offer: str, server: socket.socket) -> str:
        """Take ownership of the socket to the server, and return the answer to an SDP offer.

        The answer contains all candidates. Raise ValueError if the offer cannot be used.
        """
        try:
            await self._connect_relay(server)
            await self._connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        finally:
            self._gathered.set()
        return self._connection.localDescription.sdp

    async def offer(self, server: socket.socket) -> str:
        """Take ownership of the socket to the server, and return an SDP offer.

        The offer contains all candidates. Call `accept` with the answer afterwards.
        """
        try:
            await self._connect_relay(server)
            await self._connection.setLocalDescription(await self._connection.createOffer())
        finally:
            self._gathered.set()
        return self._connection.localDescription.sdp

    async def accept(self, answer: str) -> None:
        """Apply the answer to the offer, and wait until the channel is open.

        Raise ValueError if the answer cannot be used, and NotConnected if the channel does not
        open.
        """
        await self._connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))
        await self._opened

    async def _connect_relay(self, server: socket.socket) -> None:
        try:
            loop = asyncio.get_running_loop()
            await loop.create_connection(lambda: self._relay, sock=server)
        except OSError:
            server.close()
            raise

    async def add_candidate(self, text: str, mid: str | None, index: int | None) -> None:
        """Add a candidate of the peer. An empty text means that no more candidates follow."""
        if self._is_ended:
            return
        if not text:
            await self._connection.addIceCandidate(None)
            return
        if not is_usable_candidate(text):
            return
        candidate = candidate_from_sdp(text.removeprefix("candidate:"))
        candidate.sdpMid, candidate.sdpMLineIndex = mid, index
        await self._connection.addIceCandidate(candidate)

    def end(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._timer.cancel()
            if not self._opened.done():
                self._opened.set_exception(NotConnected("the two peers cannot reach each other"))
                self._opened.exception()  # avoids a warning if nothing awaits the future
            self._relay.close()
            self.videos.end()
            self._on_end()

    async def close(self) -> None:
        """Close the connection. Call `end` first."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                # Wait until all candidates are gathered: otherwise, their sockets would stay open.
                await self._gathered.wait()
                await self._connection.close()
        except TimeoutError:
            _log.warning("a WebRTC connection did not close in %gs", _CLOSE_TIMEOUT)

    def _create_channel(self, label: str, number: int) -> RTCDataChannel:
        return self._connection.createDataChannel(label, negotiated=True, id=number)

    def _on_open(self) -> None:
        self._timer.cancel()
        self._notify_open()
        if not self._opened.done():
            self._opened.set_result(None)

    def _on_channel_closed(self) -> None:
        self._relay.close()
        asyncio.get_running_loop().call_later(_LINGER, self.end)

    @property
    def is_overloaded(self) -> bool:
        """Whether the peer sends more than the receive window allows."""
        return has_exceeded_window(self._connection)

    def _on_message(self, message: Any) -> None:
        if isinstance(message, bytes):
            self._relay.forward(message)

    def _on_state_change(self) -> None:
        if self._connection.connectionState in _ENDED:
            self.end()
