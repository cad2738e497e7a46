"""Unpack an archive into a directory, and never outside of it.

Every entry is created relative to the descriptor of its directory, component by component and
without following links, so neither the archive nor another process can redirect it. Symbolic links
are created last: nothing is ever written through one.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from cogwork.archives.tar import BadArchive, Member, MemberKind, NoSpace, TarReader

_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of one archive."""

    entries: int = 100_000
    links: int = 10_000
    """Symbolic links, which are kept in memory until everything else is created."""
    unpacked: int = 16 * _GIB
    """Bytes of all files together."""
    reserve: int = 256 << 20
    """Bytes that stay free on the disk."""
    path: int = 1024
    """Bytes of a path."""
    depth: int = 64
    """Components of a path."""
    ratio: int = 200
    """Unpacked bytes per byte of the archive."""
    ratio_from: int = 64 << 20
    """Unpacked bytes up to which any ratio is allowed: small files of zeros are common."""
    is_strict: bool = False
    """Whether absolute paths and a second entry of the same path are refused, too. Otherwise, the
    former are relative to the directory, and the latter replaces the first."""


def extract(
    content: IO[bytes],
    packed_size: int,
    directory: Path,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Unpack an archive. Raises BadArchive and OSError; the directory is then incomplete.

    `content`: the decompressed archive. `packed_size`: bytes of the compressed archive.
    """
    meter = _MeteredReader(content, packed_size, _free_space(directory, limits), limits)
    root = os.open(directory, _DIRECTORY_FLAGS)
    try:
        _Extractor(root, TarReader(meter.read), limits).run()
    finally:
        os.close(root)


def check(
    content: IO[bytes],
    packed_size: int,
    limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - it is frozen
) -> None:
    """Read an archive to its end without unpacking it. Raises BadArchive.

    `content` and `packed_size` are those of `extract`, which may still refuse an archive that
    passes: entries that contradict each other only show on a disk.
    """
    meter = _MeteredReader(content, packed_size, limits.unpacked, limits)
    seen = set[tuple[str, ...]]()
    for count, member in enumerate(TarReader(meter.read), 1):
        if count > limits.entries:
            raise BadArchive(f"it has more than the limit of {limits.entries} entries")
        path = _split_path(member.path, limits)
        if limits.is_strict and member.kind is not MemberKind.DIRECTORY:
            if path in seen:
                raise _repeated(path)
            seen.add(path)
        if member.kind is MemberKind.SYMLINK:
            _check_target(path, member.target, limits)
        elif member.kind is MemberKind.HARDLINK:
            _split_path(member.target, limits)


def _free_space(directory: Path, limits: ArchiveLimits) -> int:
    disk = os.statvfs(directory)
    return disk.f_bavail * disk.f_frsize - limits.reserve


class _MeteredReader:
    """Reads decompressed data, and enforces the limits on its size."""

    def __init__(
        self, content: IO[bytes], packed_size: int, free_space: int, limits: ArchiveLimits
    ) -> None:
        self._content = content
        self._packed_size = packed_size
        self._free_space = free_space
        self._limits = limits
        self._count = 0

    def read(self, size: int) -> bytes:
        data = self._content.read(size)
        while len(data) < size and (more := self._content.read(size - len(data))):
            data += more
        self._count += len(data)
        self._check()
        return data

    def _check(self) -> None:
        count, limits = self._count, self._limits
        if count > limits.unpacked:
            raise BadArchive(
                f"it unpacks to more than the limit of {_format_size(limits.unpacked)}"
            )
        if count > self._free_space:
            raise NoSpace(
                f"it unpacks to more than the free disk space of {_format_size(self._free_space)} "
                f"(after a reserve of {_format_size(limits.reserve)}); free some space"
            )
        if count > max(limits.ratio_from, limits.ratio * self._packed_size):
            raise BadArchive(
                f"it unpacks to more than {limits.ratio} times its size, like an archive that is "
                "meant to fill a disk; pack it without large files of zeros"
            )


class _Extractor:
    def __init__(self, root: int, reader: TarReader, limits: ArchiveLimits) -> None:
        self._root = root
        self._reader = reader
        self._limits = limits
        self._pending_links: dict[tuple[str, ...], str] = {}
        """Targets of the symbolic links that are yet to be created, by path."""

    def run(self) -> None:
        for count, member in enumerate(self._reader, 1):
            if count > self._limits.entries:
                raise BadArchive(f"it has more than the limit of {self._limits.entries} entries")
            if path := _split_path(member.path, self._limits):
                self._create(member, path)
        for path, target in self._pending_links.items():
            self._create_symlink(path, target)

    def _create(self, member: Member, path: tuple[str, ...]) -> None:
        if self._pending_links.pop(path, None) is not None and self._limits.is_strict:
            raise _repeated(path)
        match member.kind:
            case MemberKind.DIRECTORY:
                with self._open_directory(path):
                    pass
            case MemberKind.FILE:
                self._write(member, path)
            case MemberKind.SYMLINK:
                self._add_pending_link(path, member.target)
            case MemberKind.HARDLINK:
                self._create_hard_link(member, path)

    def _write(self, member: Member, path: tuple[str, ...]) -> None:
        with self._open_directory(path[:-1]) as parent:
            self._make_room(path, parent)
            file = os.open(path[-1], _NEW_FILE_FLAGS, 0o600, dir_fd=parent)
        try:
            for chunk in self._reader.content():
                _write_all(file, chunk)
            os.fchmod(file, _restrict_mode(member.mode))
            with contextlib.suppress(OSError, OverflowError, ValueError):
                os.utime(file, (member.modified, member.modified))
        finally:
            os.close(file)

    def _add_pending_link(self, path: tuple[str, ...], target: str) -> None:
        if len(self._pending_links) >= self._limits.links:
            raise BadArchive(f"it has more than the limit of {self._limits.links} symbolic links")
        self._pending_links[path] = _check_target(path, target, self._limits)

    def _create_hard_link(self, member: Member, path: tuple[str, ...]) -> None:
        """Create another name for a file that is already unpacked."""
        target = _split_path(member.target, self._limits)
        if target == path:
            return
        with self._open_directory(target[:-1]) as source, self._open_directory(path[:-1]) as parent:
            if not target or not _is_file(target[-1], source):
                raise BadArchive(
                    f'"{"/".join(path)}" is a hard link to "{member.target[:200]}", which is not a '
                    "file that comes before it in the archive"
                )
            self._make_room(path, parent)
            os.link(
                target[-1],
                path[-1],
                src_dir_fd=source,
                dst_dir_fd=parent,
                follow_symlinks=False,
            )

    def _create_symlink(self, path: tuple[str, ...], target: str) -> None:
        with self._open_directory(path[:-1]) as parent:
            self._make_room(path, parent)
            os.symlink(target, path[-1], dir_fd=parent)

    def _make_room(self, path: tuple[str, ...], parent: int) -> None:
        """Remove an earlier entry of the same path, which the new one replaces."""
        if _remove(path, parent) and self._limits.is_strict:
            raise _repeated(path)

    @contextlib.contextmanager
    def _open_directory(self, path: tuple[str, ...]) -> Iterator[int]:
        """Open a directory, and create missing components of its path."""
        opened = os.dup(self._root)
        try:
            for depth, name in enumerate(path, 1):
                inner = _make_directory(name, opened, path[:depth])
                os.close(opened)
                opened = inner
            yield opened
        finally:
            os.close(opened)


def _make_directory(name: str, parent: int, path: tuple[str, ...]) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o755, dir_fd=parent)
    try:
        return os.open(name, _DIRECTORY_FLAGS, dir_fd=parent)
    except NotADirectoryError:
        raise BadArchive(
            f'"{"/".join(path)}" is a file in one entry and a directory in another'
        ) from None


def _remove(path: tuple[str, ...], parent: int) -> bool:
    """Remove an earlier entry of the same path, and return whether there is one."""
    try:
        os.unlink(path[-1], dir_fd=parent)
    except FileNotFoundError:
        return False
    except (IsADirectoryError, PermissionError):
        raise BadArchive(
            f'"{"/".join(path)}" is a directory in one entry and something else in another'
        ) from None
    return True


def _repeated(path: tuple[str, ...]) -> BadArchive:
    return BadArchive(f'it has two entries "{"/".join(path)}"; pack every file once')


def _is_file(name: str, parent: int) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return stat.S_ISREG(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    return False


def _split_path(path: str, limits: ArchiveLimits) -> tuple[str, ...]:
    """Split a path of the archive. Raises BadArchive.

    The result is empty for the root itself.
    """
    parts = tuple(part for part in path.split("/") if part not in ("", "."))
    if limits.is_strict and path.startswith("/"):
        raise BadArchive(f'"{path[:200]}" is an absolute path; pack paths inside of a folder')
    if ".." in parts:
        raise BadArchive(f'"{path[:200]}" is outside of the archive\'s own directory')
    if len(os.fsencode(path)) > limits.path or len(parts) > limits.depth:
        raise BadArchive(
            f'the path "{path[:200]}" is too long; the limit is {limits.path} bytes and '
            f"{limits.depth} levels"
        )
    return parts


def _check_target(path: tuple[str, ...], target: str, limits: ArchiveLimits) -> str:
    """Return the target of a link if it is inside of the directory. Raises BadArchive.

    `..` is allowed only at the beginning, where it leaves real directories, so that levels can be
    counted; a component before a later `..` might itself be a link.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    up = next((at for at, part in enumerate(parts) if part != ".."), len(parts))
    if not target or target.startswith("/") or up >= len(path) or ".." in parts[up:]:
        raise BadArchive(
            f'"{"/".join(path)}" is a link to "{target[:200]}", which may be outside of the '
            "archive's own directory; link to a path inside of it"
        )
    if len(os.fsencode(target)) > limits.path:
        raise BadArchive(f'the target of the link "{"/".join(path)}" is too long')
    return target


def _restrict_mode(mode: int) -> int:
    """Return the permissions without write access for others and without special bits."""
    mode &= 0o755
    if not mode & 0o100:
        mode &= ~0o111
    return mode | 0o600


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _format_size(count: int) -> str:
    return f"{max(0, count) / _GIB:.3g} GiB"
