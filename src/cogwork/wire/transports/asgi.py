"""The interface between the HTTP/1.1 server and the applications that it serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Application = Callable[..., Any]
"""An ASGI application."""

SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every response, including responses to malformed requests."""

ABORT_KEY = "abort"
"""Key in the ASGI scope's state for a function that aborts the connection."""
CLIENT_KEY = "client"
"""Key in the ASGI scope's state for the client, a `Peer`."""
