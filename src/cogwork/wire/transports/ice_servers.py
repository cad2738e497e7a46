"""STUN and TURN servers, with which clients and this machine find a way to each other."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

CREDENTIAL_LIFETIME = 24 * 3600
"""Seconds for which generated credentials are valid: a connection may last that long."""


class IceServer(NamedTuple):
    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""


def with_temporary_credential(urls: tuple[str, ...], secret: str, now: float) -> IceServer:
    """Return a TURN server with credentials that expire, made from a secret that it shares.

    The user name is the time when they expire. coturn (`use-auth-secret`) and others know this.
    """
    username = f"{int(now) + CREDENTIAL_LIFETIME}:cogwork"
    digest = hmac.digest(secret.encode(), username.encode(), hashlib.sha1)
    return IceServer(urls, username, base64.b64encode(digest).decode())
