"""HTTP client of a running machine, for commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from cogwork.auth.exempt_paths import LOGIN_PATH
from cogwork.cli.client.tls_probe import TLS_REASON, expects_tls
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.net.address import TLS_PREFIX, is_loopback_address

KEY_ID_VARIABLE = "COGWORK_API_KEY_ID"
KEY_VARIABLE = "COGWORK_API_KEY"
"""The API key is read from the environment, because other users of a computer can read command
lines."""
ALLOW_PLAINTEXT_VARIABLE = "COGWORK_ALLOW_INSECURE_CREDS"

NOT_A_SERVER = "not a Cogwork server"
LOGIN_HINT = f"set {KEY_ID_VARIABLE} and {KEY_VARIABLE} to an API key"
API_KEY_TYPE = "api-key"

_TIMEOUT = 10.0
_JOB_PATH = "/job/run"
_JOB_TIMEOUT = 630.0
"""The machine ends a run after ten minutes, and tells so."""
_NO_HTTP1 = "TLSV1_ALERT_NO_APPLICATION_PROTOCOL"
"""The error of a TLS server that only speaks HTTP/2."""
_DECLINED_STATUSES = (
    http.client.BAD_REQUEST,
    http.client.FORBIDDEN,
    http.client.CONFLICT,
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


class NotCogwork(Unreachable):
    """A server answers, but not as a Cogwork server would: it may be a server of another kind."""


class Declined(CogworkError):
    """The machine rejected the request."""


def fetch_status(address: str) -> dict[str, Any]:
    view = _fetch_json(address, "/status.json", {})
    if not isinstance(view, dict) or "resources" not in view:
        raise NotCogwork(address, f"the reply is not a status: {NOT_A_SERVER}")
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


class JobOutcome(NamedTuple):
    error: str | None
    """Why the run failed; None if it succeeded."""
    seconds: float


def run_job(address: str, name: str) -> JobOutcome:
    """Run a job of the machine, and return how the run ended."""
    token = log_in(address)
    headers = {
        # Only a page of the machine may do this, and programs that say to be one: not other sites.
        "Origin": address if address.startswith(TLS_PREFIX) else f"http://{address}",
        **({"Authorization": f"Bearer {token}"} if token is not None else {}),
    }
    body = json.dumps({"name": name})
    with _open_response(
        address, "POST", _JOB_PATH, body=body, headers=headers, timeout=_JOB_TIMEOUT
    ) as (response, _):
        _check_response(response, address)
        try:
            reply = json.loads(response.read())
            return JobOutcome(reply["error"], float(reply["seconds"]))
        except (ValueError, KeyError, TypeError):
            raise NotCogwork(address, f"the reply is not about a run: {NOT_A_SERVER}") from None


def _fetch_json(address: str, path: str, query: Mapping[str, str]) -> Any:
    try:
        return json.loads(b"".join(_stream_response(address, path, query)))
    except ValueError as error:
        raise NotCogwork(address, f"the reply is not JSON: {NOT_A_SERVER}") from error


class LoginKey(NamedTuple):
    id: str
    secret: str


def find_api_key(address: str) -> LoginKey | None:
    """Return the API key in the environment, or None.

    Raise Declined if the key must not be sent to the address.
    """
    key_id, key = os.environ.get(KEY_ID_VARIABLE), os.environ.get(KEY_VARIABLE)
    if not key_id or not key:
        return None
    if not _is_confidential(address) and not os.environ.get(ALLOW_PLAINTEXT_VARIABLE):
        raise Declined(
            f"not sending the API key to {address} without TLS; write https:// before the address, "
            f"or set {ALLOW_PLAINTEXT_VARIABLE}=1"
        )
    return LoginKey(key_id, key)


def log_in(address: str) -> str | None:
    """Return a token for the API key in the environment; None if no login is needed.

    Raise Declined if the machine rejects the key.
    """
    key = find_api_key(address)
    if key is None:
        return None
    login = {"entity": key.id, "credentials": {"type": API_KEY_TYPE, "payload": key.secret}}
    with _open_response(address, "POST", LOGIN_PATH, body=json.dumps(login)) as (response, _):
        if response.status == http.client.NOT_FOUND:
            return None
        _check_response(response, address)
        return _read_token(response.read(), address)


def _read_token(reply: bytes, address: str) -> str:
    try:
        return str(json.loads(reply)["accessToken"])
    except (ValueError, KeyError, TypeError):
        raise NotCogwork(address, f"the reply is not a token: {NOT_A_SERVER}") from None


def _is_confidential(address: str) -> bool:
    return address.startswith(TLS_PREFIX) or is_loopback_address(address)


def _stream_response(address: str, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
    token = log_in(address)
    headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
    target = f"{path}?{urlencode(query)}"
    with _open_response(address, "GET", target, headers=headers) as (response, connection):
        _check_response(response, address)
        if "json" not in response.headers.get_content_subtype():
            raise NotCogwork(address, f"the reply is not JSON: {NOT_A_SERVER}")
        if connection.sock is not None and "follow" in query:
            connection.sock.settimeout(None)
        yield from response


def _check_response(response: http.client.HTTPResponse, address: str) -> None:
    if response.status == http.client.OK:
        return
    why = response.read().decode(errors="replace").strip() if _is_plain_text(response) else ""
    if why and response.status == http.client.UNAUTHORIZED:
        raise Declined(f"{why}; {LOGIN_HINT}")
    if why and response.status in _DECLINED_STATUSES:
        raise Declined(why)
    raise NotCogwork(address, f"HTTP {response.status}: {NOT_A_SERVER}")


def _is_plain_text(response: http.client.HTTPResponse) -> bool:
    """Return whether a refusal may come from a machine. A machine refuses with a plain-text
    sentence."""
    return (
        response.headers.get_content_type() == "text/plain" and "Content-Type" in response.headers
    )


@contextlib.contextmanager
def _open_response(
    address: str,
    method: str,
    target: str,
    *,
    body: str | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = _TIMEOUT,
) -> Iterator[tuple[http.client.HTTPResponse, http.client.HTTPConnection]]:
    """Make a request. Raise Unreachable if the machine stops responding, even during the
    response."""
    connection = _make_connection(address, timeout)
    response = None
    try:
        connection.request(method, target, body, dict(headers or {}))
        response = connection.getresponse()
        yield response, connection
    except (OSError, ValueError, http.client.HTTPException) as error:
        if response is None:
            raise _explain_silence(error, address, connection) from error
        raise Unreachable(address, os_reason(error)) from error
    finally:
        if response is not None:
            response.close()
        connection.close()


def _explain_silence(
    error: Exception, address: str, connection: http.client.HTTPConnection
) -> Unreachable:
    """Return an error that explains why the server did not respond."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Unreachable(
            address, f"{error.verify_message}; set SSL_CERT_FILE to the authority's certificate"
        )
    why = os_reason(error)
    if not _speaks_something_else(error):
        return Unreachable(address, why)
    uses_tls = address.startswith(TLS_PREFIX)
    if not uses_tls and expects_tls(connection.host, connection.port):
        return Unreachable(address, TLS_REASON)
    return NotCogwork(address, why)


def _make_connection(address: str, timeout: float) -> http.client.HTTPConnection:
    if address.startswith(TLS_PREFIX):
        return http.client.HTTPSConnection(address.removeprefix(TLS_PREFIX), timeout=timeout)
    return http.client.HTTPConnection(address, timeout=timeout)


def _speaks_something_else(error: Exception) -> bool:
    """Return whether the server closed the connection, or replied with a protocol other than
    HTTP/1.1."""
    if isinstance(error, ssl.SSLError):
        return error.reason == _NO_HTTP1
    return isinstance(error, http.client.HTTPException | ConnectionError) and not isinstance(
        error, ConnectionRefusedError
    )
