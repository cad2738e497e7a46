"""HTTP client of a running machine, for commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from cogwork.auth.exempt_paths import LOGIN_PATH
from cogwork.cli.tls_probe import TLS_REASON, expects_tls
from cogwork.core.address import TLS_PREFIX, is_loopback
from cogwork.core.errors import CogworkError

KEY_ID_VARIABLE = "COGWORK_API_KEY_ID"
KEY_VARIABLE = "COGWORK_API_KEY"
"""Environment variables, because other users of a computer can read its command lines."""
ALLOW_PLAINTEXT_VARIABLE = "COGWORK_ALLOW_INSECURE_CREDS"

_TIMEOUT = 10.0
_DECLINED_STATUSES = (
    http.client.BAD_REQUEST,
    http.client.FORBIDDEN,
    http.client.TOO_MANY_REQUESTS,
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


def log_in(address: str, environment: Mapping[str, str] = os.environ) -> str | None:
    """Return a token for the API key in the environment; None if no login is needed.

    Raise Declined if the machine rejects the key.
    """
    key_id, key = environment.get(KEY_ID_VARIABLE), environment.get(KEY_VARIABLE)
    if not key_id or not key:
        return None
    if not _is_confidential(address) and not environment.get(ALLOW_PLAINTEXT_VARIABLE):
        raise Declined(
            f"not sending the API key to {address} without TLS; write https:// before the address, "
            f"or set {ALLOW_PLAINTEXT_VARIABLE}=1"
        )
    login = {"entity": key_id, "credentials": {"type": "api-key", "payload": key}}
    with _open_response(address, "POST", LOGIN_PATH, body=json.dumps(login)) as (response, _):
        if response.status == http.client.NOT_FOUND:
            return None
        _check_response(response, address)
        token: str = json.loads(response.read())["accessToken"]
        return token


def _is_confidential(address: str) -> bool:
    return address.startswith(TLS_PREFIX) or is_loopback(address.rpartition(":")[0])


def _stream_response(address: str, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
    token = log_in(address)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    target = f"{path}?{urlencode(query)}"
    with _open_response(address, "GET", target, headers=headers) as (response, connection):
        _check_response(response, address)
        if connection.sock is not None and "follow" in query:
            connection.sock.settimeout(None)
        yield from response


def _check_response(response: http.client.HTTPResponse, address: str) -> None:
    if response.status == http.client.UNAUTHORIZED:
        why = response.read().decode().strip()
        raise Declined(f"{why}; set {KEY_ID_VARIABLE} and {KEY_VARIABLE} to an API key")
    if response.status in _DECLINED_STATUSES:
        raise Declined(response.read().decode().strip())
    if response.status != http.client.OK:
        raise Unreachable(address, f"HTTP {response.status}: not a Cogwork server")


@contextlib.contextmanager
def _open_response(
    address: str,
    method: str,
    target: str,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Iterator[tuple[http.client.HTTPResponse, http.client.HTTPConnection]]:
    """Raise Unreachable if the machine does not respond, also while the response is read."""
    connection = _connect(address)
    try:
        connection.request(method, target, body, dict(headers or {}))
        yield connection.getresponse(), connection
    except (OSError, ValueError, http.client.HTTPException) as error:
        if isinstance(error, ssl.SSLCertVerificationError):
            raise Unreachable(
                address, f"{error.verify_message}; set SSL_CERT_FILE to the authority's certificate"
            ) from error
        if (
            not address.startswith(TLS_PREFIX)
            and _may_be_tls(error)
            and expects_tls(connection.host, connection.port)
        ):
            raise Unreachable(address, TLS_REASON) from error
        raise Unreachable(address, getattr(error, "strerror", None) or error) from error
    finally:
        connection.close()


def _connect(address: str) -> http.client.HTTPConnection:
    if address.startswith(TLS_PREFIX):
        return http.client.HTTPSConnection(address.removeprefix(TLS_PREFIX), timeout=_TIMEOUT)
    return http.client.HTTPConnection(address, timeout=_TIMEOUT)


def _may_be_tls(error: Exception) -> bool:
    """Whether the server closed the connection, or replied with something that is not HTTP."""
    return isinstance(error, http.client.HTTPException | ConnectionError) and not isinstance(
        error, ConnectionRefusedError
    )
