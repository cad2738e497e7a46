from __future__ import annotations

import asyncio
import datetime
import logging
import stat
from pathlib import Path

import pytest
import trustme

from cogwork.core.clock import ManualClock
from cogwork.robot.tls_report import TlsReport
from cogwork.server.certificate import InvalidCertificate, read_certificate
from cogwork.server.certificate_watcher import (
    POLL_INTERVAL,
    CertificateFiles,
    CertificateWatcher,
)

AUTHORITY = trustme.CA()
DAY = 24 * 3600.0
END = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)


def issue(files: CertificateFiles, end: datetime.datetime | None = None) -> None:
    start = end - datetime.timedelta(days=100) if end is not None else None
    issued = AUTHORITY.issue_cert("robot.example", "192.0.2.7", not_before=start, not_after=end)
    issued.cert_chain_pems[0].write_to_path(str(files.certificate))
    issued.private_key_pem.write_to_path(str(files.key))


@pytest.fixture
def files(tmp_path: Path) -> CertificateFiles:
    files = CertificateFiles(tmp_path / "cert.pem", tmp_path / "key.pem")
    issue(files, END)
    return files


class Watched:
    def __init__(self, directory: Path, before: float = 50 * DAY) -> None:
        """`before`: seconds until the certificate expires."""
        self.clock = ManualClock(END.timestamp() - before)
        self.used: list[Path | None] = []
        self.report: TlsReport | None = None
        self.watcher = CertificateWatcher(directory, self.clock, self.used.append, self._publish)

    def _publish(self, report: TlsReport | None) -> None:
        self.report = report


@pytest.fixture
def watched(tmp_path: Path) -> Watched:
    directory = tmp_path / "private"
    directory.mkdir()
    return Watched(directory)


async def test_certificate_and_key_are_copied_into_one_private_file(
    watched: Watched, files: CertificateFiles
) -> None:
    watched.watcher.load(files)
    (copy,) = watched.used
    assert copy is not None
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert files.certificate.read_bytes().strip() in copy.read_bytes()
    assert files.key.read_bytes().strip() in copy.read_bytes()
    expected = ("robot.example", "192.0.2.7")
    assert watched.report == TlsReport(expected, END.timestamp(), None, None)


async def test_unchanged_files_are_not_used_again(
    watched: Watched, files: CertificateFiles
) -> None:
    watched.watcher.load(files)
    watched.watcher.load(files)
    files.certificate.touch()
    watched.watcher.load(files)
    assert len(watched.used) == 1


async def test_half_replaced_pair_keeps_the_current_certificate(
    watched: Watched, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    watched.watcher.load(files)
    old_key = files.key.read_bytes()
    issue(files, END)
    new_key = files.key.read_bytes()
    files.key.write_bytes(old_key)
    watched.watcher.try_load(files)
    assert f"{files.key} is not the key of {files.certificate}" in caplog.text
    assert "keeping the current certificate" in caplog.text
    assert watched.report is not None
    assert watched.report.fault is not None
    assert len(watched.used) == 1
    files.key.write_bytes(new_key)
    watched.watcher.try_load(files)
    assert len(watched.used) == 2
    assert watched.report.fault is None


async def test_changed_files_are_noticed(
    watched: Watched, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    watched.watcher.load(files)
    watching = asyncio.ensure_future(watched.watcher.watch())
    issue(files, END)
    with caplog.at_level(logging.INFO):
        for _ in range(200):
            await watched.clock.advance(POLL_INTERVAL)
            if len(watched.used) == 2:
                break
            await asyncio.sleep(0.01)
    assert "the TLS certificate was replaced" in caplog.text
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_no_tls_ends_the_use(watched: Watched, files: CertificateFiles) -> None:
    watched.watcher.load(files)
    watched.watcher.load(None)
    assert watched.used[-1] is None
    assert watched.report is None
    assert not watched.watcher.is_in_use


@pytest.mark.parametrize(
    ("before", "warning"),
    [
        (31, None),
        (29, "expires in less than 30 days"),
        (6, "expires in less than 7 days"),
        (0.5, "expires in less than 1 day;"),
        (-1, "has expired"),
        (200, "is not valid yet"),
    ],
)
async def test_expiry_is_warned_of(
    tmp_path: Path,
    files: CertificateFiles,
    before: float,
    warning: str | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = Watched(tmp_path, before * DAY)
    watched.watcher.load(files)
    assert watched.report is not None
    if warning is None:
        assert watched.report.warning is None
        assert caplog.text == ""
    else:
        assert warning in (watched.report.warning or "")
        assert warning in caplog.text


async def test_warning_is_repeated_once_a_day(
    tmp_path: Path, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    watched = Watched(tmp_path, 20 * DAY)
    watched.watcher.load(files)
    for _ in range(20):
        await watched.clock.advance(3600)
        watched.watcher._report()
    assert len(caplog.records) == 1
    await watched.clock.advance(4 * 3600)
    watched.watcher._report()
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("certificate", b"", "has no certificate in PEM"),
        ("certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "PEM"),
        ("key", b"", "has no private key in PEM"),
        ("certificate", None, "cannot read"),
        ("key", None, "cannot read"),
    ],
)
def test_unusable_files_are_explained(
    files: CertificateFiles, name: str, content: bytes | None, error: str
) -> None:
    file: Path = getattr(files, name)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(InvalidCertificate, match=error):
        read_certificate(*files)


def test_encrypted_key_is_explained(files: CertificateFiles) -> None:
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        PrivateFormat,
        load_pem_private_key,
    )

    key = load_pem_private_key(files.key.read_bytes(), None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    files.key.write_bytes(encrypted)
    with pytest.raises(InvalidCertificate, match="is encrypted; store the key unencrypted"):
        read_certificate(*files)
