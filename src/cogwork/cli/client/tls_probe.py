"""Find out whether a port expects TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl

TLS_REASON = "the port uses TLS; write https:// before the address"
_TIMEOUT = 2.0
_TLS_RECORDS = (b"\x15", b"\x16")
"""First bytes of a TLS reply: an alert, or the handshake."""


def expects_tls(host: str, port: int) -> bool:
    """Return whether the port replies to a TLS handshake with TLS."""
    try:
        with socket.create_connection((host, port), _TIMEOUT) as connection:
            connection.sendall(_make_client_hello())
            return connection.recv(1) in _TLS_RECORDS
    except OSError:
        return False


def _make_client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Do not verify the server: the probe ends before the handshake does.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
    return outgoing.read()
