"""Explain to users why a server cannot be reached: gRPC's own messages vary or are empty."""

from __future__ import annotations

import socket

import grpc

from cogwork.cli.client.http_client import NOT_A_SERVER
from cogwork.cli.client.tls_probe import TLS_REASON, expects_tls
from cogwork.core.os_error_text import os_reason
from cogwork.net.address import TLS_PREFIX

HANDSHAKE_FAILED = "the TLS handshake failed"

_PROBE_TIMEOUT = 3.0
_SIGNS_OF_NO_REPLY = ("failed to connect", "errors resolving", "DNS resolution failed")
_SIGNS_OF_ANOTHER_SERVER = ("http2 header with status", "http1.x server")
"""Parts of gRPC's error messages that show that the server does not speak gRPC."""


def find_connection_fault(error: grpc.RpcError, address: str) -> str | None:
    """Return the reason why the server cannot be reached, or None if it replied."""
    code, details = error.code(), error.details() or ""
    if any(sign in details for sign in _SIGNS_OF_ANOTHER_SERVER):
        return NOT_A_SERVER
    if code is grpc.StatusCode.UNAVAILABLE and any(sign in details for sign in _SIGNS_OF_NO_REPLY):
        return _probe(address) or _explain_foreign_server(address)
    if code is grpc.StatusCode.DEADLINE_EXCEEDED:
        return _probe(address)
    return None


def _probe(address: str) -> str | None:
    """Return the reason why a TCP connection fails, worded like the errors of `http_client`; None
    if the connection succeeds.

    gRPC's own wording depends on the address, and some reasons are missing.
    """
    try:
        socket.create_connection(_split_address(address), _PROBE_TIMEOUT).close()
    except (OSError, ValueError) as error:
        return os_reason(error)
    return None


def _explain_foreign_server(address: str) -> str:
    """Return the reason why a server accepts connections, but not the calls of the command."""
    if address.startswith(TLS_PREFIX):
        return HANDSHAKE_FAILED
    return TLS_REASON if expects_tls(*_split_address(address)) else NOT_A_SERVER


def _split_address(address: str) -> tuple[str, int]:
    host, _, port = address.removeprefix(TLS_PREFIX).rpartition(":")
    return host.strip("[]"), int(port)
