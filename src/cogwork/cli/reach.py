"""How commands reach a running machine."""

from __future__ import annotations

import http.client
import json
from typing import Any

from cogwork.core.errors import CogworkError

_TIMEOUT = 10.0


class Unreachable(CogworkError):
    """No machine answers at the address."""

    def __init__(self, address: str, why: object) -> None:
        super().__init__(
            f"no machine answers at {address} ({why}); start one with "
            "`cogwork-server -config machine.json`, or say where it is with --address"
        )


def machine_view(address: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(address, timeout=_TIMEOUT)
    try:
        connection.request("GET", "/status.json")
        response = connection.getresponse()
        if response.status != http.client.OK:
            raise Unreachable(address, f"it answers {response.status}, as no Cogwork machine does")
        view: dict[str, Any] = json.loads(response.read())
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unreachable(address, getattr(error, "strerror", None) or error) from error
    finally:
        connection.close()
    return view
