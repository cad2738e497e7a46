"""Joins a cloud: exchanges a claim code for the credentials of the machine."""

from __future__ import annotations

import http.client
import json
import os
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cogwork.agent.errors import CannotJoin
from cogwork.core.files import atomic
from cogwork.net.address import is_loopback
from cogwork.wire.messages.claim_method import CLAIM_PATH

_TIMEOUT: Final = 30.0
_MAX_REPLY: Final = 1 << 16


def redeem(url: str, code: str) -> dict[str, Any]:
    """Exchange the code for the configuration with which the machine joins. Raise CannotJoin."""
    address = urlsplit(url if "://" in url else f"https://{url}")
    host = address.hostname or ""
    if address.scheme not in ("http", "https") or not host:
        raise CannotJoin(
            f"{url} is not the address of a cloud; write it like https://fleet.example"
        )
    is_encrypted = address.scheme == "https"
    if not is_encrypted and not is_loopback(host):
        raise CannotJoin(f"the credentials would be sent unencrypted; use https://{host}")
    try:
        status, body = _post(is_encrypted, host, address.port, {"code": code})
    except ssl.SSLCertVerificationError as error:
        raise CannotJoin(
            f"the certificate of {host} is not trusted: {error.verify_message}; for a cloud with "
            "a CA of its own, set SSL_CERT_FILE to its ca.pem"
        ) from None
    except (OSError, http.client.HTTPException) as error:
        raise CannotJoin(f"{url} does not answer: {error}") from None
    return _parse_reply(url, status, body)


def _parse_reply(url: str, status: int, body: bytes) -> dict[str, Any]:
    try:
        reply: dict[str, Any] = json.loads(body)
        if status != http.client.OK:
            raise CannotJoin(str(reply["message"]))
        is_complete = bool(reply["cloud"]["id"] and reply["cloud"]["secret"])
    except (ValueError, KeyError, TypeError):
        is_complete = False
    if not is_complete:
        raise CannotJoin(f"{url} is not a Cogwork cloud (HTTP status {status})")
    return reply


def write_credentials(path: Path, credentials: dict[str, Any]) -> None:
    """Write the machine's file, and keep its owner. Raise OSError."""
    atomic.make_directory(path.parent)
    owner = path.stat() if path.exists() else path.parent.stat()
    atomic.write(path, json.dumps(credentials, indent=2).encode() + b"\n")
    os.chown(path, owner.st_uid, owner.st_gid)


def _post(
    is_encrypted: bool, host: str, port: int | None, value: dict[str, str]
) -> tuple[int, bytes]:
    connection = (
        http.client.HTTPSConnection(host, port, timeout=_TIMEOUT)
        if is_encrypted
        else http.client.HTTPConnection(host, port, timeout=_TIMEOUT)
    )
    try:
        connection.request(
            "POST", CLAIM_PATH, json.dumps(value), {"Content-Type": "application/json"}
        )
        response = connection.getresponse()
        return response.status, response.read(_MAX_REPLY)
    finally:
        connection.close()
