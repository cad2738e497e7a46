"""The directories of packages on this computer, and the packages that the machine cannot get."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Effect
from cogwork.config.schema import codes
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.machine import PackageConfig
from cogwork.config.text.placeholders import PackagePath
from cogwork.config.text.positions import Pointer

_DIGEST_LENGTH = 12


def locate_package(package: PackageConfig, home: Path) -> Path:
    """Return the directory of a package: its configured folder, or a folder in the store under
    `home`.

    A different URL or hash leads to a different directory, because the content differs.
    """
    if package.folder is not None:
        return package.folder
    name = package.package.replace("/", "-") or package.name
    version = re.sub(r"[./\0]", "_", package.version)
    source = f"{package.url}\n{package.sha256.lower()}".encode()
    digest = f"-{hashlib.sha256(source).hexdigest()[:_DIGEST_LENGTH]}" if package.url else ""
    return store_of(home) / package.type / f"{name}-{version}{digest}".replace("\0", "_")


def store_of(home: Path) -> Path:
    return home / "packages" / "data"


def locate_packages(packages: Iterable[PackageConfig], home: Path) -> dict[str, PackagePath]:
    return {
        package.name: PackagePath(package.type, str(locate_package(package, home)))
        for package in packages
    }


def find_expected_paths(
    packages: Iterable[PackageConfig],
    paths: Mapping[str, PackagePath],
    present: Collection[str],
    cloud: CloudConfig | None,
) -> frozenset[str]:
    """Return the directories that are missing and that the machine will download."""
    return frozenset(
        paths[package.name].path
        for package in packages
        if package.name not in present and has_source(package, cloud)
    )


def is_inside(path: str, directories: Collection[str]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in directories)


def warn_missing_packages(
    packages: Sequence[PackageConfig],
    pointers: Sequence[Pointer],
    paths: Mapping[str, PackagePath],
    present: Collection[str],
    cloud: CloudConfig | None,
    collector: DiagnosticCollector,
) -> None:
    """Warn about packages that are not installed and that the machine cannot download."""
    for package, at in zip(packages, pointers, strict=True):
        directory = paths[package.name].path
        if package.name not in present and not has_source(package, cloud):
            collector.add(
                codes.NO_PACKAGE_SOURCE,
                f'package "{package.name}" is missing, and has no source to download it from',
                at,
                Effect.IGNORED,
                hint=f'add its "url", join a cloud that has it, or put its files into {directory}',
            )


def has_source(package: PackageConfig, cloud: CloudConfig | None) -> bool:
    return bool(package.url) or (cloud is not None and bool(cloud.app_address))
