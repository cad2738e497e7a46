"""The status of the server's TLS certificate."""

from __future__ import annotations

from typing import NamedTuple


class TlsReport(NamedTuple):
    names: tuple[str, ...] = ()
    """The names and addresses for which the certificate is valid."""
    expires_at: float | None = None
    """Seconds since 1970; None if no certificate is in use."""
    warning: str | None = None
    """Warning about the certificate in use; None if it is fine."""
    fault: str | None = None
    """The reason why the certificate on disk is not used; None if it is used."""
