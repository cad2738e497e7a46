from __future__ import annotations

import asyncio
import datetime
import logging
import stat
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from tests.support.waiting import advance_until

from cogwork.core.clock import ManualClock
from cogwork.front.tls_socket import TlsSettings
from cogwork.serving import certificate_watcher
from cogwork.serving.certificate import InvalidCertificate, read_certificate
from cogwork.serving.certificate_watcher import (
    POLL_INTERVAL,
    CertificateFiles,
    CertificateWatcher,
)
from cogwork.serving.tls_report import TlsReport

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
        self.used: list[TlsSettings | None] = []
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
    await watched.watcher.load(files)
    (used,) = watched.used
    assert used is not None
    copy = used.certificate
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert files.certificate.read_bytes().strip() in copy.read_bytes()
    assert files.key.read_bytes().strip() in copy.read_bytes()
    expected = ("robot.example", "192.0.2.7")
    assert watched.report == TlsReport(expected, END.timestamp(), None, None)


async def test_client_authority_and_names_are_used_when_they_change(
    watched: Watched, files: CertificateFiles, tmp_path: Path
) -> None:
    await watched.watcher.load(files)
    authority = tmp_path / "ca.pem"
    AUTHORITY.cert_pem.write_to_path(str(authority))
    with_authority = files._replace(client_authority=authority, client_names=("client.example",))
    await watched.watcher.load(with_authority)
    await watched.watcher.load(with_authority)
    assert len(watched.used) == 2
    used = watched.used[-1]
    assert used is not None
    assert used.client_authority is not None
    assert used.client_authority.read_bytes() == authority.read_bytes()
    assert used.client_names == ("client.example",)
    await watched.watcher.load(with_authority._replace(client_names=("other.example",)))
    assert len(watched.used) == 3
    authority.write_text("no certificate")
    with pytest.raises(InvalidCertificate, match=f"{authority} has no valid PEM certificate"):
        await watched.watcher.load(with_authority)


async def test_unchanged_files_are_not_used_again(
    watched: Watched, files: CertificateFiles
) -> None:
    await watched.watcher.load(files)
    await watched.watcher.load(files)
    files.certificate.touch()
    await watched.watcher.load(files)
    assert len(watched.used) == 1


async def test_half_replaced_pair_keeps_the_current_certificate(
    watched: Watched, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    await watched.watcher.load(files)
    old_key = files.key.read_bytes()
    issue(files, END)
    new_key = files.key.read_bytes()
    files.key.write_bytes(old_key)
    await watched.watcher._try_load(files)
    assert f"{files.key} is not the key of {files.certificate}" in caplog.text
    assert "keeping the current certificate" in caplog.text
    assert watched.report is not None
    assert watched.report.fault is not None
    assert len(watched.used) == 1
    files.key.write_bytes(new_key)
    await watched.watcher._try_load(files)
    assert len(watched.used) == 2
    assert watched.report.fault is None


async def test_changed_files_are_noticed(
    watched: Watched, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    await watched.watcher.load(files)
    watching = asyncio.ensure_future(watched.watcher.watch())
    issue(files, END)
    with caplog.at_level(logging.INFO):
        await advance_until(watched.clock, lambda: len(watched.used) == 2, POLL_INTERVAL)
    assert "the TLS certificate was replaced" in caplog.text
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)


async def test_no_tls_ends_the_use(watched: Watched, files: CertificateFiles) -> None:
    await watched.watcher.load(files)
    await watched.watcher.load(None)
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
        (-1, "cert.pem expired on 2026-06-01, so clients refuse it; replace it, or create another"),
        (200, "cert.pem is not valid before 2026-02-21; check the clock"),
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
    await watched.watcher.load(files)
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
    await watched.watcher.load(files)
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
        ("certificate", b"", "has no valid PEM certificate"),
        ("certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "PEM"),
        ("key", b"", "has no valid PEM private key"),
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
        read_certificate(files.certificate, files.key)


def test_encrypted_key_is_explained(files: CertificateFiles) -> None:
    key = load_pem_private_key(files.key.read_bytes(), None)
    encrypted = key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    files.key.write_bytes(encrypted)
    with pytest.raises(InvalidCertificate, match="is encrypted; store the key unencrypted"):
        read_certificate(files.certificate, files.key)


async def test_changed_permissions_are_noticed(
    watched: Watched, files: CertificateFiles, tmp_path: Path
) -> None:
    before = certificate_watcher._signature_of(files)
    files.key.chmod(0o640)
    assert certificate_watcher._signature_of(files) != before


async def test_certificate_that_openssl_refuses_is_explained(
    watched: Watched, files: CertificateFiles, caplog: pytest.LogCaptureFixture
) -> None:
    """Its key is too short, which only shows when it is used."""
    key = rsa.generate_private_key(65537, 1024)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "x")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(END - datetime.timedelta(days=1))
        .not_valid_after(END)
        .sign(key, hashes.SHA256())
    )
    files.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files.key.write_bytes(pem)
    with pytest.raises(InvalidCertificate, match=r"(?i)key.too.small"):
        await watched.watcher.load(files)
    assert watched.used == []
    assert list(files.certificate.parent.joinpath("private").iterdir()) == []


async def test_any_error_of_a_library_keeps_the_current_certificate(
    watched: Watched, files: CertificateFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    await watched.watcher.load(files)
    issue(files, END)

    def fail(*_: object) -> None:
        raise RuntimeError("unsupported curve")

    monkeypatch.setattr(certificate_watcher, "read_certificate", fail)
    await watched.watcher._try_load(files)
    assert len(watched.used) == 1
    assert watched.report is not None
    assert "unsupported curve" in (watched.report.fault or "")


async def test_other_files_are_used_when_they_are_read(
    watched: Watched, files: CertificateFiles, tmp_path: Path
) -> None:
    await watched.watcher.load(files)
    other = CertificateFiles(tmp_path / "other.pem", tmp_path / "other-key.pem")
    issue(other, END)
    watching = asyncio.ensure_future(watched.watcher.watch())
    watched.watcher.change_files(other)
    await advance_until(watched.clock, lambda: len(watched.used) == 2, POLL_INTERVAL)
    watched.watcher.change_files(None)
    await advance_until(watched.clock, lambda: len(watched.used) == 3, POLL_INTERVAL)
    assert watched.used[-1] is None
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
