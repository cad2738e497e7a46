"""Whom this computer trusts when it connects to others."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc


def tls_credentials() -> grpc.ChannelCredentials:
    """Return the authorities that this computer trusts, or those of SSL_CERT_FILE."""
    file: str | None = ssl.get_default_verify_paths().cafile
    return grpc.ssl_channel_credentials(Path(file).read_bytes() if file is not None else None)
