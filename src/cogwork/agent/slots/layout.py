"""The files and directories of the agent.

A symbolic link names the current version of a product, so that a switch is one atomic step.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cogwork.agent.release.manifest import is_version
from cogwork.core.versions.product import Product

UNFINISHED: Final = ".unfinished-"
"""Prefix of directories in which a version is being installed or removed."""


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path

    @property
    def versions(self) -> Path:
        return self.root / "versions"

    @property
    def downloads(self) -> Path:
        return self.root / "downloads"

    @property
    def keys(self) -> Path:
        """The public keys of trusted publishers."""
        return self.root / "keys"

    @property
    def state(self) -> Path:
        return self.root / "state.json"

    @property
    def minimums(self) -> Path:
        """The file with the minimum versions that may be installed."""
        return self.root / "minimum-versions.json"

    @property
    def lock(self) -> Path:
        """The file that the running agent locks."""
        return self.root / "agent.lock"

    @property
    def alive(self) -> Path:
        """The heartbeat file, which the agent touches."""
        return self.root / "agent.alive"

    @property
    def settings(self) -> Path:
        return self.root / "agent.json"

    @property
    def progress(self) -> Path:
        return self.root / "progress.json"

    @property
    def retry(self) -> Path:
        """The file that a user creates to try failed versions again."""
        return self.root / "retry"

    @property
    def launcher(self) -> Path:
        return self.root / "launcher.pyz"

    @property
    def serving(self) -> Path:
        """The file with the address of the server, which the server writes once it is ready."""
        return self.root / "serving.json"

    def allowed(self, product: Product) -> Path:
        """The file that names an older version whose installation a user has allowed."""
        return self.root / f"allowed-{product}"

    def slot(self, product: Product, version: str) -> Path:
        return self.versions / f"{product}-{version}"

    def current(self, product: Product) -> Path:
        """The link to the current version."""
        return self.root / f"current-{product}"

    def current_version(self, product: Product) -> str | None:
        """Return the current version; None if it is not installed."""
        try:
            target = self.current(product).readlink()
        except OSError:
            return None
        version = target.name.removeprefix(f"{product}-")
        is_slot = is_version(version) and target == self._target(product, version)
        return version if is_slot and self.slot(product, version).is_dir() else None

    def installed(self, product: Product) -> list[str]:
        try:
            names = [each.name for each in self.versions.iterdir() if each.is_dir()]
        except FileNotFoundError:
            return []
        found = (name.removeprefix(f"{product}-") for name in names if name.startswith(product))
        return sorted(version for version in found if is_version(version))

    def switch(self, product: Product, version: str) -> None:
        """Make an installed version the current one, atomically and durably."""
        new = self.root / f".current-{product}.new"
        new.unlink(missing_ok=True)
        new.symlink_to(self._target(product, version))
        new.replace(self.current(product))
        sync_directory(self.root)

    def _target(self, product: Product, version: str) -> Path:
        return Path(self.versions.name, f"{product}-{version}")


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
