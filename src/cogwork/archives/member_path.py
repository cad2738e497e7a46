"""Paths in archives: relative, short, and never outside."""

from __future__ import annotations

import os
from typing import Final

from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive, quote

_MAX_NAME: Final = 255
"""Bytes of one component of a path, on nearly all file systems."""


def split_path(path: str, limits: ArchiveLimits) -> tuple[str, ...]:
    """Split a path of the archive. Raises BadArchive.

    The result is empty for the root itself.
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
    """Return the target of a link if it is inside of the directory. Raises BadArchive.

    `..` is allowed only at the beginning, where it leaves real directories, so that levels can be
    counted; a component before a later `..` might itself be a link.
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
    return BadArchive(f"it has two entries {quote_path(path)}; pack every file once")


def quote_path(path: tuple[str, ...]) -> str:
    return quote("/".join(path))
