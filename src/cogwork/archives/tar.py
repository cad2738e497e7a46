"""A streaming reader of the tar format.

The standard library's reader loads headers of any declared size into memory, and the regular
expressions of some supported versions take quadratic time on them. This reader accepts the formats
that archivers write (ustar, GNU long names, pax) and rejects everything else.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from cogwork.core.errors import CogworkError

BLOCK_SIZE: Final = 512
MAX_HEADER_SIZE: Final = 1 << 16
"""Maximum size of an extended header in bytes; a path has at most 4,096."""
CHUNK_SIZE: Final = 1 << 16
_MAX_EXTENSIONS: Final = 16
"""Maximum number of extended headers before one member."""
MAX_RECORDS = 1_000_000
"""Maximum number of records in all extended headers, because parsing records takes long."""

ReadBytes = Callable[[int], bytes]
"""Function that returns the given number of bytes, or fewer at the end of the data."""


class BadArchive(CogworkError):
    """An archive that is damaged, or that contains something that is not allowed."""

    status = "FAILED_PRECONDITION"


class Truncated(BadArchive):
    """The stream is not an archive, or ends in the middle of one."""


class NoSpace(BadArchive):
    """The disk has no room for the content."""


class MemberKind(enum.Enum):
    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symbolic link"
    HARDLINK = "hard link"


@dataclass(frozen=True, slots=True)
class Member:
    path: str
    kind: MemberKind
    size: int = 0
    """Size of the content in bytes; 0 for every member that is not a file."""
    mode: int = 0o644
    modified: float = 0.0
    target: str = ""
    """The target of a link."""


_KINDS: Final = {
    b"0": MemberKind.FILE,
    b"\0": MemberKind.FILE,
    b"7": MemberKind.FILE,
    b"1": MemberKind.HARDLINK,
    b"2": MemberKind.SYMLINK,
    b"5": MemberKind.DIRECTORY,
}
_UNSUPPORTED_TYPES: Final = {
    b"3": "a character device",
    b"4": "a block device",
    b"6": "a named pipe",
    b"S": "a sparse file",
}


_SPARSE: Final = "GNU.sparse"
_PAX_KEYS: Final = {key.encode(): key for key in ("path", "linkpath", "size", "mtime")}
"""The attributes that the reader uses. It discards all others, because attributes of global headers
would stay in memory."""


def quote(path: str) -> str:
    """Return a path for a message: short, printable, and valid in every encoding."""
    shown = (each if each.isprintable() else ascii(each)[1:-1] for each in path[:200])
    return f'"{"".join(shown)}"'


class TarReader:
    def __init__(self, read: ReadBytes) -> None:
        self._read = read
        self._records = 0
        self._remaining = 0
        """Unread bytes of the current member."""
        self._padding = 0
        self._has_members = False
        self._defaults: dict[str, str] = {}
        """Attributes from global headers, which apply to all members after them."""

    def __iter__(self) -> Iterator[Member]:
        """Yield the members, and skip content that was not read. Raise BadArchive."""
        while (header := self._next_header()) is not None:
            yield self._read_member(header)
            for _ in self.content():
                pass

    def content(self) -> Iterator[bytes]:
        """Yield the content of the current member in chunks."""
        while self._remaining:
            chunk = self._read_exactly(min(self._remaining, CHUNK_SIZE))
            self._remaining -= len(chunk)
            yield chunk
        self._read_exactly(self._padding)
        self._padding = 0

    def _next_header(self) -> bytes | None:
        block = self._read(BLOCK_SIZE)
        if not block and self._has_members:
            # Accept this end: some archivers omit the two empty blocks at the end of an archive.
            return None
        if len(block) < BLOCK_SIZE:
            raise Truncated("the archive is incomplete")
        if not any(block):
            if not self._has_members:
                raise Truncated("the archive is empty")
            return None
        if not _is_checksum_valid(block):
            raise Truncated("the archive is damaged")
        self._has_members = True
        return block

    def _read_member(self, block: bytes) -> Member:
        found = dict(self._defaults)
        for _ in range(_MAX_EXTENSIONS):
            if not self._apply_extension(block, found):
                return self._parse_member(block, found)
            following = self._next_header()
            if following is None:
                raise Truncated("the archive ends after an extended header")
            block = following
        raise BadArchive(f"one entry has more than {_MAX_EXTENSIONS} extended headers")

    def _apply_extension(self, block: bytes, found: dict[str, str]) -> bool:
        """Read an extended header into `found`; return False if the header is a member itself."""
        match block[156:157]:
            case b"x":
                found.update(self._read_pax(block))
            case b"g":
                defaults = self._read_pax(block)
                self._defaults.update(defaults)
                found.update(defaults)
            case b"L":
                found["path"] = _decode_text(self._read_extension(block))
            case b"K":
                found["linkpath"] = _decode_text(self._read_extension(block))
            case _:
                return False
        return True

    def _read_pax(self, block: bytes) -> dict[str, str]:
        """Return those attributes of an extended header that the reader uses."""
        found: dict[str, str] = {}
        for key, value in _parse_pax(self._read_extension(block)):
            self._records += 1
            name = _SPARSE if key.startswith(_SPARSE.encode()) else _PAX_KEYS.get(key)
            if name is not None:
                found[name] = value.decode(errors="surrogateescape")
        if self._records > MAX_RECORDS:
            raise BadArchive(f"the archive has more than the limit of {MAX_RECORDS} attributes")
        return found

    def _read_extension(self, block: bytes) -> bytes:
        size = _parse_number(block[124:136])
        if size > MAX_HEADER_SIZE:
            raise BadArchive(
                f"the archive has a header of {size} bytes; the limit is {MAX_HEADER_SIZE}"
            )
        content = self._read_exactly(size)
        self._read_exactly(-size % BLOCK_SIZE)
        return content

    def _parse_member(self, block: bytes, found: Mapping[str, str]) -> Member:
        if any("\0" in found.get(key, "") for key in ("path", "linkpath")):
            raise BadArchive("an extended header has a name that contains a NUL")
        path = found.get("path") or _parse_path(block)
        kind = _parse_kind(block[156:157], path, found)
        size = _parse_size(found["size"]) if "size" in found else _parse_number(block[124:136])
        # Ignore the size of other members: for a hard link, archivers write the size of the linked
        # file.
        size = size if kind is MemberKind.FILE else 0
        self._remaining, self._padding = size, -size % BLOCK_SIZE
        return Member(
            path,
            kind,
            size,
            _parse_number(block[100:108]),
            _parse_mtime(found.get("mtime"), block),
            found.get("linkpath") or _decode_text(block[157:257]),
        )

    def _read_exactly(self, count: int) -> bytes:
        data = self._read(count) if count else b""
        if len(data) < count:
            raise Truncated("the archive is incomplete")
        return data


def _parse_kind(flag: bytes, path: str, found: Mapping[str, str]) -> MemberKind:
    if _SPARSE in found:
        flag = b"S"
    kind = _KINDS.get(flag)
    if kind is None:
        what = _UNSUPPORTED_TYPES.get(flag, f"an entry of the unknown type {flag!r}")
        raise BadArchive(f"{quote(path)} is {what}; only files, directories and links are unpacked")
    # Old archives have no type for directories: they mark directories with a slash at the end.
    return MemberKind.DIRECTORY if kind is MemberKind.FILE and path.endswith("/") else kind


def _is_checksum_valid(block: bytes) -> bool:
    try:
        expected = _parse_number(block[148:156])
    except BadArchive:
        return False
    rest = block[:148] + b" " * 8 + block[156:]
    # Accept both sums, because some archivers sum the bytes as signed numbers.
    return expected == sum(rest) or expected == sum(memoryview(rest).cast("b"))


def _parse_number(field: bytes) -> int:
    """Parse a number in octal digits, or in the binary form for large numbers."""
    if field[0] == 0x80:
        return int.from_bytes(field[1:], "big")
    digits = field.split(b"\0", 1)[0].strip()
    try:
        value = int(digits, 8) if digits else 0
    except ValueError:
        value = -1
    if value < 0:
        raise BadArchive("a header has an invalid number")
    return value


def _parse_size(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 20:
        raise BadArchive("a header has an invalid size")
    return int(text)


def _parse_mtime(text: str | None, block: bytes) -> float:
    try:
        return float(text) if text is not None else float(_parse_number(block[136:148]))
    except (ValueError, BadArchive):
        return 0.0


def _parse_path(block: bytes) -> str:
    name = _decode_text(block[:100])
    prefix = _decode_text(block[345:500]) if block[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _decode_text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode(errors="surrogateescape")


def _parse_pax(content: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Parse records of the form `<length> <key>=<value>\\n`."""
    at = 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at, at + 8)
        length = int(content[at:space]) if content[at:space].isdigit() and space > at else 0
        record = content[space + 1 : at + length]
        key, equals, value = record.partition(b"=")
        # A record without a length would cause an endless loop.
        if not length or at + length > len(content) or not equals or not value.endswith(b"\n"):
            raise BadArchive("an extended header is invalid")
        yield key, value[:-1]
        at += length
