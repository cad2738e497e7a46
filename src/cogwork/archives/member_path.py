"""Validation of the paths and link targets in archives."""

from __future__ import annotations

import os
from typing import Final

from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive, quote

_MAX_NAME: Final = 255
"""Maximum length of one path component in bytes, on nearly all file systems."""


def split_path(path: str, limits: ArchiveLimits) -> tuple[str, ...]:
    """Split a path of the archive into components. Raise BadArchive if the path is not allowed.

    The result is empty for the root.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if limits.is_strict and path.startswith("/"):
        raise BadArchive(f"{quote(path)} is an absolute path; pack paths inside of a folder")
    if ".." in parts:
        raise BadArchive(f"{quote(path)} is outside of the archive's own directory")
    if len(os.fsencode(path)) > limits.path or len(parts) > limits.depth:
        raise BadArchive(
            f"the path {quote(path)} is too long; the limit is {limits.path} bytes and "
            f"{limits.depth} levels"
        )
    if any(len(os.fsencode(part)) > _MAX_NAME for part in parts):
        raise BadArchive(f"the path {quote(path)} has a name of more than {_MAX_NAME} bytes")
    return parts


def check_target(path: tuple[str, ...], target: str, limits: ArchiveLimits) -> str:
    """Return the target of a link. Raise BadArchive if it may be outside of the directory.

    `..` is allowed only at the beginning. There, it leads from one real directory to its parent, so
    the levels can be counted. Later, the component before `..` might be a link.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if not target or target.startswith("/") or up >= len(path) or ".." in parts[up:]:
        raise BadArchive(
            f"{quote_path(path)} is a link to {quote(target)}, which may be outside of the "
            "archive's own directory; link to a path inside of it"
        )
    if len(os.fsencode(target)) > limits.path:
        raise BadArchive(f"the target of the link {quote_path(path)} is too long")
    return target


def repeated_entry(path: tuple[str, ...]) -> BadArchive:
    return BadArchive(f"the archive has two entries {quote_path(path)}; pack every file once")


def quote_path(path: tuple[str, ...]) -> str:
    return quote("/".join(path))
