"""Reads a TLS certificate and its key, and explains why they cannot be used."""

from __future__ import annotations

import datetime
import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

if TYPE_CHECKING:
    from cryptography import x509

_OWN_NAMES = ("localhost", "127.0.0.1", "::1")
"""The names that every certificate of `cogwork certs local` has."""
_DAY = 24 * 3600.0
_WARNING_DAYS = (1, 7, 30)


class InvalidCertificate(CogworkError):
    """The certificate or its key cannot be used; the message explains why."""


@dataclass(frozen=True, slots=True)
class Certificate:
    pem: bytes
    """The certificate chain and its key, in one PEM file."""
    names: tuple[str, ...]
    """The names and addresses for which the certificate is valid."""
    valid_from: float
    """Seconds since 1970."""
    valid_until: float
    client_authority: bytes = b""
    """The authorities that sign client certificates, in PEM; empty to request no client
    certificate."""
    file: str = field(default="", compare=False)
    """The path of the certificate."""
    renewal: str = field(default="replace it", compare=False)
    """What to do when the certificate expires, as the second half of a sentence."""

    def warning(self, now: float) -> str | None:
        """Return a warning if the certificate is not valid now or expires soon; None otherwise."""
        if now < self.valid_from:
            start = format_date(self.valid_from)
            return (
                f"the TLS certificate {self.file} is not valid before {start}; check the clock of "
                "this computer"
            )
        left = self.valid_until - now
        if left <= 0:
            end = format_date(self.valid_until)
            return (
                f"the TLS certificate {self.file} expired on {end}, so clients refuse it; "
                f"{self.renewal}"
            )
        days = next((days for days in _WARNING_DAYS if left <= days * _DAY), None)
        if days is None:
            return None
        span = "1 day" if days == 1 else f"{days} days"
        return f"the TLS certificate {self.file} expires in less than {span}; {self.renewal}"


def read_certificate(
    certificate_file: Path, key_file: Path, client_authority_file: Path | None = None
) -> Certificate:
    """Read the files of a certificate. Raise InvalidCertificate."""
    chain, key = _read(certificate_file), _read(key_file)
    # Import here, so that servers without TLS start faster.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        leaf = x509.load_pem_x509_certificates(chain)[0]
    except ValueError as error:
        raise InvalidCertificate(
            f"{certificate_file} has no valid PEM certificate: {error}"
        ) from None
    try:
        private = load_pem_private_key(key, password=None)
    except TypeError:
        raise InvalidCertificate(f"{key_file} is encrypted; store the key unencrypted") from None
    except ValueError as error:
        raise InvalidCertificate(f"{key_file} has no valid PEM private key: {error}") from None

    if private.public_key() != leaf.public_key():
        raise InvalidCertificate(f"{key_file} is not the key of {certificate_file}")
    names = _names_of(leaf)
    # A file that also contains the key comes from the cloud, which renews it.
    renewal = "replace it" if certificate_file == key_file else _advise(certificate_file, names)
    return Certificate(
        chain.rstrip() + b"\n" + key,
        names,
        leaf.not_valid_before_utc.timestamp(),
        leaf.not_valid_after_utc.timestamp(),
        _read_authority(client_authority_file) if client_authority_file is not None else b"",
        str(certificate_file),
        renewal,
    )


def find_certificate_warning(certificate_file: Path, key_file: Path, now: float) -> str | None:
    """Return a warning if the certificate is not valid now or expires soon; None if it is fine or
    cannot be read."""
    try:
        return read_certificate(certificate_file, key_file).warning(now)
    except InvalidCertificate:
        return None


def format_date(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")


def _advise(file: Path, names: Iterable[str]) -> str:
    """Return how to renew a certificate that `cogwork certs local` made, or how to replace it."""
    listed = [name for name in names if name not in _OWN_NAMES] or ["localhost"]
    command = ["cogwork", "certs", "local", *listed]
    if file.name == "cert.pem" and (file.parent / "ca-key.pem").exists():
        return f"renew it with: {shlex.join([*command, '--directory', str(file.parent)])}"
    return f"replace it, or create another with: {shlex.join(command)}"


def _read_authority(file: Path) -> bytes:
    from cryptography import x509

    content = _read(file)
    try:
        x509.load_pem_x509_certificates(content)
    except ValueError as error:
        raise InvalidCertificate(f"{file} has no valid PEM certificate: {error}") from None
    return content


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidCertificate(f"cannot read {file}: {os_reason(error)}") from None


def _names_of(leaf: x509.Certificate) -> tuple[str, ...]:
    from cryptography import x509

    try:
        found = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    addresses = found.get_values_for_type(x509.IPAddress)
    return (*found.get_values_for_type(x509.DNSName), *map(str, addresses))
