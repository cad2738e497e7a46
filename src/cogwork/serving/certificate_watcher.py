"""Reloads the server's TLS certificate when its files change.

Both files are read and checked together, and copied into one private file. A certificate without
its matching key is therefore never used while the files are being replaced.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cogwork.core.clock import Clock
from cogwork.core.files import atomic
from cogwork.front.tls_socket import TlsSettings, make_context
from cogwork.serving.certificate import Certificate, InvalidCertificate, read_certificate
from cogwork.serving.tls_report import TlsReport

POLL_INTERVAL = 0.25
_COPY_LIFETIME = 5.0
"""Seconds until the copy of a replaced certificate is deleted."""
_WARNING_INTERVAL = 24 * 3600.0
"""Minimum seconds between two warnings about the expiry."""

_log = logging.getLogger("rdk.networking")


class CertificateFiles(NamedTuple):
    certificate: Path
    key: Path
    client_authority: Path | None = None
    """File with the authorities that sign client certificates."""
    client_names: tuple[str, ...] = ()
    """The names in client certificates that are accepted as a login."""


class CertificateWatcher:
    def __init__(
        self,
        directory: Path,
        clock: Clock,
        use: Callable[[TlsSettings | None], None],
        publish: Callable[[TlsReport | None], None],
    ) -> None:
        """Create a watcher that watches no files yet.

        `directory` is private to this process. `use` receives the TLS settings; None for plaintext.
        `publish` receives the TLS status.
        """
        self._clock = clock
        self._use = use
        self._publish = publish
        self._copies = (directory / f"certificate{number}.pem" for number in itertools.count(1))
        self._files: CertificateFiles | None = None
        self._seen: object = None
        """The result of `_signature_of` when the files were last read."""
        self._current: Certificate | None = None
        self._settings: TlsSettings | None = None
        """The TLS settings in use, whose files are private copies; None for plaintext."""
        self._fault: str | None = None
        self._warned: tuple[str, float] | None = None

    @property
    def is_in_use(self) -> bool:
        return self._current is not None

    async def load(self, files: CertificateFiles | None) -> None:
        """Use the certificate in these files. If it is invalid, keep the current certificate and
        raise InvalidCertificate."""
        self._files = files
        await self._load(files)

    def change_files(self, files: CertificateFiles | None) -> None:
        """Replace the watched files. `watch` reads the new files."""
        if files != self._files:
            self._files, self._seen = files, None

    async def watch(self) -> None:
        """Reload the certificate whenever its files change. Run until cancelled."""
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
            return  # `change_files` was called meanwhile
        if files is None:
            self._seen, self._fault = None, None
            if self._current is not None:
                self._replace(None, None)
            self._report()
            return
        signature, certificate, settings = await asyncio.to_thread(self._read, files)
        if files is not self._files:
            _remove_copies(settings)
            return
        self._seen = signature
        if isinstance(certificate, InvalidCertificate):
            self._fault = str(certificate)
            self._report()
            raise certificate
        self._fault = None
        if settings is not None:
            self._replace(certificate, settings)
        self._report()

    def _read(
        self, files: CertificateFiles
    ) -> tuple[object, Certificate | InvalidCertificate, TlsSettings | None]:
        """Read and copy the certificate. Call it in a thread: checking a key takes up to a second.

        Return no settings if the certificate and the names have not changed.
        """
        signature = _signature_of(files)
        settings = None
        try:
            certificate = read_certificate(*files[:3])
            if certificate != self._current or self._names_in_use != files.client_names:
                settings = self._copy(certificate, files.client_names)
                make_context(settings)
        except InvalidCertificate as error:
            return signature, error, None
        except Exception as error:
            # Libraries raise many types of errors for invalid files, which must not stop the
            # server.
            _remove_copies(settings)
            return signature, InvalidCertificate(f"{files.certificate}: {error}"), None
        return signature, certificate, settings

    @property
    def _names_in_use(self) -> tuple[str, ...]:
        return self._settings.client_names if self._settings is not None else ()

    def _copy(self, certificate: Certificate, client_names: tuple[str, ...]) -> TlsSettings:
        copy, authority = next(self._copies), None
        atomic.write(copy, certificate.pem, 0o600)
        if certificate.client_authority:
            authority = next(self._copies)
            atomic.write(authority, certificate.client_authority, 0o600)
        return TlsSettings(copy, authority, client_names)

    def _replace(self, certificate: Certificate | None, settings: TlsSettings | None) -> None:
        before, self._settings = self._settings, settings
        is_new = self._current is not None and certificate != self._current
        self._current = certificate
        self._use(settings)
        # Delete the replaced files later, because the front may still be about to read them.
        asyncio.get_running_loop().call_later(_COPY_LIFETIME, _remove_copies, before)
        if certificate is not None and is_new:
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
    watched = [file for file in files[:3] if file is not None]
    return (files, *map(_stat, watched))


def _remove_copies(settings: TlsSettings | None) -> None:
    for copy in settings[:2] if settings is not None else ():
        if copy is not None:
            copy.unlink(missing_ok=True)


def _stat(file: Path) -> object:
    try:
        found = file.stat()
    except OSError as error:
        return error.errno
    # Compare the change time, too, which also reflects changes of the permissions.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
