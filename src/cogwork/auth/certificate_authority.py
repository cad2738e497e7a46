"""A private certificate authority, which signs the certificates of machines and clients."""

from __future__ import annotations

import datetime
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
from cryptography.x509.oid import NameOID

AUTHORITY_DAYS = 3650
CERTIFICATE_DAYS = 397
"""Validity in days. Browsers refuse certificates that are valid for longer."""
_CLOCK_TOLERANCE = datetime.timedelta(days=1)
"""Maximum time by which the clock of this computer may be ahead of a client's clock."""


class PemPair(NamedTuple):
    certificate: bytes
    key: bytes


class Authority(NamedTuple):
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> PemPair:
        return PemPair(self.certificate.public_bytes(Encoding.PEM), _encode_key(self.key))


def create_authority(now: datetime.datetime, name: str) -> Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + datetime.timedelta(days=AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Authority(certificate, key)


def parse_authority(pem: PemPair) -> Authority:
    """Parse the certificate and the key of an authority. Raise ValueError if they do not match."""
    certificate = x509.load_pem_x509_certificate(pem.certificate)
    try:
        key = load_pem_private_key(pem.key, password=None)
    except TypeError as error:
        raise ValueError(str(error)) from None
    if not isinstance(key, ec.EllipticCurvePrivateKey) or (
        key.public_key() != certificate.public_key()
    ):
        raise ValueError("the key does not match the certificate")
    return Authority(certificate, key)


def issue_certificate(
    authority: Authority,
    names: list[x509.GeneralName],
    now: datetime.datetime,
    purpose: x509.ObjectIdentifier,
    days: int = CERTIFICATE_DAYS,
) -> PemPair:
    """Return a certificate for these names, and its private key."""
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Cogwork machine")]))
        .issuer_name(authority.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCK_TOLERANCE)
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        # Set `ca=False`: clients written in Rust refuse the certificate of an authority as a server
        # certificate.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key()),
            critical=False,
        )
        .sign(authority.key, hashes.SHA256())
    )
    return PemPair(certificate.public_bytes(Encoding.PEM), _encode_key(key))


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
