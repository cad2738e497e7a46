"""File copies between computers, in chunks.

All functions block: the server runs them in threads, the command-line client directly.
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
from cogwork.core.os_error_text import os_reason
from cogwork.drivers.shell import directories

SourceType: TypeAlias = messages.CopyFilesSourceType.ValueType

CHUNK_SIZE = 1 << 20
"""Maximum bytes per message."""
SINGLE_FILE = messages.COPY_FILES_SOURCE_TYPE_SINGLE_FILE
SINGLE_DIRECTORY = messages.COPY_FILES_SOURCE_TYPE_SINGLE_DIRECTORY
MULTIPLE_FILES = messages.COPY_FILES_SOURCE_TYPE_MULTIPLE_FILES

_DIRECTORY_BIT = 1 << 31
"""The bit that marks a directory in an API mode; the lowest nine bits are permissions."""
_PERMISSION_BITS = 0o777
_FILE_MODE = 0o640
_MAX_NAME_BYTES = 4096
_MAX_SKIPPED = 100
# O_NONBLOCK: otherwise opening a named pipe would wait for a writer.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class CopyFailed(CogworkError):
    """A file cannot be read or written."""

    status = "FAILED_PRECONDITION"


@contextlib.contextmanager
def translated_errors(action: str, path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"cannot {action} {path}: {os_reason(error)}") from error
    except (OSError, OverflowError) as error:
        reason = os_reason(error)
        raise CopyFailed(f"cannot {action} {path}: {reason}") from error


class FileSender:
    """Sends files and, if `recursive`, directories with their contents.

    A link that the client names is followed. A link inside a directory is followed if it points to
    a file in that directory. Other links, special files and entries whose names are not valid text
    are skipped.
    """

    def __init__(self, paths: Sequence[Path], *, recursive: bool, preserve: bool) -> None:
        if not paths:
            raise InvalidRequest("there are no files to copy")
        self._preserve = preserve
        self._sources = [_resolve_source(path, recursive) for path in paths]
        self.source_type = _source_type(self._sources)
        self.skipped: list[str] = []
        """The first skipped entries, up to a limit."""

    def chunks(self) -> Generator[messages.FileData, None, None]:
        """Yield the chunks of all sources.

        The contents of a directory precede the directory itself, because writing the contents
        changes the directory's time. Each file ends with a separate message, which the receiver
        acknowledges.
        """
        for source in self._sources:
            if source.path.is_dir():
                yield from self._read_tree(source.path, source.name)
            else:
                yield from self._read_file(source.path, source.name)

    def _read_tree(self, root: Path, name: str) -> Iterator[messages.FileData]:
        stack = [(root, name, iter(_list_entries(root)))]
        while stack:
            directory, name, entries = stack[-1]
            entry = next(entries, None)
            if entry is None:
                stack.pop()
                yield self._read_directory(directory, name)
            elif not _is_text(entry.name):
                self._skip(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                path = Path(entry.path)
                stack.append((path, f"{name}/{entry.name}", iter(_list_entries(path))))
            else:
                yield from self._read_entry(root, Path(entry.path), f"{name}/{entry.name}")

    def _read_entry(self, root: Path, path: Path, name: str) -> Iterator[messages.FileData]:
        with translated_errors("read", path):
            target = _resolve_inside(root, path) if path.is_symlink() else path
            if target is None or not target.is_file():
                self._skip(str(path))
                return
        yield from self._read_file(target, name)

    def _skip(self, path: str) -> None:
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append(path)

    def _read_directory(self, path: Path, name: str) -> messages.FileData:
        with translated_errors("read", path):
            return self._make_header(name, path.stat(), eof=True)

    def _read_file(self, path: Path, name: str) -> Iterator[messages.FileData]:
        with translated_errors("read", path):
            descriptor = os.open(path, _READ_FLAGS)
            try:
                yield from self._read_content(descriptor, path, name)
            finally:
                os.close(descriptor)

    def _read_content(self, descriptor: int, path: Path, name: str) -> Iterator[messages.FileData]:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CopyFailed(f"cannot read {path}: it is neither a file nor a directory")
        chunk = self._make_header(name, status)
        while data := os.read(descriptor, CHUNK_SIZE):
            chunk.data = data
            yield chunk
            chunk = messages.FileData()
        chunk.eof = True
        yield chunk

    def _make_header(
        self, name: str, status: os.stat_result, *, eof: bool = False
    ) -> messages.FileData:
        is_dir = stat.S_ISDIR(status.st_mode)
        header = messages.FileData(name=name, size=status.st_size, is_dir=is_dir, eof=eof)
        if self._preserve:
            header.mode = status.st_mode & _PERMISSION_BITS | (_DIRECTORY_BIT if is_dir else 0)
            header.mod_time.FromNanoseconds(status.st_mtime_ns)
        return header


class FileReceiver:
    """Receives files one after the other, each under a temporary name until it is complete.

    Links in the destination path are followed once, when the copy begins. Links below the
    destination are never followed, even if they are created meanwhile.
    """

    def __init__(
        self,
        destination: Path,
        source_type: SourceType,
        *,
        preserve: bool,
    ) -> None:
        with translated_errors("write", destination):
            self._root, self._new_name = _resolve_destination(destination, source_type)
            self._directory = directories.open_root(self._root)
        self._preserve = preserve
        self._current: _PendingEntry | None = None

    def write_chunk(self, chunk: messages.FileData) -> bool:
        """Write a chunk and return whether it completes a file or directory."""
        if self._current is None:
            self._current = self._begin(chunk)
        elif chunk.name:
            raise InvalidRequest(
                f'the client sent "{chunk.name}" before "{self._current.header.name}" was complete'
            )
        with translated_errors("write", self._current.path):
            self._current.write(chunk.data)
            if not chunk.eof:
                return False
            self._current.finish(preserve=self._preserve)
        self._current = None
        return True

    def close(self) -> None:
        """Close the destination and discard an incomplete file."""
        if self._current is not None:
            self._current.discard()
            self._current = None
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    def _begin(self, chunk: messages.FileData) -> _PendingEntry:
        parts = self._split_name(chunk.name)
        path = self._root.joinpath(*parts)
        try:
            with translated_errors("write", path):
                parent = directories.open_below(self._directory, parts[:-1])
                return _PendingEntry(parent, path, chunk)
        except directories.LinkInPath as error:
            raise InvalidRequest(
                f'cannot write "{chunk.name}" in {self._root}: "{error}" is a link, or is not a '
                "directory; remove it"
            ) from error

    def _split_name(self, name: str) -> list[str]:
        posix_path = PurePosixPath(name)
        parts = list(posix_path.parts)
        if not parts or posix_path.is_absolute() or ".." in parts or "\0" in name:
            raise InvalidRequest(
                f'"{name}" is not a valid name for a copied file: it leads out of the destination'
            )
        if len(os.fsencode(name)) > _MAX_NAME_BYTES:
            raise InvalidRequest(
                f"the name of a copied file is longer than {_MAX_NAME_BYTES} bytes"
            )
        if self._new_name is not None:
            parts[0] = self._new_name
        return parts


class _PendingEntry:
    """A file or directory that is being received."""

    def __init__(self, parent: int, path: Path, header: messages.FileData) -> None:
        """`parent` is the descriptor of the parent directory, which this object closes."""
        self.path = path
        self.header = _strip_data(header)
        self._parent = parent
        self._temporary = f".{secrets.token_hex(8)}.copy.tmp"
        self._descriptor: int | None = None
        try:
            if header.is_dir:
                os.close(directories.open_below(parent, [path.name]))
                self._descriptor = directories.open_for_metadata(parent, path.name)
            else:
                self._check_replaceable()
                self._descriptor = directories.create(parent, self._temporary)
        except BaseException:
            os.close(parent)
            raise

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest and self._descriptor is not None and not self.header.is_dir:
            rest = rest[os.write(self._descriptor, rest) :]

    def finish(self, *, preserve: bool) -> None:
        assert self._descriptor is not None
        if self.header.is_dir:
            if preserve:
                self._apply_metadata(self._descriptor)
            self._close()
            return
        os.fchmod(self._descriptor, self._file_mode())
        if preserve:
            self._apply_metadata(self._descriptor)
        self._check_replaceable()
        directories.rename(self._parent, self._temporary, self.path.name)
        self._close()

    def discard(self) -> None:
        if not self.header.is_dir:
            directories.remove(self._parent, self._temporary)
        self._close()

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            os.close(self._parent)
            self._descriptor = None

    def _check_replaceable(self) -> None:
        reason = directories.why_not_replaceable(self._parent, self.path.name)
        if reason is not None:
            raise CopyFailed(f"cannot write {self.path}: {reason}")

    def _file_mode(self) -> int:
        """Return the mode from the header; without one, the mode of the file that is replaced."""
        if self.header.HasField("mode"):
            return self.header.mode & _PERMISSION_BITS
        status = directories.stat_entry(self._parent, self.path.name)
        if status is None or not stat.S_ISREG(status.st_mode):
            return _FILE_MODE
        return status.st_mode & _PERMISSION_BITS

    def _apply_metadata(self, descriptor: int) -> None:
        if self.header.HasField("mode"):
            os.fchmod(descriptor, self.header.mode & _PERMISSION_BITS)
        if self.header.HasField("mod_time"):
            os.utime(descriptor, ns=(time.time_ns(), _to_nanoseconds(self.header.mod_time)))


class _CopySource(NamedTuple):
    path: Path
    """The resolved path. If the client names a link, this is its target, which may be anywhere."""
    name: str
    """The name of the copy: the last part of the path that the client named."""


def _resolve_source(path: Path, recursive: bool) -> _CopySource:
    with translated_errors("read", path):
        target = path.resolve(strict=True)
    if target.is_dir() and not recursive:
        raise InvalidRequest(f"{path} is a directory; copy it recursively")
    name = path.absolute().name if path.name not in ("", "..") else target.name
    if not _is_text(name):
        raise InvalidRequest(f"the name of {path!r} is not valid text; rename it")
    return _CopySource(target, name or "root")


def _source_type(sources: Sequence[_CopySource]) -> SourceType:
    if len(sources) > 1:
        return MULTIPLE_FILES
    return SINGLE_DIRECTORY if sources[0].path.is_dir() else SINGLE_FILE


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _list_entries(directory: Path) -> list[os.DirEntry[str]]:
    with translated_errors("read", directory), os.scandir(directory) as entries:
        return sorted(entries, key=lambda entry: entry.name)


def _resolve_inside(root: Path, link: Path) -> Path | None:
    """Return the target of a link, or None if the target is missing or outside the root."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):
        return None  # the link is dangling or circular
    return target if target.is_relative_to(root) else None


def _resolve_destination(destination: Path, source_type: SourceType) -> tuple[Path, str | None]:
    """Return the directory to write to, and the name for the copy. The name is None if the copy
    keeps the sent name."""
    if source_type not in (SINGLE_FILE, SINGLE_DIRECTORY, MULTIPLE_FILES):
        raise InvalidRequest(f"unknown source type {source_type}")
    if destination.is_dir():
        return destination, None
    if source_type == MULTIPLE_FILES:
        raise NotFound(f"{destination} does not exist or is not a directory; create it first")
    if destination.exists() and source_type == SINGLE_DIRECTORY:
        raise CopyFailed(f"{destination} is an existing file; a directory cannot replace it")
    if not destination.parent.is_dir():
        raise NotFound(
            f"{destination.parent} does not exist or is not a directory; create it first"
        )
    return destination.parent, destination.name


def _strip_data(chunk: messages.FileData) -> messages.FileData:
    header = messages.FileData(name=chunk.name, size=chunk.size, is_dir=chunk.is_dir)
    if chunk.HasField("mode"):
        header.mode = chunk.mode
    if chunk.HasField("mod_time"):
        header.mod_time.CopyFrom(chunk.mod_time)
    return header


def _to_nanoseconds(timestamp: Timestamp) -> int:
    return timestamp.seconds * 1_000_000_000 + timestamp.nanos
