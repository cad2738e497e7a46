"""Report clients that use TLS on the plaintext port."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

INTERVAL = 60.0
"""Seconds between two reports of the same address."""
MAX_ADDRESSES = 256
"""Maximum number of addresses that are remembered."""

_log = logging.getLogger("rdk.networking")


class TlsAttempts:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._reported: OrderedDict[str, float] = OrderedDict()
        """The time of the last report by address, oldest first."""

    def report(self, host: str, port: int) -> None:
        """Log how to connect, at most once a minute for each address."""
        now = self._now()
        self._forget_before(now - INTERVAL)
        if host in self._reported or len(self._reported) >= MAX_ADDRESSES:
            return
        self._reported[host] = now
        _log.warning(
            "a client at %s tried to connect with TLS, but port %d serves plaintext; connect "
            "without TLS: http://<host>:%d in a browser, DialOptions(insecure=True, "
            "disable_webrtc=True) in the Python SDK, -plaintext in grpcurl",
            *(host, port, port),
        )

    def _forget_before(self, time: float) -> None:
        while self._reported and next(iter(self._reported.values())) <= time:
            self._reported.popitem(last=False)
