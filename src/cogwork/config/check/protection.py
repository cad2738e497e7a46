"""Refuse configurations that ask for client certificates but cannot check them."""

from __future__ import annotations

from collections.abc import Mapping

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Effect
from cogwork.config.schema import codes
from cogwork.config.text.positions import Json, format_pointer

_CLIENT_CERTIFICATES = ("auth", "tls_auth_entities")
_REQUIRED = ("tls_cert_file", "tls_client_ca_file")


def refuse_incomplete(value: Mapping[str, Json], collector: DiagnosticCollector) -> None:
    """Refuse client certificates that cannot be verified. Check the values before validation,
    because even an invalid value shows that the user wants a login."""
    auth, network = value.get("auth"), value.get("network")
    if not isinstance(auth, dict) or not auth.get("tls_auth_entities"):
        return
    network = network if isinstance(network, dict) else {}
    missing = next((name for name in _REQUIRED if not network.get(name)), None)
    if missing is not None:
        problem, hint = f'but "network" has no "{missing}"', f'set "{missing}"'
    elif network.get("no_tls"):
        problem, hint = 'but "no_tls" is set', 'remove "no_tls"'
    else:
        return
    collector.add(
        codes.INCOMPLETE_PROTECTION,
        f"{format_pointer(_CLIENT_CERTIFICATES)} enables client certificates, {problem}",
        _CLIENT_CERTIFICATES,
        Effect.REFUSED,
        hint=f'{hint}, or remove "tls_auth_entities"',
    )
