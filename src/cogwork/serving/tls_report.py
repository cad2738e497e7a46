"""What the status says about the TLS certificate of the server."""

from __future__ import annotations

from typing import NamedTuple


class TlsReport(NamedTuple):
    names: tuple[str, ...] = ()
    """The names and addresses that the certificate is valid for."""
    expires_at: float | None = None
    """Seconds since 1970; None if no certificate is in use."""
    warning: str | None = None
    """What is wrong with the certificate in use."""
    fault: str | None = None
    """Why the certificate on disk is not used."""
