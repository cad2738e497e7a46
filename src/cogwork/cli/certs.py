"""`cogwork certs`: a certificate authority of your own, and certificates for your machines."""

from __future__ import annotations

import argparse
import datetime
import ipaddress
import re
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, print_error, print_json
from cogwork.core import atomic
from cogwork.core.errors import CogworkError

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 397
"""Browsers refuse certificates that are valid for longer."""
_CLOCK_TOLERANCE = datetime.timedelta(days=1)
"""How far ahead of a client the clock of this computer may be."""
_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
_HOST_NAME = re.compile(r"(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\Z")


class CannotIssue(CogworkError):
    """The certificate cannot be issued; the message explains why."""


class Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def local(arguments: argparse.Namespace) -> int:
    """Create or renew a certificate for the names, signed by an authority of the directory."""
    directory = Path(arguments.directory)
    try:
        names = [_parse_name(text) for text in dict.fromkeys((*arguments.names, *_OWN_NAMES))]
        is_new = not (directory / "ca.pem").exists()
        now = datetime.datetime.now(datetime.UTC)
        authority = _create_authority(directory, now) if is_new else _read_authority(directory)
        _issue(directory, authority, names, now)
    except (CannotIssue, OSError) as error:
        print_error(str(error))
        return EXIT_USAGE
    files = {name: str(directory.resolve() / name) for name in ("ca.pem", "cert.pem", "key.pem")}
    if arguments.json:
        print_json({"files": files, "is_new_authority": is_new, "days": CERTIFICATE_DAYS})
    else:
        print(_describe(arguments.names, files, is_new=is_new))
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


def _create_authority(directory: Path, now: datetime.datetime) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Cogwork local authority")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + datetime.timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(directory / "ca-key.pem", _encode_key(key), 0o600)
    _write(directory / "ca.pem", certificate.public_bytes(Encoding.PEM), 0o644)
    return Authority(certificate, key)


def _read_authority(directory: Path) -> Authority:
    try:
        certificate = x509.load_pem_x509_certificate((directory / "ca.pem").read_bytes())
        key = load_pem_private_key((directory / "ca-key.pem").read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise CannotIssue(
            f"cannot use the authority in {directory}: {error}; choose another directory with "
            "--directory"
        ) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or (
        key.public_key() != certificate.public_key()
    ):
        raise CannotIssue(f"{directory / 'ca-key.pem'} is not the key of the ca.pem beside it")
    return Authority(certificate, key)


def _issue(
    directory: Path,
    authority: Authority,
    names: list[x509.GeneralName],
    now: datetime.datetime,
) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Cogwork machine")]))
        .issuer_name(issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + datetime.timedelta(days=CERTIFICATE_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # Clients written in Rust accept no certificate of an authority as that of a server.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    # A server that watches both files uses them only once they match.
    _write(directory / "key.pem", _encode_key(key), 0o600)
    _write(directory / "cert.pem", certificate.public_bytes(Encoding.PEM), 0o644)


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, content: bytes, mode: int) -> None:
    try:
        atomic.write(file, content, mode)
    except OSError as error:
        raise CannotIssue(f"cannot write {file}: {error.strerror}") from None


def _describe(names: list[str], files: dict[str, str], *, is_new: bool) -> str:
    authority = files["ca.pem"]
    renewed = (
        "Created a certificate authority and a certificate"
        if is_new
        else "Renewed the certificate with the authority of the directory; it is"
    )
    return f"""{renewed} for {", ".join((*names, *_OWN_NAMES))}, valid for {CERTIFICATE_DAYS} days.

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
