"""Refuse configurations that ask for client certificates, which are not supported yet."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.config import codes
from cogwork.config.diagnostic_collector import DiagnosticCollector
from cogwork.config.diagnostics import Effect
from cogwork.config.positions import Json, format_pointer

_CLIENT_CERTIFICATES = ("auth", "tls_auth_entities")


def refuse_unsupported(value: Mapping[str, Json], collector: DiagnosticCollector) -> None:
    """Check the file as written, because even an invalid value asks for protection."""
    auth = value.get("auth")
    if isinstance(auth, dict) and auth.get("tls_auth_entities"):
        collector.add(
            codes.UNSUPPORTED_PROTECTION,
            f"client certificates are configured at {format_pointer(_CLIENT_CERTIFICATES)}, but "
            "this release does not support them",
            _CLIENT_CERTIFICATES,
            Effect.REFUSED,
            hint='remove "tls_auth_entities", and let clients log in with an API key',
        )
