"""An entry of the configuration history, and its encoding with a checksum."""

from __future__ import annotations

import enum
import hashlib
import json
import math
from dataclasses import dataclass
from typing import Any

from cogwork.core.errors import CogworkError

_MAGIC = "cogwork-config-history"
_FORMAT = 1
_MAX_NAME_LENGTH = 200


class DamagedEntry(CogworkError):
    """The bytes are not an entry of the history; the message is the reason."""


class AuthorKind(enum.StrEnum):
    """The way in which a configuration was changed."""

    FILE = "file"
    """By an edit of the file."""
    PAGE = "page"
    """By a save through the control page."""
    RESTORE = "restore"
    """By restoring an entry of the history."""


@dataclass(frozen=True, slots=True)
class Author:
    kind: AuthorKind
    name: str = ""
    """The login entity or the user; empty if unknown."""
    restored: int | None = None
    """The ID of the entry that was restored."""

    def __str__(self) -> str:
        by = f" by {self.name}" if self.name else ""
        if self.kind is AuthorKind.RESTORE:
            return f"restore of {self.restored}{by}"
        return f"page{by}" if self.kind is AuthorKind.PAGE else "file"


FILE_AUTHOR = Author(AuthorKind.FILE)


@dataclass(frozen=True, slots=True)
class EntryDetails:
    """A configuration that the machine applied, without its text."""

    id: int
    applied_at: float
    """Seconds since 1970."""
    author: Author
    revision: str
    summary: str
    """A summary of the changes since the previous entry."""
    size: int
    """The size of the text in bytes."""


@dataclass(frozen=True, slots=True)
class HistoryEntry(EntryDetails):
    """A configuration that the machine applied."""

    text: str
    """The text before substitution of variables."""

    @property
    def details(self) -> EntryDetails:
        return EntryDetails(
            self.id, self.applied_at, self.author, self.revision, self.summary, self.size
        )


@dataclass(frozen=True, slots=True)
class AnnouncedSave:
    """The author of a text that is about to be written to the configuration file."""

    checksum: str
    author: Author
    time: float


def checksum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def encode_entry(entry: HistoryEntry) -> bytes:
    return _seal(json.dumps(describe_entry(entry)).encode() + b"\n" + entry.text.encode())


def decode_entry(content: bytes, entry_id: int) -> HistoryEntry:
    """Return the entry. Raise DamagedEntry."""
    head, _, text = _unseal(content).partition(b"\n")
    try:
        details = json.loads(head)
        if details["id"] != entry_id:
            raise DamagedEntry("the file name and the content have different IDs")
        return HistoryEntry(
            entry_id,
            _expect_time(details["applied_at"]),
            _decode_author(details["author"]),
            _expect_text(details["revision"]),
            _expect_text(details["summary"]),
            len(text),
            text.decode(),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedEntry("unknown format") from None


def describe_entry(entry: EntryDetails) -> dict[str, Any]:
    """Return an entry without its text, as JSON."""
    return {
        "id": entry.id,
        "applied_at": entry.applied_at,
        "author": describe_author(entry.author),
        "revision": entry.revision,
        "summary": entry.summary,
        "size": entry.size,
    }


def describe_author(author: Author) -> dict[str, Any]:
    return {"kind": author.kind.value, "name": author.name, "restored": author.restored}


def encode_announcement(announcement: AnnouncedSave) -> bytes:
    details = {
        "checksum": announcement.checksum,
        "author": describe_author(announcement.author),
        "time": announcement.time,
    }
    return _seal(json.dumps(details).encode())


def decode_announcement(content: bytes) -> AnnouncedSave:
    """Return the announcement. Raise DamagedEntry."""
    try:
        details = json.loads(_unseal(content))
        return AnnouncedSave(
            _expect_text(details["checksum"]),
            _decode_author(details["author"]),
            _expect_time(details["time"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedEntry("unknown format") from None


def _seal(body: bytes) -> bytes:
    return _header(body) + body


def _unseal(content: bytes) -> bytes:
    header, newline, body = content.partition(b"\n")
    if not header.startswith(f"{_MAGIC} ".encode()):
        raise DamagedEntry("not a history file")
    if header + newline != _header(body):
        raise DamagedEntry("checksum mismatch")
    return body


def _header(body: bytes) -> bytes:
    return f"{_MAGIC} {_FORMAT} {len(body)} {checksum(body)}\n".encode()


def _decode_author(value: Any) -> Author:
    restored = value["restored"]
    if restored is not None and type(restored) is not int:
        raise TypeError
    return Author(
        AuthorKind(value["kind"]), _expect_text(value["name"])[:_MAX_NAME_LENGTH], restored
    )


def _expect_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _expect_time(value: Any) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)
