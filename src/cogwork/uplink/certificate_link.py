"""Fetches, stores and renews the TLS certificate that a cloud issues for its machine."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Final

from viam.gen.app.v1.robot_pb2 import CertificateRequest, CertificateResponse

from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text
from cogwork.core.files import atomic
from cogwork.serving.certificate import InvalidCertificate, read_certificate
from cogwork.uplink.cloud_client import CloudClient
from cogwork.uplink.errors import CloudUnavailable

_CERTIFICATE: Final = "/viam.app.v1.RobotService/Certificate"
_RENEWED_PART: Final = 1 / 3
"""Remaining fraction of a certificate's lifetime below which it is renewed."""

_log = logging.getLogger("rdk.networking")


class CertificateLink:
    def __init__(
        self, file: Path, client: CloudClient, part: str, clock: Clock, use: Callable[[Path], None]
    ) -> None:
        """`file` stores the certificate and its key. `use` is called with the file once it has
        both."""
        self._file = file
        self._client = client
        self._part = part
        self._clock = clock
        self._use = use
        self._problem = ""

    async def use_stored(self) -> None:
        """Use the stored certificate, if it exists."""
        if await asyncio.to_thread(self._file.exists):
            self._use(self._file)

    async def renew(self, name: str, timeout: float) -> None:
        """Fetch a certificate for the name, unless the stored one has the name and need not be
        renewed yet."""
        try:
            if await asyncio.to_thread(self._is_good, name):
                return
            content = await self._fetch(timeout)
            await asyncio.to_thread(self._store, content)
        except (CloudUnavailable, OSError) as error:
            self._report(f"no new TLS certificate: {error_text(error)}")
            return
        self._report("")
        self._use(self._file)

    async def _fetch(self, timeout: float) -> bytes:
        request = CertificateRequest(id=self._part)
        reply = await self._client.call(_CERTIFICATE, request, CertificateResponse, timeout)
        if not reply.tls_certificate or not reply.tls_private_key:
            raise CloudUnavailable("the cloud has no certificate for this machine yet")
        return f"{reply.tls_certificate.rstrip()}\n{reply.tls_private_key}".encode()

    def _is_good(self, name: str) -> bool:
        try:
            found = read_certificate(self._file, self._file)
        except InvalidCertificate:
            return False
        lifetime = found.valid_until - found.valid_from
        left = found.valid_until - self._clock.time()
        return name in found.names and left > lifetime * _RENEWED_PART

    def _store(self, content: bytes) -> None:
        atomic.write(self._file, content, 0o600)

    def _report(self, problem: str) -> None:
        """Log a problem, but not again until it is solved."""
        if problem and not self._problem:
            _log.warning("%s; trying again", problem)
        self._problem = problem
