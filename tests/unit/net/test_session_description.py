from __future__ import annotations

import base64
import json

import pytest

from cogwork.net import session_description
from cogwork.net.session_description import is_usable_candidate

UNENCRYPTED = "v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:0\r\n"
CHANNELS = f"{UNENCRYPTED}a=fingerprint:sha-256 AB:CD\r\n"
VIDEO = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r\na=%s\r\n"
HOST = "candidate:1 1 udp 2130706431 192.0.2.7 52483 typ host"


def encode(value: object) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode()


def test_description_survives_encoding() -> None:
    sdp = "v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\n"
    assert session_description.decode(session_description.encode("offer", sdp), "offer") == sdp


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("not base64!", "not JSON in base64"),
        (base64.b64encode(b"{").decode(), "not JSON in base64"),
        (base64.b64encode(b"[" * 30_000).decode(), "not JSON in base64"),
        (encode({"type": "answer", "sdp": "x"}), 'not of type "offer"'),
        (encode(["offer"]), 'not of type "offer"'),
        (encode({"type": "offer", "sdp": ""}), "has no SDP"),
        (encode({"type": "offer", "sdp": 7}), "has no SDP"),
        (encode({"type": "offer", "sdp": UNENCRYPTED}), "no fingerprint"),
        ("A" * 70_000, "more than 65536 bytes"),
    ],
)
def test_unusable_description_is_explained(text: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        session_description.decode(text, "offer")


@pytest.mark.parametrize(
    "candidate",
    [
        HOST,
        HOST.removeprefix("candidate:"),
        f"{HOST} generation 0 ufrag Ab1 network-cost 999",
        "candidate:2 1 UDP 1 127.0.0.1 1 typ srflx raddr 0.0.0.0 rport 0",
    ],
)
def test_usable_candidates(candidate: str) -> None:
    assert is_usable_candidate(candidate)


@pytest.mark.parametrize(
    "candidate",
    [
        "",
        "candidate:",
        "candidate:1 1 udp 1 3f2c.local 52483 typ host",
        "candidate:1 1 tcp 1 192.0.2.7 9 typ host tcptype active",
        "candidate:1 1 udp 1 2001:db8::7 9 typ host",
        "candidate:1 1 udp 1 192.0.2.7 x typ host",
        "candidate:1 1 udp 1 example.com 9 typ host",
    ],
)
def test_candidates_that_would_be_resolved_or_cannot_be_reached(candidate: str) -> None:
    assert not is_usable_candidate(candidate)


def test_unusable_candidates_are_removed_from_an_offer() -> None:
    lines = ["v=0", f"a={HOST}", "a=candidate:1 1 udp 1 3f2c.local 1 typ host", "a=end"]
    offer = session_description.encode("offer", "\n".join(lines))
    assert session_description.decode(offer, "offer") == f"v=0\r\na={HOST}\r\na=end\r\n"


def test_media_that_a_client_would_send_is_refused() -> None:
    offer = session_description.encode("offer", CHANNELS + VIDEO % "sendrecv")
    with pytest.raises(ValueError, match="data channels only"):
        session_description.decode(offer, "offer")
    rejected = CHANNELS + (VIDEO % "sendrecv").replace("m=video 9", "m=video 0")
    for kind in ("offer", "answer"):
        text = session_description.encode(kind, rejected)
        if kind == "answer":
            assert session_description.decode(text, kind) == rejected
        else:
            with pytest.raises(ValueError, match="data channels only"):
                session_description.decode(text, kind)
    for direction, is_accepted in (("recvonly", True), ("inactive", True), ("sendrecv", False)):
        sdp = CHANNELS + VIDEO % direction
        answer = session_description.encode("answer", sdp)
        if is_accepted:
            assert session_description.decode(answer, "answer") == sdp
        else:
            with pytest.raises(ValueError, match="sends audio or video"):
                session_description.decode(answer, "answer")
