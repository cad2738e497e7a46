"""Reports clients that connect with a wrong protocol, at most once a minute for each address."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable

INTERVAL = 60.0
"""Seconds between two reports of the same address."""
MAX_ADDRESSES = 256
"""Maximum number of addresses that are remembered."""

_log = logging.getLogger("rdk.networking")


class ClientMistakes:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._reported: OrderedDict[str, float] = OrderedDict()
        """The time of the last report by address, oldest first."""

    def report_tls(self, host: str, port: int) -> None:
        """Log that a client uses TLS on the plaintext port, and how to connect."""
        self._report(
            host,
            f"tried to connect with TLS, but port {port} serves plaintext; connect without TLS: "
            f"http://<host>:{port} in a browser, DialOptions(insecure=True) in the "
            "Python SDK, -plaintext in grpcurl",
        )

    def report_plaintext(self, host: str, port: int) -> None:
        """Log that a client uses plaintext on the TLS port, and how to connect."""
        self._report(
            host,
            f"tried to connect without TLS, but port {port} requires it; connect with TLS: "
            f"https://<host>:{port} in a browser, DialOptions() without insecure in the Python SDK",
        )

    def report_handshake(self, host: str, reason: str) -> None:
        """Log that the TLS handshake with a client failed, with a hint."""
        self._report(
            host,
            f"could not agree on TLS ({reason.replace('_', ' ').lower()}); check that the client "
            "trusts the authority of the server's certificate, and connects by a name in it",
        )

    def report_certificate(self, host: str, reason: str) -> None:
        """Log that the certificate of a client was refused, with a hint."""
        self._report(
            host,
            f"presented a certificate that is not accepted ({reason}); use one that an authority "
            "in network.tls_client_ca_file has signed, or none",
        )

    def report_proxy(self, host: str, reason: str) -> None:
        """Log that a trusted proxy sends an invalid header."""
        self._report(
            host,
            f"is a trusted proxy that sent an invalid PROXY header ({reason}); "
            "check the configuration of the proxy",
        )

    def _report(self, host: str, what: str) -> None:
        now = self._now()
        self._forget_before(now - INTERVAL)
        if host in self._reported or len(self._reported) >= MAX_ADDRESSES:
            return
        self._reported[host] = now
        _log.warning("a client at %s %s", host, what)

    def _forget_before(self, time: float) -> None:
        while self._reported and next(iter(self._reported.values())) <= time:
            self._reported.popitem(last=False)
