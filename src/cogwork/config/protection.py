"""Refuse configurations that ask for login or TLS, which the server does not support yet."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.config import codes
from cogwork.config.diagnostic_collector import DiagnosticCollector
from cogwork.config.diagnostics import Effect
from cogwork.config.positions import Json, Pointer, format_pointer

_CERTIFICATE_KEYS = ("tls_cert_file", "tls_key_file")


def refuse_unsupported(value: Mapping[str, Json], collector: DiagnosticCollector) -> None:
    """Check the file as written, because even a misspelled key in "auth" asks for login."""
    if _asks_for_login(value.get("auth")):
        _refuse(
            "login",
            ("auth",),
            'remove "auth" and bind to localhost to serve this computer only, without login',
            collector,
        )
    if (key := _find_certificate_key(value.get("network"))) is not None:
        _refuse(
            "TLS",
            ("network", key),
            'remove the certificate and its key, or set "no_tls", to serve without TLS',
            collector,
        )


def _asks_for_login(auth: Json) -> bool:
    if isinstance(auth, dict):
        return any(member not in (None, [], {}) for member in auth.values())
    return auth is not None


def _find_certificate_key(network: Json) -> str | None:
    """Return the key that asks for TLS, or None."""
    if not isinstance(network, dict) or network.get("no_tls") is True:
        return None
    return next((key for key in _CERTIFICATE_KEYS if network.get(key) not in (None, "")), None)


def _refuse(what: str, at: Pointer, hint: str, collector: DiagnosticCollector) -> None:
    collector.add(
        codes.UNSUPPORTED_PROTECTION,
        f"{what} is configured at {format_pointer(at)}, but this release does not support it",
        at,
        Effect.REFUSED,
        hint=hint,
    )
