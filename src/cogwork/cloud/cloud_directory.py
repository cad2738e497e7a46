"""The directory in which a cloud keeps its data."""

from __future__ import annotations

import datetime
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from cogwork.auth.certificate_authority import (
    Authority,
    PemPair,
    create_authority,
    parse_authority,
)
from cogwork.cloud.identity.machine_tokens import create_token_key, parse_token_key
from cogwork.core import atomic
from cogwork.core.errors import CogworkError

_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


class NoCloud(CogworkError):
    """The directory does not hold a cloud."""


@dataclass(frozen=True, slots=True)
class CloudDirectory:
    path: Path

    @property
    def records(self) -> Path:
        return self.path / "records.db"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def signing_key(self) -> Path:
        return self.path / "signing-key.pem"

    def save_domain(self, domain: str) -> None:
        atomic.write(self._settings, f"{json.dumps({'domain': domain})}\n".encode(), 0o600)

    def read_domain(self) -> str:
        try:
            return check_domain(json.loads(self._settings.read_bytes())["domain"])
        except FileNotFoundError:
            raise NoCloud(
                f"{self.path} holds no cloud; create one with: cogwork-cloud init"
            ) from None
        except (OSError, ValueError, TypeError, KeyError) as error:
            raise NoCloud(f"{self._settings} cannot be read: {error}") from None

    def load_authority(self, now: datetime.datetime) -> Authority:
        """Return the authority that signs the machines' certificates; make it the first time."""
        certificate, key = self.path / "ca.pem", self.path / "ca-key.pem"
        if not certificate.exists():
            made = create_authority(now, "Cogwork cloud authority")
            atomic.write(key, made.pem.key, 0o600)
            atomic.write(certificate, made.pem.certificate, 0o644)
        try:
            return parse_authority(PemPair(certificate.read_bytes(), key.read_bytes()))
        except (OSError, ValueError) as error:
            raise NoCloud(f"cannot use {certificate} and {key}: {error}") from None

    def load_token_key(self) -> RSAPrivateKey:
        """Return the key that signs tokens for machines; make it the first time."""
        path = self.path / "machine-token-key.pem"
        if not path.exists():
            atomic.write(path, create_token_key(), 0o600)
        try:
            return parse_token_key(path.read_bytes())
        except (OSError, ValueError) as error:
            raise NoCloud(f"cannot use {path}: {error}") from None

    @property
    def _settings(self) -> Path:
        return self.path / "cloud.json"


def check_domain(domain: str) -> str:
    """Return the domain, or raise NoCloud."""
    if len(domain) > 200 or not _DOMAIN.fullmatch(domain):
        raise NoCloud(f'"{domain}" is not a domain, such as fleet.example.org')
    return domain
