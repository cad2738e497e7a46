"""HTTP client of a running machine, for commands."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from cogwork.cli.tls_probe import TLS_REASON, expects_tls
from cogwork.core.errors import CogworkError

_TIMEOUT = 10.0
_DECLINED_STATUSES = (
    http.client.BAD_REQUEST,
    http.client.FORBIDDEN,
    http.client.MISDIRECTED_REQUEST,
    http.client.SERVICE_UNAVAILABLE,
)
"""Statuses whose body is an error message for the user."""


class Unreachable(CogworkError):
    """The machine cannot be reached."""

    def __init__(self, address: str, why: object) -> None:
        super().__init__(
            f"cannot reach a machine at {address} ({why}); start one with "
            "`cogwork-server -config machine.json`, or set --address"
        )


class Declined(CogworkError):
    """The machine rejected the request."""


def fetch_status(address: str) -> dict[str, Any]:
    view: dict[str, Any] = _fetch_json(address, "/status.json", {})
    return view


def fetch_history(address: str, resource: str | None) -> list[dict[str, Any]]:
    """Fetch the events of one resource, or of the whole machine."""
    query = {} if resource is None else {"resource": resource}
    events: list[dict[str, Any]] = _fetch_json(address, "/history.json", query)
    return events


def stream_log_lines(address: str, query: Mapping[str, str]) -> Iterator[str]:
    """Yield log entries as JSON lines until the machine ends the response."""
    for line in _stream_response(address, "/logs.jsonl", query):
        yield line.decode().rstrip("\n")


def _fetch_json(address: str, path: str, query: Mapping[str, str]) -> Any:
    try:
        return json.loads(b"".join(_stream_response(address, path, query)))
    except ValueError as error:
        raise Unreachable(address, "the reply is not JSON: not a Cogwork server") from error


def _stream_response(address: str, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
    try:
        connection.request("GET", f"{path}?{urlencode(query)}")
        response = connection.getresponse()
        if response.status in _DECLINED_STATUSES:
            raise Declined(response.read().decode().strip())
        if response.status != http.client.OK:
            raise Unreachable(address, f"HTTP {response.status}: not a Cogwork server")
        if connection.sock is not None and "follow" in query:
            connection.sock.settimeout(None)
        yield from response
    except (OSError, ValueError, http.client.HTTPException) as error:
        if _may_be_tls(error) and expects_tls(connection.host, connection.port):
            raise Unreachable(address, TLS_REASON) from error
        raise Unreachable(address, getattr(error, "strerror", None) or error) from error
    finally:
        connection.close()


def _may_be_tls(error: Exception) -> bool:
    """Whether the server closed the connection, or replied with something that is not HTTP."""
    return isinstance(error, http.client.HTTPException | ConnectionError) and not isinstance(
        error, ConnectionRefusedError
    )
