from __future__ import annotations

import datetime
import json
import ssl
import stat
import subprocess
from pathlib import Path

import pytest
import trustme
from cryptography import x509

from cogwork.cli.main import main
from cogwork.serving.certificate import read_certificate


def run(*arguments: str) -> int:
    return main(["certs", "local", *arguments])


def test_certificate_is_valid_for_its_names_and_verified_by_openssl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "certs"
    assert run("machine.local", "192.0.2.7", "--directory", str(directory)) == 0
    out = capsys.readouterr().out
    assert f'"tls_cert_file": "{directory / "cert.pem"}"' in out
    assert "Created a certificate authority" in out
    found = read_certificate(directory / "cert.pem", directory / "key.pem")
    assert set(found.names) == {"machine.local", "localhost", "192.0.2.7", "127.0.0.1", "::1"}
    for name in ("key.pem", "ca-key.pem"):
        assert stat.S_IMODE((directory / name).stat().st_mode) == 0o600
    ca, certificate = str(directory / "ca.pem"), str(directory / "cert.pem")
    verified = subprocess.run(
        ["openssl", "verify", "-x509_strict", "-purpose", "sslserver", "-CAfile", ca, certificate],
        capture_output=True,
        text=True,
        check=False,
    )
    assert verified.stdout == f"{certificate}: OK\n", verified.stderr
    ssl.create_default_context(cafile=ca)


def test_renewal_keeps_the_authority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("a.local", "--directory", str(tmp_path)) == 0
    authority = (tmp_path / "ca.pem").read_bytes()
    before = x509.load_pem_x509_certificate((tmp_path / "cert.pem").read_bytes())
    capsys.readouterr()
    assert run("b.local", "--directory", str(tmp_path), "--json") == 0
    assert (tmp_path / "ca.pem").read_bytes() == authority
    after = x509.load_pem_x509_certificate((tmp_path / "cert.pem").read_bytes())
    assert after.serial_number != before.serial_number
    printed = json.loads(capsys.readouterr().out)
    assert printed["is_new_authority"] is False


@pytest.mark.parametrize("name", ["https://x", "x:80", "", "a b", "x" * 300])
def test_bad_name_is_explained(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(name, "--directory", str(tmp_path)) == 2
    assert "is not a host name or an IP address" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_broken_authority_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ca.pem").write_text("broken")
    assert run("a.local", "--directory", str(tmp_path)) == 2
    assert "choose another directory with --directory" in capsys.readouterr().err


def test_client_certificate_is_verified_by_openssl(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("machine.local", "--directory", str(tmp_path)) == 0
    capsys.readouterr()
    assert main(["certs", "client", "laptop.example", "--directory", str(tmp_path)]) == 0
    assert '"tls_auth_entities": ["laptop.example"]' in capsys.readouterr().out
    certificate, key = tmp_path / "laptop.example.pem", tmp_path / "laptop.example-key.pem"
    assert read_certificate(certificate, key).names == ("laptop.example",)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    command = ["openssl", "verify", "-x509_strict", "-purpose", "sslclient", "-CAfile"]
    verified = subprocess.run(
        [*command, str(tmp_path / "ca.pem"), str(certificate)], capture_output=True, check=False
    )
    assert verified.returncode == 0, verified.stderr


@pytest.mark.parametrize("name", ["ca", "cert", "192.0.2.7", "*.example", "../x"])
def test_bad_client_name_is_explained(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("machine.local", "--directory", str(tmp_path)) == 0
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    assert main(["certs", "client", name, "--directory", str(tmp_path)]) == 2
    assert f'"{name}" is' in capsys.readouterr().err
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_expired_certificate_of_a_machine_is_found_by_the_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["certs", "local", "robot.example"]) == 0
    capsys.readouterr()
    certificate, key = tmp_path / "certs" / "cert.pem", tmp_path / "certs" / "key.pem"
    network = {"tls_cert_file": str(certificate), "tls_key_file": str(key)}
    file = tmp_path / "machine.json"
    file.write_text(json.dumps({"network": network}))
    assert main(["config", "check", str(file)]) == 0
    assert "is valid: 0 resources" in capsys.readouterr().out

    authority = trustme.CA()
    end = datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC)
    start = end - datetime.timedelta(days=100)
    issued = authority.issue_cert("robot.example", not_before=start, not_after=end)
    issued.cert_chain_pems[0].write_to_path(str(certificate))
    issued.private_key_pem.write_to_path(str(key))
    assert main(["config", "check", str(file)]) == 0
    assert (
        f"warning  the TLS certificate {certificate} expired on 2026-06-01, so clients refuse it; "
        f"renew it with: cogwork certs local robot.example --directory {certificate.parent}  [W505]"
    ) in capsys.readouterr().out
