"""Keeps the certificate in use equal to the files that the configuration names.

Both files are read and checked together, and copied into one private file: a certificate that is
being replaced, and whose key does not match yet, is never used.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cogwork.core import atomic
from cogwork.core.clock import Clock
from cogwork.front.tls_socket import make_context
from cogwork.robot.tls_report import TlsReport
from cogwork.server.certificate import Certificate, InvalidCertificate, read_certificate

POLL_INTERVAL = 0.25
_COPY_LIFETIME = 5.0
"""Seconds for which the copy of a replaced certificate is kept."""
_WARNING_INTERVAL = 24 * 3600.0
"""Seconds between two warnings about the expiry."""

_log = logging.getLogger("rdk.networking")


class CertificateFiles(NamedTuple):
    certificate: Path
    key: Path


class CertificateWatcher:
    def __init__(
        self,
        directory: Path,
        clock: Clock,
        use: Callable[[Path | None], None],
        publish: Callable[[TlsReport | None], None],
    ) -> None:
        """`directory` is private to this process. `use` takes the file with the certificate and its
        key, or None for plaintext. `publish` takes what the status says about it."""
        self._clock = clock
        self._use = use
        self._publish = publish
        self._copies = (directory / f"certificate{number}.pem" for number in itertools.count(1))
        self._files: CertificateFiles | None = None
        self._seen: object = None
        """The signature of the files when they were last read."""
        self._current: Certificate | None = None
        self._copy: Path | None = None
        self._fault: str | None = None
        self._warned: tuple[str, float] | None = None

    @property
    def is_in_use(self) -> bool:
        return self._current is not None

    async def load(self, files: CertificateFiles | None) -> None:
        """Use the certificate in these files. Raise InvalidCertificate; the current one is kept."""
        self._files = files
        await self._load(files)

    def change_files(self, files: CertificateFiles | None) -> None:
        """Use other files, as soon as `watch` has read them."""
        if files != self._files:
            self._files, self._seen = files, None

    async def watch(self) -> None:
        """Notice changes of the files. Run until cancelled."""
        while True:
            await self._clock.sleep(POLL_INTERVAL)
            files = self._files
            if files is None:
                is_changed = self._current is not None or self._fault is not None
            else:
                is_changed = await asyncio.to_thread(_signature_of, files) != self._seen
            if is_changed:
                await self._try_load(files)
            else:
                self._report()

    async def _try_load(self, files: CertificateFiles | None) -> None:
        try:
            await self._load(files)
        except InvalidCertificate as error:
            kept = "keeping the current certificate" if self._current else "still without TLS"
            _log.error("the new TLS certificate is not used: %s; %s", error, kept)

    async def _load(self, files: CertificateFiles | None) -> None:
        if files is not self._files:
            return  # they were changed meanwhile
        if files is None:
            self._seen, self._fault = None, None
            if self._current is not None:
                self._replace(None, None)
            self._report()
            return
        signature, certificate, copy = await asyncio.to_thread(self._read, files)
        if files is not self._files:
            return
        self._seen = signature
        if isinstance(certificate, InvalidCertificate):
            self._fault = str(certificate)
            self._report()
            raise certificate
        self._fault = None
        if certificate != self._current:
            self._replace(certificate, copy)
        self._report()

    def _read(
        self, files: CertificateFiles
    ) -> tuple[object, Certificate | InvalidCertificate, Path | None]:
        """Read and copy the certificate. Runs in a thread: checking a key takes up to a second."""
        signature = _signature_of(files)
        copy = None
        try:
            certificate = read_certificate(*files)
            if certificate != self._current:
                copy = next(self._copies)
                atomic.write(copy, certificate.pem, 0o600)
                make_context(copy)
        except InvalidCertificate as error:
            return signature, error, None
        except Exception as error:
            # Libraries raise many types for what a file may contain; none of them ends the server.
            if copy is not None:
                copy.unlink(missing_ok=True)
            return signature, InvalidCertificate(f"{files.certificate}: {error}"), None
        return signature, certificate, copy

    def _replace(self, certificate: Certificate | None, copy: Path | None) -> None:
        before, self._copy = self._copy, copy
        is_change = self._current is not None
        self._current = certificate
        self._use(copy)
        if before is not None:
            # The front may be about to read it.
            asyncio.get_running_loop().call_later(_COPY_LIFETIME, before.unlink, True)
        if certificate is not None and is_change:
            _log.info("the TLS certificate was replaced; open connections stay open")

    def _report(self) -> None:
        current = self._current
        if current is None:
            self._publish(TlsReport(fault=self._fault) if self._fault is not None else None)
            return
        warning = current.warning(self._clock.time())
        self._publish(TlsReport(current.names, current.valid_until, warning, self._fault))
        now = self._clock.monotonic()
        if warning is not None and (
            self._warned is None
            or self._warned[0] != warning
            or now - self._warned[1] >= _WARNING_INTERVAL
        ):
            self._warned = warning, now
            _log.warning("%s", warning)


def _signature_of(files: CertificateFiles) -> object:
    return (files, *map(_stat, files))


def _stat(file: Path) -> object:
    try:
        found = file.stat()
    except OSError as error:
        return error.errno
    # The last one changes with the permissions, too.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
