"""Directories of an archive, opened and created without following links."""

from __future__ import annotations

import contextlib
import os
from typing import Final

from cogwork.archives.limits import ArchiveLimits, too_many_directories
from cogwork.archives.member_path import quote_path
from cogwork.archives.tar import BadArchive

DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenDirectories:
    """The open descriptors of the current directory and its parents.

    Archives list the entries of a directory together, so the directory of most entries is already
    open.
    """

    def __init__(self, root: int, limits: ArchiveLimits) -> None:
        self._root = root
        self._limits = limits
        self._names: list[str] = []
        self._descriptors: list[int] = []
        self._created = 0

    def open(self, path: tuple[str, ...]) -> int:
        """Return the descriptor of a directory, valid until the next call. Create missing
        directories."""
        shared = 0
        while shared < min(len(path), len(self._names)) and path[shared] == self._names[shared]:
            shared += 1
        self._close_below(shared)
        for depth in range(shared, len(path)):
            self._descriptors.append(self._enter(path[: depth + 1]))
            self._names.append(path[depth])
        return self._current

    def close(self) -> None:
        self._close_below(0)

    @property
    def _current(self) -> int:
        return self._descriptors[-1] if self._descriptors else self._root

    def _enter(self, path: tuple[str, ...]) -> int:
        try:
            with contextlib.suppress(FileNotFoundError):
                return os.open(path[-1], DIRECTORY_FLAGS, dir_fd=self._current)
            self._created += 1
            if self._created > self._limits.directories:
                raise too_many_directories(self._limits)
            with contextlib.suppress(FileExistsError):
                os.mkdir(path[-1], 0o755, dir_fd=self._current)
            return os.open(path[-1], DIRECTORY_FLAGS, dir_fd=self._current)
        except NotADirectoryError:
            raise BadArchive(
                f"{quote_path(path)} is a file in one entry and a directory in another"
            ) from None

    def _close_below(self, depth: int) -> None:
        del self._names[depth:]
        while len(self._descriptors) > depth:
            os.close(self._descriptors.pop())
