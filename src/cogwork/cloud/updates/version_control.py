"""The update settings of a part: the section `agent` of its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from cogwork.cloud.updates.release_archive import is_version
from cogwork.core.versions.product import Product

DEFAULT_CHANNEL: Final = "stable"
KEYS: Final = {Product.AGENT: "agent", Product.SERVER: "viam-server"}
"""The names of the products in a configuration."""
_CHANNEL: Final = re.compile(r"[a-z0-9-]{1,32}")
_SCHEMES: Final = ("http", "https", "file")


@dataclass(frozen=True, slots=True)
class Channel:
    name: str


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    version: str


@dataclass(frozen=True, slots=True)
class CustomUrl:
    url: str

    @property
    def filename(self) -> str:
        return PurePosixPath(urlsplit(self.url).path).name


@dataclass(frozen=True, slots=True)
class InvalidSource:
    reason: str


Source = Channel | PinnedVersion | CustomUrl | InvalidSource
"""The source of a product's updates."""


def is_channel(name: str) -> bool:
    return _CHANNEL.fullmatch(name) is not None


def read_source(section: Mapping[str, Any], product: Product) -> Source:
    """Return the source of a product's updates, given the section `agent`."""
    key = KEYS[product]
    versions = section.get("version_control")
    found = versions.get(key) if isinstance(versions, Mapping) else None
    if found is None or found == "":
        return Channel(DEFAULT_CHANNEL)
    if not isinstance(found, str):
        return InvalidSource(f"agent.version_control.{key} is not a text")
    if "://" in found:
        return _read_url(found, key)
    if is_version(found):
        return PinnedVersion(found)
    if is_channel(found):
        return Channel(found)
    return InvalidSource(
        f'agent.version_control.{key} is "{found[:100]}"; give a version, a channel or a URL'
    )


def _read_url(text: str, key: str) -> Source:
    try:
        parts = urlsplit(text)
    except ValueError:
        parts = urlsplit("")
    is_complete = bool(parts.path if parts.scheme == "file" else parts.hostname)
    if parts.scheme not in _SCHEMES or not is_complete:
        return InvalidSource(
            f'agent.version_control.{key} is "{text[:100]}"; give a URL that begins with https://, '
            "http:// or file://"
        )
    return CustomUrl(text)
