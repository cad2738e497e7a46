"""Unpack an archive into a directory, and never outside of it.

Every entry is created relative to the descriptor of its directory, component by component and
without following links, so neither the archive nor another process can redirect it. Symbolic links
are created last, so nothing is ever written through a link.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cogwork.archives.limits import ArchiveLimits, check_count
from cogwork.archives.member_path import check_target, quote_path, repeated_entry, split_path
from cogwork.archives.metered_reader import MeteredReader
from cogwork.archives.open_directories import DIRECTORY_FLAGS, OpenDirectories
from cogwork.archives.tar import (
    BadArchive,
    Member,
    MemberKind,
    NoSpace,
    ReadBytes,
    TarReader,
    quote,
)
from cogwork.core.files.complete_write import write_all
from cogwork.core.os_error_text import os_reason

_NEW_FILE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_SPACE_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT)
_NAME_ERRORS: Final = (errno.ENAMETOOLONG, errno.EMLINK, errno.EINVAL, errno.EILSEQ)
"""Errors of a file system that cannot store a name, or that allows no more links to a file."""


def extract(
    read: ReadBytes,
    packed_size: int,
    directory: Path,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Unpack an archive. Raise BadArchive or OSError; the directory is then incomplete.

    `read` returns the decompressed archive. `packed_size` is the size of the compressed archive in
    bytes.
    """
    root = os.open(directory, DIRECTORY_FLAGS)
    try:
        meter = MeteredReader(read, packed_size, limits, root)
        _Extractor(root, TarReader(meter.read), limits).run()
        meter.read_to_end()
    finally:
        os.close(root)


class _Extractor:
    def __init__(self, root: int, reader: TarReader, limits: ArchiveLimits) -> None:
        self._reader = reader
        self._limits = limits
        self._directories = OpenDirectories(root, limits)
        self._pending_links: dict[tuple[str, ...], str] = {}
        """The targets of the symbolic links that are not created yet, by path."""

    def run(self) -> None:
        with contextlib.closing(self._directories):
            for count, member in enumerate(self._reader, 1):
                check_count(count, self._limits)
                if path := split_path(member.path, self._limits):
                    with _explained_errors(path):
                        self._create(member, path)
            for path, target in self._pending_links.items():
                with _explained_errors(path):
                    self._create_symlink(path, target)

    def _create(self, member: Member, path: tuple[str, ...]) -> None:
        if self._pending_links.pop(path, None) is not None and self._limits.is_strict:
            raise repeated_entry(path)
        match member.kind:
            case MemberKind.DIRECTORY:
                self._directories.open(path)
            case MemberKind.FILE:
                self._write(member, path)
            case MemberKind.SYMLINK:
                self._add_pending_link(path, member.target)
            case MemberKind.HARDLINK:
                self._create_hard_link(member, path)

    def _write(self, member: Member, path: tuple[str, ...]) -> None:
        parent = self._directories.open(path[:-1])
        self._make_room(path, parent)
        file = os.open(path[-1], _NEW_FILE_FLAGS, 0o600, dir_fd=parent)
        try:
            for chunk in self._reader.content():
                write_all(file, chunk)
            os.fchmod(file, _restrict_mode(member.mode))
            with contextlib.suppress(OSError, OverflowError, ValueError):
                os.utime(file, (member.modified, member.modified))
        finally:
            os.close(file)

    def _add_pending_link(self, path: tuple[str, ...], target: str) -> None:
        if len(self._pending_links) >= self._limits.links:
            raise BadArchive(
                f"the archive has more than the limit of {self._limits.links} symbolic links"
            )
        self._pending_links[path] = check_target(path, target, self._limits)

    def _create_hard_link(self, member: Member, path: tuple[str, ...]) -> None:
        """Create a hard link to a file that is already unpacked."""
        target = split_path(member.target, self._limits)
        if target == path:
            return
        # Duplicate the descriptor: opening the second directory may close the first one.
        source = os.dup(self._directories.open(target[:-1]))
        try:
            if not target or not _is_file(target[-1], source):
                raise BadArchive(
                    f"{quote_path(path)} is a hard link to {quote(member.target)}, which is not a "
                    "file that comes before it in the archive"
                )
            parent = self._directories.open(path[:-1])
            self._make_room(path, parent)
            os.link(
                target[-1],
                path[-1],
                src_dir_fd=source,
                dst_dir_fd=parent,
                follow_symlinks=False,
            )
        finally:
            os.close(source)

    def _create_symlink(self, path: tuple[str, ...], target: str) -> None:
        parent = self._directories.open(path[:-1])
        self._make_room(path, parent)
        os.symlink(target, path[-1], dir_fd=parent)

    def _make_room(self, path: tuple[str, ...], parent: int) -> None:
        """Remove an earlier entry with the same path. Raise BadArchive if repeated entries are not
        allowed."""
        if _remove(path, parent) and self._limits.is_strict:
            raise repeated_entry(path)


@contextlib.contextmanager
def _explained_errors(path: tuple[str, ...]) -> Iterator[None]:
    """Raise BadArchive for names that the disk cannot store, and name the path in other errors."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # damaged compressed data, not a disk error
            raise
        reason = f"{quote_path(path)} cannot be created: {os_reason(error)}"
        if error.errno in _NAME_ERRORS:
            raise BadArchive(reason) from None
        if error.errno in _NO_SPACE_ERRORS:
            raise NoSpace(f"{reason}; free some space") from None
        raise OSError(error.errno, error.strerror, quote_path(path)) from None


def _remove(path: tuple[str, ...], parent: int) -> bool:
    """Remove an earlier entry with the same path. Return False if it does not exist."""
    try:
        os.unlink(path[-1], dir_fd=parent)
    except FileNotFoundError:
        return False
    except (IsADirectoryError, PermissionError):
        raise BadArchive(
            f"{quote_path(path)} is a directory in one entry and something else in another"
        ) from None
    return True


def _is_file(name: str, parent: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _restrict_mode(mode: int) -> int:
    """Return the permissions without write access for others and without special bits."""
    mode &= 0o755
    if not mode & 0o100:
        mode &= ~0o111
    return mode | 0o600
