"""Negotiates with a client which videos it receives, over a separate data channel."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, NamedTuple

from aiortc import (
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpCodecCapability,
    RTCRtpSender,
    RTCRtpTransceiver,
    RTCSessionDescription,
)

from cogwork.net import session_description
from cogwork.webrtc.aiortc_internals import negotiated_codec, renew_source, set_stream_id
from cogwork.webrtc.video_sections import VideoSections
from cogwork.webrtc.video_track import VideoTrack

_NEGOTIATION_TIMEOUT = 10.0

_log = logging.getLogger("rdk.networking")


class SentTrack(NamedTuple):
    codec: str
    sender: RTCRtpSender
    track: VideoTrack


class VideoNegotiation:
    def __init__(self, connection: RTCPeerConnection, channel: RTCDataChannel) -> None:
        self._connection = connection
        self._channel = channel
        self._transceivers: dict[str, RTCRtpTransceiver] = {}
        """The transceivers that send videos, by the name of the video."""
        self._sections = VideoSections()
        self._negotiating = asyncio.Lock()
        self._answered: asyncio.Future[str] | None = None
        self._is_ended = False
        channel.on("message", self._on_message)

    async def add_track(self, name: str) -> SentTrack:
        """Send a video to the client. Raise ValueError if the client does not accept it."""
        async with self._negotiating:
            transceiver = self._find_free_transceiver()
            if transceiver is None:
                transceiver = self._connection.addTransceiver(VideoTrack(), "sendonly")
                transceiver.setCodecPreferences(_preferred_codecs())
            elif transceiver.mid is not None:
                self._sections.recycle(transceiver.mid)
                renew_source(transceiver.sender)
            # Clients recognize the video by its stream ID.
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
            # Restart the track instead of removing it, because the transceiver reuses it for the
            # next video.
            assert isinstance(transceiver.sender.track, VideoTrack)
            transceiver.sender.track.restart()
            if transceiver.mid is not None and self._sections.reject(transceiver.mid):
                await self._offer(self._connection.localDescription.sdp)

    def end(self) -> None:
        """Abort the negotiation in progress, because the client has disconnected."""
        self._is_ended = True
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(ValueError("the client has disconnected"))

    def _find_free_transceiver(self) -> RTCRtpTransceiver | None:
        used = self._transceivers.values()
        return next((each for each in self._connection.getTransceivers() if each not in used), None)

    async def _negotiate(self) -> None:
        """Negotiate the current tracks with the client."""
        await self._connection.setLocalDescription(await self._connection.createOffer())
        offer = self._connection.localDescription.sdp
        answer = self._sections.answer_from_client(await self._offer(offer), offer)
        await self._connection.setRemoteDescription(RTCSessionDescription(answer, "answer"))

    async def _offer(self, sdp: str) -> str:
        """Send aiortc's description as an offer to the client, and return the client's answer."""
        if self._channel.readyState != "open":
            raise ValueError("the client has no open channel to negotiate videos")
        if self._is_ended:
            raise ValueError("the client has disconnected")
        answered: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._answered = answered
        offer = self._sections.offer_to_client(sdp)
        self._channel.send(session_description.encode("offer", offer))
        try:
            async with asyncio.timeout(_NEGOTIATION_TIMEOUT):
                return await answered
        except TimeoutError:
            raise ValueError("the client did not answer; it may not support video") from None

    def _on_message(self, message: Any) -> None:
        """Handle the answer to the last offer. Ignore all other messages."""
        if not isinstance(message, str) or self._answered is None or self._answered.done():
            return
        try:
            self._answered.set_result(session_description.decode(message, "answer"))
        except ValueError as error:
            _log.debug("ignored an invalid answer from a WebRTC client to a video offer: %s", error)


def _preferred_codecs() -> list[RTCRtpCodecCapability]:
    """Return the codecs to offer. H.264 comes first, because cameras and hardware encoders produce
    it."""
    codecs = RTCRtpSender.getCapabilities("video").codecs
    return sorted(codecs, key=lambda codec: codec.name.upper() != "H264")
