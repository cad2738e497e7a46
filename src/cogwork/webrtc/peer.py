"""One WebRTC peer: its connection, and the relay of its messages to the server.

A peer is a client of this machine, or another machine that this one is a client of.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpCodecCapability,
    RTCRtpSender,
    RTCRtpTransceiver,
    RTCSessionDescription,
)
from aiortc.sdp import candidate_from_sdp

from cogwork.net import session_description
from cogwork.net.session_description import is_usable_candidate
from cogwork.webrtc.aiortc_internals import (
    has_exceeded_window,
    negotiated_codec,
    renew_source,
    set_stream_id,
)
from cogwork.webrtc.data_relay import DataRelay
from cogwork.webrtc.video_sections import VideoSections
from cogwork.webrtc.video_track import VideoTrack

OPEN_TIMEOUT = 20.0
"""Seconds until the channel must be open."""
_LINGER = 3.0
"""Seconds between the end of the channel and that of the connection. The SDK's peer crashes if the
connection ends while it still closes its channel."""
_CLOSE_TIMEOUT = 5.0
_NEGOTIATION_TIMEOUT = 10.0
_ENDED = ("failed", "closed")

_log = logging.getLogger("rdk.networking")


class NotConnected(Exception):
    """The data channel has not opened."""


class SentTrack(NamedTuple):
    codec: str
    sender: RTCRtpSender
    track: VideoTrack


class WebRtcPeer:
    def __init__(
        self,
        ice_servers: Sequence[RTCIceServer],
        on_open: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        """`on_open` is called when the channel is open, `on_end` once, when the peer is gone."""
        self._notify_open = on_open
        self._on_end = on_end
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=list(ice_servers)))
        self._data = self._create_channel("data", 0)
        self._negotiation = self._create_channel("negotiation", 1)
        self._relay = DataRelay(self._data, self.end)
        self._transceivers: dict[str, RTCRtpTransceiver] = {}
        """The tracks that are sent, by the name of the video."""
        self._sections = VideoSections()
        self._negotiating = asyncio.Lock()
        self._answered: asyncio.Future[str] | None = None
        self._gathered = asyncio.Event()
        """Set when the candidates of this side are known, or cannot be."""
        self._is_ended = False
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(OPEN_TIMEOUT, self.end)
        self._opened: asyncio.Future[None] = loop.create_future()
        self._data.on("open", self._on_open)
        self._data.on("message", self._on_message)
        self._data.on("bufferedamountlow", self._relay.resume)
        self._data.on("close", self._on_channel_closed)
        self._connection.on("datachannel", lambda _: self.end())  # there are only these two
        self._negotiation.on("message", self._on_negotiation)
        self._connection.on("connectionstatechange", self._on_state_change)

    async def answer(self, offer: str, server: socket.socket) -> str:
        """Take ownership of the socket to the server, and return the answer to an SDP offer.

        The answer has all candidates. Raise ValueError if the offer cannot be used.
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

        The offer has all candidates. `accept` must follow.
        """
        try:
            await self._connect_relay(server)
            await self._connection.setLocalDescription(await self._connection.createOffer())
        finally:
            self._gathered.set()
        return self._connection.localDescription.sdp

    async def accept(self, answer: str) -> None:
        """Use the answer to the offer, and wait until the channel is open.

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
        """Use a candidate of the peer; empty text for the end of its candidates."""
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

    async def add_track(self, name: str) -> SentTrack:
        """Send a video to the client. Raise ValueError if the client does not take it."""
        async with self._negotiating:
            transceiver = self._find_free_transceiver()
            if transceiver is None:
                transceiver = self._connection.addTransceiver(VideoTrack(), "sendonly")
                transceiver.setCodecPreferences(_preferred_codecs())
            elif transceiver.mid is not None:
                self._sections.recycle(transceiver.mid)
                renew_source(transceiver.sender)
            # Clients recognize the video by this name.
            set_stream_id(transceiver.sender, name.replace(":", "+"))
            self._transceivers[name] = transceiver
            try:
                await self._negotiate()
                codec = negotiated_codec(transceiver)
            except BaseException:
                self._transceivers.pop(name)
                raise
            track = transceiver.sender.track
            assert isinstance(track, VideoTrack)
            return SentTrack(codec, transceiver.sender, track)

    async def remove_track(self, name: str) -> None:
        async with self._negotiating:
            transceiver = self._transceivers.pop(name, None)
            if transceiver is None:
                return
            # Its track stays, for the next video.
            assert isinstance(transceiver.sender.track, VideoTrack)
            transceiver.sender.track.restart()
            if transceiver.mid is not None and self._sections.reject(transceiver.mid):
                await self._offer(self._connection.localDescription.sdp)

    def _find_free_transceiver(self) -> RTCRtpTransceiver | None:
        used = self._transceivers.values()
        return next((each for each in self._connection.getTransceivers() if each not in used), None)

    async def _negotiate(self) -> None:
        """Agree with the client about the current tracks."""
        await self._connection.setLocalDescription(await self._connection.createOffer())
        offer = self._connection.localDescription.sdp
        answer = self._sections.answer_from_client(await self._offer(offer), offer)
        await self._connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def _offer(self, sdp: str) -> str:
        """Offer aiortc's description to the client, and return the client's answer."""
        if self._negotiation.readyState != "open":
            raise ValueError("the client has no channel for negotiation")
        if self._is_ended:
            raise ValueError("the client is gone")
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answered = answered
        offer = self._sections.offer_to_client(sdp)
        self._negotiation.send(session_description.encode("offer", offer))
        try:
            async with asyncio.timeout(_NEGOTIATION_TIMEOUT):
                return await answered
        except TimeoutError:
            raise ValueError("the client did not answer; it may not support video") from None

    def _on_negotiation(self, message: Any) -> None:
        """Take the answer to the last offer, and ignore everything else."""
        if not isinstance(message, str) or self._answered is None or self._answered.done():
            return
        try:
            self._answered.set_result(session_description.decode(message, "answer"))
        except ValueError as error:
            _log.debug("ignored a message of a client: %s", error)

    def end(self) -> None:
        if not self._is_ended:
            self._is_ended = True
            self._timer.cancel()
            if not self._opened.done():
                self._opened.set_exception(NotConnected("the two cannot reach each other"))
                self._opened.exception()  # a client's is not awaited
            self._relay.close()
            if self._answered is not None and not self._answered.done():
                self._answered.set_exception(ValueError("the client is gone"))
            self._on_end()

    async def close(self) -> None:
        """Close the connection, after `end`."""
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                # What it still gathers would stay open otherwise.
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
        """Whether the peer sends more than it may."""
        return has_exceeded_window(self._connection)

    def _on_message(self, message: Any) -> None:
        if isinstance(message, bytes):
            self._relay.forward(message)

    def _on_state_change(self) -> None:
        if self._connection.connectionState in _ENDED:
            self.end()


def _preferred_codecs() -> list[RTCRtpCodecCapability]:
    """Return the codecs to offer: H.264 first, which cameras and hardware produce."""
    codecs = RTCRtpSender.getCapabilities("video").codecs
    return sorted(codecs, key=lambda codec: codec.name.upper() != "H264")
