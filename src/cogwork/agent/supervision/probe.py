"""A probe that asks the running server for its version, and whether it may be restarted."""

from __future__ import annotations

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from cogwork.agent.errors import ServerSilent
from cogwork.core.workers import run_in_thread

TIMEOUT: Final = 10.0
_PATH: Final = "/restart_status"
_MAX_REPLY: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class ServerAnswer:
    version: str
    restart_allowed: bool
    reason: str
    """The reason why a restart is allowed or not."""


class ServerProbe:
    def __init__(self, serving_file: Path) -> None:
        """`serving_file` has the server's address. The server writes this file once it is ready."""
        self._serving_file = serving_file

    def forget(self) -> None:
        """Remove the address of a server that is being replaced."""
        self._serving_file.unlink(missing_ok=True)

    async def ask(self, process_id: int | None) -> ServerAnswer:
        """Ask the server. Raise ServerSilent if the process with this ID does not answer."""
        try:
            return await run_in_thread("probe", TIMEOUT, self._ask, process_id)
        except TimeoutError:
            raise ServerSilent(f"the server did not answer within {TIMEOUT:g} s") from None

    def _ask(self, process_id: int | None) -> ServerAnswer:
        try:
            serving = json.loads(self._serving_file.read_bytes())
            address, owner = urlsplit(str(serving["url"])), int(serving["pid"])
        except FileNotFoundError:
            raise ServerSilent("the server is not ready yet") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ServerSilent(f"the address of the server cannot be read: {error}") from None
        if owner != process_id:
            raise ServerSilent("the server is not ready yet")
        try:
            reply = _get(address.scheme == "https", address.hostname or "", address.port or 0)
            return ServerAnswer(
                str(reply["version"]), reply["restart_allowed"] is True, str(reply["reason"])
            )
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError) as error:
            raise ServerSilent(f"the server does not answer: {error}") from None


def _get(is_encrypted: bool, host: str, port: int) -> dict[str, Any]:
    if is_encrypted:
        # Do not verify the certificate: it is for the machine's name, not for localhost. The
        # connection is local, so this is safe.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            host, port, timeout=TIMEOUT, context=context
        )
    else:
        connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
    try:
        connection.request("GET", _PATH)
        response = connection.getresponse()
        body = response.read(_MAX_REPLY)
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise ValueError(f"HTTP status {response.status}")
    value: dict[str, Any] = json.loads(body)
    return value
