"""A file with the server's address, for the agent that supervises it."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cogwork.core.files import atomic
from cogwork.net.address import Address

VARIABLE: Final = "COGWORK_SERVING_FILE"
_ALL_INTERFACES: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104

_log = logging.getLogger("rdk.networking")


class ServingFile:
    def __init__(self, environment: Mapping[str, str]) -> None:
        path = environment.get(VARIABLE)
        self._path = Path(path) if path else None
        self._written = b""

    def write(self, addresses: list[tuple[str, int]], *, is_encrypted: bool) -> None:
        """Write the address at which this computer reaches the server, unless the file is up to
        date."""
        if self._path is None or not addresses:
            return
        host, port = addresses[0]
        address = Address(_ALL_INTERFACES.get(host, host), port)
        url = f"{'https' if is_encrypted else 'http'}://{address}"
        data = json.dumps({"pid": os.getpid(), "url": url}).encode()
        if data == self._written:
            return
        try:
            atomic.write(self._path, data)
        except OSError as error:
            _log.warning(
                "cannot write %s, so the agent cannot reach this server: %s", self._path, error
            )
        else:
            self._written = data
