"""`cogwork certs`: a local certificate authority, and certificates for your machines."""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import re
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from cogwork.auth.certificate_authority import (
    CERTIFICATE_DAYS,
    Authority,
    PemPair,
    create_authority,
    issue_certificate,
    parse_authority,
)
from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, print_error, print_json
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason

_RESERVED = {"ca.pem", "ca-key.pem", "cert.pem", "key.pem"}
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")


class CannotIssue(CogworkError):
    """The certificate cannot be issued; the message explains why."""


class _Issued(NamedTuple):
    """The files and the purpose of a certificate."""

    certificate: Path
    key: Path
    purpose: x509.ObjectIdentifier


def local(arguments: argparse.Namespace) -> int:
    """Create or renew a certificate for the names, signed by the authority in the directory."""
    directory = Path(arguments.directory)
    try:
        names = [_parse_name(text) for text in dict.fromkeys((*arguments.names, *_OWN_NAMES))]
        is_new = not (directory / "ca.pem").exists()
        now = datetime.datetime.now(datetime.UTC)
        authority = _create_authority(directory, now) if is_new else _read_authority(directory)
        issued = _Issued(
            directory / "cert.pem", directory / "key.pem", ExtendedKeyUsageOID.SERVER_AUTH
        )
        _issue(authority, names, now, issued)
    except (CannotIssue, OSError) as error:
        print_error(str(error))
        return EXIT_USAGE
    files = {name: str(directory.resolve() / name) for name in ("ca.pem", "cert.pem", "key.pem")}
    if arguments.json:
        print_json({"files": files, "is_new_authority": is_new, "days": CERTIFICATE_DAYS})
    else:
        print(_describe(arguments.names, files, is_new=is_new))
    return EXIT_OK


def client(arguments: argparse.Namespace) -> int:
    """Create or renew a certificate with which a client logs in."""
    directory, name = Path(arguments.directory), arguments.name
    certificate, key = directory / f"{name}.pem", directory / f"{name}-key.pem"
    try:
        names = [_parse_client_name(name)]
        authority = _read_authority(directory)
        now = datetime.datetime.now(datetime.UTC)
        _issue(authority, names, now, _Issued(certificate, key, ExtendedKeyUsageOID.CLIENT_AUTH))
    except (CannotIssue, OSError) as error:
        print_error(str(error))
        return EXIT_USAGE
    files = {
        "certificate": str(certificate.resolve()),
        "key": str(key.resolve()),
        "authority": str((directory / "ca.pem").resolve()),
    }
    if arguments.json:
        print_json({"files": files, "days": CERTIFICATE_DAYS})
    else:
        print(_describe_client(name, files))
    return EXIT_OK


def _parse_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        pass
    if len(text) > 253 or not _HOST_NAME.match(text):
        raise CannotIssue(
            f'"{text}" is not a host name or an IP address; write names without a scheme or a '
            "port, such as machine.local"
        )
    return x509.DNSName(text)


def _parse_client_name(text: str) -> x509.GeneralName:
    name = _parse_name(text)
    if not isinstance(name, x509.DNSName) or "*" in text:
        raise CannotIssue(f'"{text}" is not the name of a single client, such as laptop.example')
    if {f"{text}.pem", f"{text}-key.pem"} & _RESERVED:
        raise CannotIssue(
            f'the name "{text}" is reserved for files of the authority or the server; choose '
            "another name"
        )
    return name


def _create_authority(directory: Path, now: datetime.datetime) -> Authority:
    authority = create_authority(now, "Cogwork local authority")
    _write(directory / "ca-key.pem", authority.pem.key, 0o600)
    _write(directory / "ca.pem", authority.pem.certificate, 0o644)
    return authority


def _read_authority(directory: Path) -> Authority:
    try:
        files = (directory / name for name in ("ca.pem", "ca-key.pem"))
        return parse_authority(PemPair(*(file.read_bytes() for file in files)))
    except (OSError, ValueError) as error:
        raise CannotIssue(
            f"cannot use the authority in {directory}: {error}; choose another directory with "
            "--directory"
        ) from None


def _issue(
    authority: Authority,
    names: list[x509.GeneralName],
    now: datetime.datetime,
    issued: _Issued,
) -> None:
    pem = issue_certificate(authority, names, now, issued.purpose)
    # Between the two writes, the key and the certificate do not match. A running server uses the
    # new files once they match.
    _write(issued.key, pem.key, 0o600)
    _write(issued.certificate, pem.certificate, 0o644)


def _write(file: Path, content: bytes, mode: int) -> None:
    try:
        atomic.write(file, content, mode)
    except OSError as error:
        raise CannotIssue(f"cannot write {file}: {write_reason(error)}") from None


def _describe(names: list[str], files: dict[str, str], *, is_new: bool) -> str:
    authority = files["ca.pem"]
    renewed = (
        "Created a certificate authority and a certificate"
        if is_new
        else "Renewed the certificate with the authority of the directory; it is"
    )
    all_names = ", ".join(dict.fromkeys((*names, *_OWN_NAMES)))
    return f"""{renewed} for {all_names}, valid for {CERTIFICATE_DAYS} days.

Add to the configuration of the machine:
  "network": {{
    "tls_cert_file": "{files["cert.pem"]}",
    "tls_key_file": "{files["key.pem"]}"
  }}

Let clients trust the authority. Keep ca-key.pem private: anyone who has it can imitate any server.
  Python SDK and cogwork: set SSL_CERT_FILE={authority}
  Linux:   sudo cp {authority} /usr/local/share/ca-certificates/cogwork.crt
           sudo update-ca-certificates
  macOS:   sudo security add-trusted-cert -d -k /Library/Keychains/System.keychain {authority}
  Windows: certutil -addstore Root {authority}"""


def _describe_client(name: str, files: dict[str, str]) -> str:
    return f"""Created a client certificate for {name}, valid for {CERTIFICATE_DAYS} days.

Add to the configuration of the machine:
  "network": {{ "tls_client_ca_file": "{files["authority"]}" }},
  "auth": {{ "tls_auth_entities": ["{name}"] }}

Give these files to the client. Anyone with the key is an owner of the machine.
  {files["certificate"]}
  {files["key"]}"""
