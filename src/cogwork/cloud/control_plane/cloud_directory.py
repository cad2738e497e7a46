"""The directory with the data of a cloud."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from cogwork.cloud.keys.root_key import create_root_key, read_root_key
from cogwork.cloud.keys.sealer import Sealer
from cogwork.core.errors import CogworkError
from cogwork.core.files import atomic

_DOMAIN: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


class NoCloud(CogworkError):
    """The directory has no cloud, or an incomplete one."""


class CloudInUse(CogworkError):
    """Another process uses the directory."""


class CloudSettings(NamedTuple):
    domain: str
    cloud_id: str
    """The ID of the cloud. Records with another ID are refused."""


@dataclass(frozen=True, slots=True)
class CloudDirectory:
    path: Path
    given_root_key: str = field(default="", repr=False)
    """The root key from the environment, used instead of the file; empty to use the file."""

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
    def root_key(self) -> Path:
        return self.path / "root-key"

    @property
    def authorities(self) -> Path:
        """The file with the certificates of the authorities, for clients of machines."""
        return self.path / "ca.pem"

    @property
    def settings(self) -> Path:
        return self.path / "cloud.json"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint"

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the directory against other processes. Raise CloudInUse."""
        atomic.make_directory(self.path)
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "r+") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = lock.read(20).strip() or "unknown"
                raise CloudInUse(
                    f"the cloud in {self.path} is in use by the process {holder}; stop it first"
                ) from None
            lock.truncate(0)
            lock.write(f"{os.getpid()}\n")
            lock.flush()
            yield

    def save_settings(self, settings: CloudSettings) -> None:
        text = json.dumps({"domain": settings.domain, "cloud_id": settings.cloud_id})
        atomic.write(self.settings, f"{text}\n".encode(), 0o600)

    def read_domain(self) -> str:
        """Return the domain, even if the directory must be upgraded. Raise NoCloud."""
        return check_domain(self._read_settings()["domain"])

    def needs_upgrade(self) -> bool:
        """Return whether version 0.1 has written the directory."""
        return "cloud_id" not in self._read_settings()

    def read_cloud_id(self) -> str:
        """Return the ID of the cloud. Raise NoCloud."""
        return str(self._read_settings().get("cloud_id", ""))

    def require_current(self) -> CloudSettings:
        """Raise NoCloud if the directory is incomplete, or must be upgraded first."""
        found = self._read_settings()
        if "cloud_id" not in found:
            raise NoCloud(
                f"the cloud in {self.path} was written by version 0.1; upgrade it by starting "
                "it once with: cogwork-cloud serve"
            )
        self.require_records()
        return CloudSettings(check_domain(found["domain"]), str(found["cloud_id"]))

    def require_records(self) -> None:
        """Raise NoCloud if no records exist, because the cloud would refuse every machine."""
        if not self.records.exists():
            raise NoCloud(
                f"{self.records} is missing; restore it from a backup with: "
                "cogwork-cloud restore FILE"
            )
        if not self.records.stat().st_size:
            raise NoCloud(
                f"{self.records} is empty; restore it from a backup with: "
                "cogwork-cloud restore FILE"
            )

    def read_root_key(self) -> Sealer:
        """Return the root key. Raise NoRootKey."""
        return read_root_key(self.root_key, self.given_root_key)

    def create_root_key(self) -> Sealer:
        return create_root_key(self.root_key, self.given_root_key)

    def save_authorities(self, bundle: bytes) -> None:
        if not self.authorities.exists() or self.authorities.read_bytes() != bundle:
            atomic.write(self.authorities, bundle, 0o644)

    def read_checkpoint(self) -> int:
        """Return the saved checkpoint; 0 if none was saved."""
        try:
            return int(self.checkpoint.read_text())
        except (OSError, ValueError):
            return 0

    def save_checkpoint(self, checkpoint: int) -> None:
        atomic.write(self.checkpoint, f"{checkpoint}\n".encode(), 0o600)

    def _read_settings(self) -> dict[str, Any]:
        try:
            found = json.loads(self.settings.read_bytes())
            if not isinstance(found, dict) or not isinstance(found.get("domain"), str):
                raise ValueError('the "domain" is missing')  # noqa: TRY004, TRY301 - as other faults
        except FileNotFoundError:
            if self.records.exists():
                raise NoCloud(
                    f"{self.settings} is missing, but records.db exists; restore the file from a "
                    "backup. If `cogwork-cloud init` was interrupted here, delete the directory "
                    "and run it again"
                ) from None
            raise NoCloud(
                f"{self.path} holds no cloud; create one with: cogwork-cloud init"
            ) from None
        except (OSError, ValueError) as error:
            raise NoCloud(
                f"{self.settings} cannot be read: {error}; restore it from a backup"
            ) from None
        return found


def check_domain(domain: str) -> str:
    """Return the domain. Raise NoCloud if it is malformed."""
    if len(domain) > 200 or not _DOMAIN.fullmatch(domain):
        raise NoCloud(f'"{domain}" is not a domain, such as fleet.example.org')
    return domain
