"""The manifest of a release: its product, version and platform, and the hash of each file.

The signature of the manifest covers every file, because a file without an entry is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from cogwork.agent.errors import BadRelease
from cogwork.core.versions.product import Product
from cogwork.core.versions.version_order import has_order, is_older

MAX_MANIFEST: Final = 1 << 20

_FORMAT: Final = 1
_VERSION: Final = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+_-]{0,63}")
_FILE_NAME: Final = re.compile(r"(wheels/)?[0-9A-Za-z_][0-9A-Za-z.+_-]{0,199}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_PYTHON: Final = re.compile(r"3\.[0-9]{1,3}")
_PLATFORM: Final = re.compile(r"[a-z0-9_]+/[a-z0-9_]+")


@dataclass(frozen=True, slots=True)
class FileEntry:
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ReleaseManifest:
    product: Product
    version: str
    platform: str
    """Operating system and architecture, such as "linux/amd64"."""
    python: str
    """The version of Python that the wheels require, such as "3.11"."""
    installed_size: int
    """Total size of the installed files in bytes."""
    files: Mapping[str, FileEntry]
    minimum_version: str | None = None
    """The oldest version that may be installed after this release."""

    @property
    def archive_name(self) -> str:
        return archive_name(self.product, self.version, self.platform)

    def encode(self) -> bytes:
        """Encode the manifest. Equal manifests give equal bytes."""
        value: dict[str, Any] = {
            "format": _FORMAT,
            "product": self.product,
            "version": self.version,
            "platform": self.platform,
            "python": self.python,
            "installed_size": self.installed_size,
            "files": {
                name: {"size": entry.size, "sha256": entry.sha256}
                for name, entry in self.files.items()
            },
        }
        if self.minimum_version is not None:
            value["minimum_version"] = self.minimum_version
        return json.dumps(value, indent=1, sort_keys=True).encode() + b"\n"


def parse_manifest(data: bytes) -> ReleaseManifest:
    """Parse a manifest, and ignore keys that a newer version added. Raise BadRelease."""
    try:
        value = json.loads(data)
        if value["format"] != _FORMAT:
            raise BadRelease(
                f"the release has format {value['format']!r}, but this agent requires {_FORMAT}; "
                "update the agent first"
            )
        manifest = ReleaseManifest(
            Product(value["product"]),
            value["version"],
            value["platform"],
            value["python"],
            value["installed_size"],
            {
                name: FileEntry(each["size"], each["sha256"])
                for name, each in value["files"].items()
            },
            value.get("minimum_version"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise BadRelease(f"the manifest of the release cannot be read: {error!r}") from None
    _check(manifest)
    return manifest


def archive_name(product: Product, version: str, platform: str) -> str:
    return f"cogwork-{product}-{version}-{platform.replace('/', '-')}.tar"


def find_version(name: str, product: Product, platform: str) -> str | None:
    """Return the version in the name of a release archive; None if it is of another product."""
    start, end = archive_name(product, "|", platform).split("|")
    version = name.removeprefix(start).removesuffix(end)
    return version if name == f"{start}{version}{end}" and is_version(version) else None


def is_version(text: object) -> bool:
    """Return whether the text is a valid version, which is also a safe name for a directory."""
    return isinstance(text, str) and _VERSION.fullmatch(text) is not None


def _check(manifest: ReleaseManifest) -> None:
    names_are_valid = all(_FILE_NAME.fullmatch(name) for name in manifest.files)
    entries_are_valid = all(
        _is_size(each.size) and _matches(_SHA256, each.sha256) for each in manifest.files.values()
    )
    if not (
        is_version(manifest.version)
        and _matches(_PLATFORM, manifest.platform)
        and _matches(_PYTHON, manifest.python)
        and _is_size(manifest.installed_size)
        and names_are_valid
        and entries_are_valid
    ):
        raise BadRelease("the manifest of the release is not valid")
    _check_minimum(manifest.version, manifest.minimum_version)


def _check_minimum(version: str, minimum: Any) -> None:
    if minimum is None:
        return
    if not is_version(minimum) or not has_order(minimum) or is_older(version, minimum):
        raise BadRelease(
            f"the minimum_version of release {version} must be this version or an older one, not "
            f"{repr(minimum)[:100]}"
        )


def _matches(pattern: re.Pattern[str], value: Any) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0
