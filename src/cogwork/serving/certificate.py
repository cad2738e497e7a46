"""Reads a TLS certificate and its key, and explains why they cannot be used."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason

if TYPE_CHECKING:
    from cryptography import x509

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

    def warning(self, now: float) -> str | None:
        """Return a warning if the certificate is not valid now or expires soon; None otherwise."""
        if now < self.valid_from:
            return "the TLS certificate is not valid yet; check the clock of this computer"
        left = self.valid_until - now
        if left <= 0:
            return "the TLS certificate has expired; clients refuse it until it is replaced"
        days = next((days for days in _WARNING_DAYS if left <= days * _DAY), None)
        if days is None:
            return None
        span = "1 day" if days == 1 else f"{days} days"
        return f"the TLS certificate expires in less than {span}; replace it"


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
    return Certificate(
        chain.rstrip() + b"\n" + key,
        _names_of(leaf),
        leaf.not_valid_before_utc.timestamp(),
        leaf.not_valid_after_utc.timestamp(),
        _read_authority(client_authority_file) if client_authority_file is not None else b"",
    )


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
