"""How commands reach a running machine."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

from cogwork.core.errors import CogworkError

_TIMEOUT = 10.0


class Unreachable(CogworkError):
    """No machine answers at the address."""

    def __init__(self, address: str, why: object) -> None:
        super().__init__(
            f"no machine answers at {address} ({why}); start one with "
            "`cogwork-server -config machine.json`, or say where it is with --address"
        )


class Declined(CogworkError):
    """The machine answers that it cannot do what it is asked."""


def machine_view(address: str) -> dict[str, Any]:
    view: dict[str, Any] = _whole(address, "/status.json", {})
    return view


def history(address: str, resource: str | None) -> list[dict[str, Any]]:
    """Of one resource, or of all."""
    query = {} if resource is None else {"resource": resource}
    told: list[dict[str, Any]] = _whole(address, "/history.json", query)
    return told


def log_lines(address: str, query: Mapping[str, str]) -> Iterator[str]:
    """Each is JSON. Ends when the machine has no more to say."""
    for line in _asked(address, "/logs.jsonl", query):
        yield line.decode().rstrip("\n")


def _whole(address: str, path: str, query: Mapping[str, str]) -> Any:
    try:
        return json.loads(b"".join(_asked(address, path, query)))
    except ValueError as error:
        raise Unreachable(address, "what answers there is no Cogwork machine") from error


def _asked(address: str, path: str, query: Mapping[str, str]) -> Iterator[bytes]:
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
    try:
        connection.request("GET", f"{path}?{urlencode(query)}")
        response = connection.getresponse()
        if response.status == http.client.BAD_REQUEST:
            raise Declined(response.read().decode().strip())
        if response.status != http.client.OK:
            raise Unreachable(address, f"it answers {response.status}, as no Cogwork machine does")
        if connection.sock is not None and "follow" in query:
            connection.sock.settimeout(None)
        yield from response
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(address, getattr(error, "strerror", None) or error) from error
    finally:
        connection.close()
