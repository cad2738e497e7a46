"""WebRTC session descriptions and candidates, as signaling servers transmit them."""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from typing import Literal

MAX_SIZE = 64 * 1024
"""Maximum bytes of a description: the limit of a message of a data channel."""

DescriptionType = Literal["offer", "answer"]


def encode(kind: DescriptionType, sdp: str) -> str:
    return base64.b64encode(json.dumps({"type": kind, "sdp": sdp}).encode()).decode()


def decode(text: str, kind: DescriptionType) -> str:
    """Return the SDP of a description. Raise ValueError if the description is invalid or of another
    type."""
    if len(text) > MAX_SIZE:
        raise ValueError(f"the {kind} has more than {MAX_SIZE} bytes")
    try:
        found = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError, RecursionError):
        raise ValueError(f"the {kind} is not JSON in base64") from None
    if not isinstance(found, dict) or found.get("type") != kind:
        raise ValueError(f'the description is not of type "{kind}"')
    sdp = found.get("sdp")
    if not isinstance(sdp, str) or not sdp:
        raise ValueError(f"the {kind} has no SDP")
    _require_fingerprint(sdp, kind)
    _check_media(sdp, kind)
    return without_unusable_candidates(sdp)


def _require_fingerprint(sdp: str, kind: DescriptionType) -> None:
    """Reject a description without encryption. Otherwise, the WebRTC library would fail later, in a
    background task."""
    has_media = re.search(r"^m=", sdp, re.MULTILINE)
    if has_media and not re.search(r"^a=fingerprint:", sdp, re.MULTILINE):
        raise ValueError(f"the {kind} has no fingerprint of a certificate")


def _check_media(sdp: str, kind: DescriptionType) -> None:
    """Reject audio and video from a client, because the machine does not use them."""
    for section in re.split(r"^m=", sdp, flags=re.MULTILINE)[1:]:
        if section.startswith("application"):
            continue
        if kind == "offer":
            raise ValueError("an offer may have data channels only; add streams after connecting")
        is_rejected = re.match(r"\w+ 0 ", section)
        is_received = any(f"\na={each}" in section for each in ("recvonly", "inactive"))
        if not is_rejected and not is_received:
            raise ValueError("the answer sends audio or video, which this machine does not receive")


def without_unusable_candidates(sdp: str) -> str:
    """Remove candidates that cannot be reached, so that no library tries to resolve them."""
    lines = sdp.splitlines()
    kept = [
        line
        for line in lines
        if not line.startswith("a=candidate:") or is_usable_candidate(line.removeprefix("a="))
    ]
    return "".join(f"{line}\r\n" for line in kept)


def is_usable_candidate(candidate: str) -> bool:
    """Return whether a candidate is a numeric UDP address.

    Browsers hide addresses behind names that end in `.local`. They can reach this machine at its
    own candidates nevertheless.
    """
    parts = candidate.removeprefix("candidate:").split()
    if len(parts) < 8 or parts[2].lower() != "udp" or not parts[5].isdecimal():
        return False
    try:
        return ipaddress.ip_address(parts[4]).version == 4
    except ValueError:
        return False
