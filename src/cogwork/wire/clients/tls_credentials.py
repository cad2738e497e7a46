"""TLS credentials with the certificate authorities that this computer trusts."""

from __future__ import annotations

import ssl
from pathlib import Path

import grpc


def tls_credentials(authorities: bytes | None = None) -> grpc.ChannelCredentials:
    """Return credentials that trust these authorities, given as PEM.

    Without authorities, trust the authorities of this computer, or of SSL_CERT_FILE.
    """
    if authorities is not None:
        return grpc.ssl_channel_credentials(authorities)
    file: str | None = ssl.get_default_verify_paths().cafile
    return grpc.ssl_channel_credentials(Path(file).read_bytes() if file is not None else None)
