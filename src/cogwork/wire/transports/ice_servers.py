"""STUN and TURN servers, which connect clients and this machine through routers."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import NamedTuple

CREDENTIAL_LIFETIME = 24 * 3600
"""Seconds for which generated credentials are valid: long, because connections may last long."""


class IceServer(NamedTuple):
    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""


def with_temporary_credential(urls: tuple[str, ...], secret: str, now: float) -> IceServer:
    """Return a TURN server with temporary credentials, derived from the secret that this machine
    shares with the server.

    The user name is the expiry time. coturn (`use-auth-secret`) and other servers support this.
    """
    username = f"{int(now) + CREDENTIAL_LIFETIME}:cogwork"
    digest = hmac.digest(secret.encode(), username.encode(), hashlib.sha1)
    return IceServer(urls, username, base64.b64encode(digest).decode())
