"""Access to internals of aiortc that have no public interface. They are tested with all releases of
aiortc that Cogwork allows."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import aioice.ice
import aiortc.rtcsctptransport
from aiortc import RTCPeerConnection, RTCRtpSender, RTCRtpTransceiver
from aiortc.rtp import (
    RTCP_PSFB_APP,
    RTCP_PSFB_FIR,
    RTCP_PSFB_PLI,
    RTCP_RTPFB_NACK,
    RtcpPsfbPacket,
    RtcpRtpfbPacket,
    unpack_remb_fci,
)
from aiortc.utils import random32

from cogwork.webrtc.inbound_stream import InboundStream
from cogwork.webrtc.retransmissions import Retransmissions

_CONSENT_FAILURES = 5
"""Number of failed checks after which a client counts as disconnected. A connection is checked
every 5 s."""


def allow_slow_networks() -> None:
    """Extend the timeout of each connection check from 0.5 s to 1.5 s."""
    request = aioice.ice.StunProtocol.request

    async def request_again(
        self: Any, message: Any, addr: Any, integrity_key: Any = None, retransmissions: Any = None
    ) -> Any:
        tries = 1 if retransmissions == 0 else retransmissions
        return await request(self, message, addr, integrity_key, tries)

    aioice.ice.StunProtocol.request = request_again  # type: ignore[method-assign, assignment]
    aioice.ice.CONSENT_FAILURES = _CONSENT_FAILURES


def accept_any_order() -> None:
    """Deliver ordered messages even if the peer numbers their chunks in a different order."""
    aiortc.rtcsctptransport.InboundStream = InboundStream  # type: ignore[misc, assignment]


def set_stream_id(sender: RTCRtpSender, stream_id: str) -> None:
    """Set the stream ID by which clients recognize a track."""
    sender._stream_id = stream_id


def renew_source(sender: RTCRtpSender) -> None:
    """Change the SSRC of a sender, because clients in Go announce a video only for a new SSRC."""
    router = sender.transport._rtp_router
    router.unregister_sender(sender)
    sender._ssrc, sender._rtx_ssrc = random32(), random32()
    router.register_sender(sender, ssrc=sender._ssrc)


def negotiated_codec(transceiver: RTCRtpTransceiver) -> str:
    """Return the name of the codec that the client has chosen. Raise ValueError if there is
    none."""
    codecs = transceiver._codecs
    if not codecs:
        raise ValueError("the client supports neither H.264 nor VP8")
    return codecs[0].name.upper()


def has_exceeded_window(connection: RTCPeerConnection) -> bool:
    """Return whether a client sends more on its channels than the receive window allows."""
    return connection.sctp is not None and connection.sctp._advertised_rwnd < 0


def watch_feedback(
    sender: RTCRtpSender, on_key: Callable[[], None], on_bitrate: Callable[[int], None]
) -> None:
    """Watch the feedback of a client, and limit the number of packets that are retransmitted.

    `on_key` is called when the client needs a key frame. `on_bitrate` is called with the bits per
    second that the client's network can transmit.
    """
    retransmissions = Retransmissions()

    async def watch(packet: Any) -> None:
        if isinstance(packet, RtcpRtpfbPacket) and packet.fmt == RTCP_RTPFB_NACK:
            for number in retransmissions.choose(packet.lost, time.monotonic()):
                await sender._retransmit(number)
            if retransmissions.are_exhausted:
                on_key()
            return
        if isinstance(packet, RtcpPsfbPacket):
            if packet.fmt in (RTCP_PSFB_FIR, RTCP_PSFB_PLI):
                on_key()
                return
            if packet.fmt == RTCP_PSFB_APP:
                bitrate = _read_bitrate(packet, sender._ssrc)
                if bitrate is not None:
                    on_bitrate(bitrate)
                return
        # Call the method of the class, because an earlier call may have replaced the method of this
        # sender.
        await RTCRtpSender._handle_rtcp_packet(sender, packet)

    sender._handle_rtcp_packet = watch  # type: ignore[method-assign]


def _read_bitrate(packet: RtcpPsfbPacket, ssrc: int) -> int | None:
    try:
        bitrate, ssrcs = unpack_remb_fci(packet.fci)
    except ValueError:
        return None
    return bitrate if ssrc in ssrcs else None
