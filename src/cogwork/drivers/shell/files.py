"""Files on their way from one computer to another: read in pieces, written in pieces.

All of this blocks. A machine does it in threads; a command has nothing else to do.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
import time
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple, TypeAlias

from google.protobuf.timestamp_pb2 import Timestamp
from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.core.errors import CogworkError, InvalidRequest, NotFound

SourceType: TypeAlias = messages.CopyFilesSourceType.ValueType

PIECE = 1 << 20
"""Bytes that a message carries at most."""
SINGLE_FILE = messages.COPY_FILES_SOURCE_TYPE_SINGLE_FILE
SINGLE_DIRECTORY = messages.COPY_FILES_SOURCE_TYPE_SINGLE_DIRECTORY
MULTIPLE_FILES = messages.COPY_FILES_SOURCE_TYPE_MULTIPLE_FILES

_DIRECTORY_BIT = 1 << 31
"""How the API marks directories in a mode; its lowest nine bits are everybody's."""
_RIGHTS = 0o777
_FILE_RIGHTS = 0o640
_DIRECTORY_RIGHTS = 0o750
_MOST_TOLD = 100
# A pipe that nobody writes to would be waited for.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class CopyFailed(CogworkError):
    """A file that cannot be read or written."""

    status = "FAILED_PRECONDITION"


@contextlib.contextmanager
def told(doing: str, path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"cannot {doing} {path}: {error.strerror}") from error
    except (OSError, OverflowError) as error:
        why = getattr(error, "strerror", None) or error
        raise CopyFailed(f"cannot {doing} {path}: {why}") from error


class Outgoing:
    """Files and, where that is allowed, directories with all that is in them.

    A link is followed where it is asked for by name, and inside a directory where it leads to a
    file of the same directory. Whatever else is no file or directory is left out.
    """

    def __init__(self, paths: Sequence[Path], *, recursive: bool, preserve: bool) -> None:
        if not paths:
            raise InvalidRequest("no files provided to copy")
        self._preserve = preserve
        self._sources = [_source(path, recursive) for path in paths]
        self.source_type = _type_of(self._sources)
        self.left_out: list[str] = []
        """The first of them, at least."""

    def pieces(self) -> Generator[messages.FileData, None, None]:
        """What is in a directory comes ahead of the directory, whose time it would change. A file
        ends with a message of its own, after which the receiver says that it has it."""
        for source in self._sources:
            if source.path.is_dir():
                yield from self._tree(source.path, source.name)
            else:
                yield from self._file(source.path, source.name)

    def _tree(self, root: Path, name: str) -> Iterator[messages.FileData]:
        unfinished = [(root, name, iter(_entries(root)))]
        while unfinished:
            directory, name, entries = unfinished[-1]
            entry = next(entries, None)
            if entry is None:
                unfinished.pop()
                yield self._directory(directory, name)
            elif not _is_text(entry.name):
                self._leave_out(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                path = Path(entry.path)
                unfinished.append((path, f"{name}/{entry.name}", iter(_entries(path))))
            else:
                yield from self._entry(root, Path(entry.path), f"{name}/{entry.name}")

    def _entry(self, root: Path, path: Path, name: str) -> Iterator[messages.FileData]:
        with told("read", path):
            target = _inside(root, path) if path.is_symlink() else path
            if target is None or not target.is_file():
                self._leave_out(str(path))
                return
        yield from self._file(target, name)

    def _leave_out(self, path: str) -> None:
        if len(self.left_out) < _MOST_TOLD:
            self.left_out.append(path)

    def _directory(self, path: Path, name: str) -> messages.FileData:
        with told("read", path):
            return self._described(name, path.stat(), eof=True)

    def _file(self, path: Path, name: str) -> Iterator[messages.FileData]:
        with told("read", path):
            descriptor = os.open(path, _READ)
            try:
                yield from self._content(descriptor, path, name)
            finally:
                os.close(descriptor)

    def _content(self, descriptor: int, path: Path, name: str) -> Iterator[messages.FileData]:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CopyFailed(f"cannot read {path}: it is neither a file nor a directory")
        piece = self._described(name, status)
        while data := os.read(descriptor, PIECE):
            piece.data = data
            yield piece
            piece = messages.FileData()
        piece.eof = True
        yield piece

    def _described(
        self, name: str, status: os.stat_result, *, eof: bool = False
    ) -> messages.FileData:
        is_dir = stat.S_ISDIR(status.st_mode)
        described = messages.FileData(name=name, size=status.st_size, is_dir=is_dir, eof=eof)
        if self._preserve:
            described.mode = status.st_mode & _RIGHTS | (_DIRECTORY_BIT if is_dir else 0)
            described.mod_time.FromNanoseconds(status.st_mtime_ns)
        return described


class Incoming:
    """Files that arrive one after the other, each under a name of its own until it is whole."""

    def __init__(
        self,
        destination: Path,
        source_type: SourceType,
        *,
        preserve: bool,
    ) -> None:
        self._root, self._renamed = _place(destination, source_type)
        self._preserve = preserve
        self._arriving: _Arriving | None = None

    def take(self, piece: messages.FileData) -> bool:
        """Whether a file or directory is whole with it."""
        if self._arriving is None:
            self._arriving = self._begin(piece)
        elif piece.name:
            raise InvalidRequest(
                f'"{piece.name}" began ahead of the end of "{self._arriving.described.name}"'
            )
        with told("write", self._arriving.path):
            self._arriving.write(piece.data)
            if not piece.eof:
                return False
            self._arriving.finish(preserve=self._preserve)
        self._arriving = None
        return True

    def close(self) -> None:
        """What is not whole goes."""
        if self._arriving is not None:
            self._arriving.discard()
            self._arriving = None

    def _begin(self, piece: messages.FileData) -> _Arriving:
        path = self._path(piece.name)
        with told("write", path):
            path.parent.mkdir(mode=_DIRECTORY_RIGHTS, parents=True, exist_ok=True)
            if piece.is_dir:
                path.mkdir(mode=_DIRECTORY_RIGHTS, exist_ok=True)
            self._refuse_outside(path if piece.is_dir else path.parent, piece.name)
            if not piece.is_dir and path.is_dir():
                raise CopyFailed(f"cannot write {path}: it is a directory")
            return _Arriving(path, piece)

    def _path(self, name: str) -> Path:
        written = PurePosixPath(name)
        parts = list(written.parts)
        if not parts or written.is_absolute() or ".." in parts or "\0" in name:
            raise InvalidRequest(f'"{name}" is no name of a copied file: it leads out of the copy')
        if self._renamed is not None:
            parts[0] = self._renamed
        path = self._root.joinpath(*parts)
        # Ahead of making directories: one of them may be a link that leads elsewhere.
        self._refuse_outside(_existing(path.parent), name)
        return path

    def _refuse_outside(self, path: Path, name: str) -> None:
        if not path.resolve().is_relative_to(self._root.resolve()):
            raise InvalidRequest(f'"{name}" leads out of {self._root} by a link; remove the link')


class _Arriving:
    """One file or directory, from its first message on."""

    def __init__(self, path: Path, described: messages.FileData) -> None:
        self.path = path
        self.described = _without_data(described)
        self._temporary = path.with_name(f".{secrets.token_hex(8)}.copy.tmp")
        self._descriptor: int | None = None
        if not described.is_dir:
            self._descriptor = os.open(self._temporary, _CREATE, 0o600)

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._descriptor is not None:
            rest = rest[os.write(self._descriptor, rest) :]

    def finish(self, *, preserve: bool) -> None:
        if self._descriptor is None:
            if preserve:
                self._keep(self.path)
            return
        os.fchmod(self._descriptor, self._rights())
        if preserve:
            self._keep(self._descriptor)
        os.close(self._descriptor)
        self._descriptor = None
        self._temporary.replace(self.path)

    def discard(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._temporary.unlink(missing_ok=True)

    def _rights(self) -> int:
        """As it says, else those of the file whose place it takes."""
        if self.described.HasField("mode"):
            return self.described.mode & _RIGHTS
        try:
            return self.path.stat().st_mode & _RIGHTS
        except FileNotFoundError:
            return _FILE_RIGHTS

    def _keep(self, where: Path | int) -> None:
        if self.described.HasField("mode"):
            os.chmod(where, self.described.mode & _RIGHTS)  # noqa: PTH101 — may be a descriptor
        if self.described.HasField("mod_time"):
            os.utime(where, ns=(time.time_ns(), _nanoseconds(self.described.mod_time)))


class _Source(NamedTuple):
    path: Path
    """Without links: what was asked for by name is wanted wherever it leads."""
    name: str
    """As it was asked for."""


def _source(path: Path, recursive: bool) -> _Source:
    with told("read", path):
        target = path.resolve(strict=True)
    if target.is_dir() and not recursive:
        raise InvalidRequest(f"file is a directory but copy recursion not used: {path}")
    name = path.absolute().name if path.name not in ("", "..") else target.name
    if not _is_text(name):
        raise InvalidRequest(f"the name of {path!r} is no text; rename it")
    return _Source(target, name or "root")


def _type_of(sources: Sequence[_Source]) -> SourceType:
    if len(sources) > 1:
        return MULTIPLE_FILES
    return SINGLE_DIRECTORY if sources[0].path.is_dir() else SINGLE_FILE


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    with told("read", directory), os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _inside(root: Path, link: Path) -> Path | None:
    """Where it leads, if that is in the root."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return None  # it leads nowhere, or round and round
    return target if target.is_relative_to(root) else None


def _place(destination: Path, source_type: SourceType) -> tuple[Path, str | None]:
    """The directory that all goes to, and what the first part of every name becomes."""
    if source_type not in (SINGLE_FILE, SINGLE_DIRECTORY, MULTIPLE_FILES):
        raise InvalidRequest(f"{source_type} is no type of source that is known here")
    if destination.is_dir():
        return destination, None
    if source_type == MULTIPLE_FILES:
        raise NotFound(f"{destination} does not exist or is not a directory; make it first")
    if destination.exists() and source_type == SINGLE_DIRECTORY:
        raise CopyFailed(f"{destination} is an existing file; a directory cannot take its place")
    if not destination.parent.is_dir():
        raise NotFound(f"{destination.parent} does not exist or is not a directory; make it first")
    return destination.parent, destination.name


def _existing(path: Path) -> Path:
    """The nearest of its parents that is there, or itself."""
    while not path.exists() and not path.is_symlink():
        path = path.parent
    return path


def _without_data(piece: messages.FileData) -> messages.FileData:
    kept = messages.FileData(name=piece.name, size=piece.size, is_dir=piece.is_dir)
    if piece.HasField("mode"):
        kept.mode = piece.mode
    if piece.HasField("mod_time"):
        kept.mod_time.CopyFrom(piece.mod_time)
    return kept


def _nanoseconds(moment: Timestamp) -> int:
    return moment.seconds * 1_000_000_000 + moment.nanos
