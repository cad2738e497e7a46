"""The configurations that a machine applied, stored on disk with their times and authors.

A damaged file is reported once and skipped.
"""

from __future__ import annotations

import logging
import os
import re
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cogwork.config.source.change_summary import summarize_change
from cogwork.config.source.history_entry import (
    FILE_AUTHOR,
    AnnouncedSave,
    Author,
    DamagedEntry,
    EntryDetails,
    HistoryEntry,
    checksum,
    decode_announcement,
    decode_entry,
    encode_announcement,
    encode_entry,
)
from cogwork.config.source.last_good import last_good_for
from cogwork.config.text.file import MAX_FILE_SIZE
from cogwork.core.escape import escape
from cogwork.core.files import atomic
from cogwork.core.files.file_identity import FileIdentity, identify
from cogwork.core.os_error_text import os_reason

MAX_ENTRIES = 200
MAX_TOTAL_SIZE = 64 << 20
"""Maximum bytes of all entries together. The newest entry stays, whatever its size."""

_ENTRY_NAME = re.compile(r"([1-9][0-9]{0,8})\.config")
_ANNOUNCEMENT_NAME = "next-author"
_TEMPORARY_NAME = re.compile(r"\..+\.tmp")
_MAX_REVISION_LENGTH = 200
_MAX_STORED_SIZE = MAX_FILE_SIZE + (64 << 10)
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ANNOUNCEMENT_LIFETIME = 60.0
"""Maximum age of an announcement in seconds. When another text is applied, an older announcement is
deleted."""

_log = logging.getLogger("rdk.config")


class _CheckedFile(NamedTuple):
    identity: FileIdentity | None
    details: EntryDetails


class ConfigHistory:
    """The history of one configuration file. Its methods block, and may run in any thread."""

    def __init__(
        self, directory: Path, report: Callable[[str], None] = lambda text: _log.warning("%s", text)
    ) -> None:
        """`report` is called with a sentence about each file that is skipped."""
        self.directory = directory
        self._report = report
        self._reported: set[str] = set()
        self._lock = threading.Lock()
        self._checked: dict[int, _CheckedFile] = {}
        """The intact files by ID. A file is read and checked again only after it has changed."""
        self._checked_lock = threading.Lock()

    def record(self, text: str, revision: str, now: float) -> None:
        """Add a configuration that was applied, unless the newest entry has the same text.

        Raise OSError, and ValueError if the text cannot be encoded.
        """
        data = text.encode()
        with self._lock:
            author = self._take_author(checksum(data), now)
            newest = next(self.entries(), None)
            if newest is not None and newest.text == text:
                return
            entry_id = self._next_id(newest)
            summary = summarize_change(newest.text, text) if newest is not None else "first entry"
            label = revision[:_MAX_REVISION_LENGTH]
            entry = HistoryEntry(entry_id, now, author, label, summary, len(data), text)
            self._write(self._path(entry_id), encode_entry(entry))
            self._remove_oldest()

    def announce(self, text: str, author: Author, now: float) -> None:
        """Record the author of a text that is about to be written to the file. Raise OSError."""
        announcement = AnnouncedSave(checksum(text.encode()), author, now)
        with self._lock:
            self._write(self._announcement_path, encode_announcement(announcement))

    def entries(self) -> Iterator[HistoryEntry]:
        """Yield the entries, newest first. Raise OSError if the directory cannot be read."""
        for entry_id in sorted(self._list_ids(), reverse=True):
            entry = self._read(entry_id)
            if entry is not None:
                yield entry

    def list_details(self) -> list[EntryDetails]:
        """Return the entries without their texts, newest first. Repeated calls are cheap.

        Raise OSError if the directory cannot be read.
        """
        with self._checked_lock:
            ids = sorted(self._list_ids(), reverse=True)
            checked = {entry_id: self._check(entry_id) for entry_id in ids}
            self._checked = {key: file for key, file in checked.items() if file is not None}
            return [file.details for file in self._checked.values()]

    def find(self, entry_id: int) -> HistoryEntry | None:
        """Return an entry. Raise OSError if the directory cannot be read."""
        return self._read(entry_id) if entry_id in self._list_ids() else None

    def rewrite(self, change: Callable[[str], str]) -> None:
        """Replace the text of each entry by the result of a function. Raise OSError."""
        with self._lock:
            for entry in self.entries():
                text = change(entry.text)
                if text != entry.text:
                    changed = replace(entry, text=text, size=len(text.encode()))
                    self._write(self._path(entry.id), encode_entry(changed))

    def _take_author(self, of: str, now: float) -> Author:
        """Return the author of the text with this checksum. Delete the announcement if it was for
        this text or is too old."""
        announced = self._read_announcement()
        if announced is None:
            return FILE_AUTHOR
        is_this = announced.checksum == of
        if is_this or abs(now - announced.time) > _ANNOUNCEMENT_LIFETIME:
            self._announcement_path.unlink(missing_ok=True)
        return announced.author if is_this else FILE_AUTHOR

    def _read_announcement(self) -> AnnouncedSave | None:
        try:
            return decode_announcement(_read_file(self._announcement_path))
        except FileNotFoundError:
            return None
        except (OSError, DamagedEntry) as error:
            self._report_once(_ANNOUNCEMENT_NAME, error)
            return None

    def _read(self, entry_id: int) -> HistoryEntry | None:
        path = self._path(entry_id)
        try:
            return decode_entry(_read_file(path), entry_id)
        except FileNotFoundError:
            return None  # Another process has removed this file, which was the oldest.
        except (OSError, DamagedEntry) as error:
            self._report_once(path.name, error)
            return None

    def _check(self, entry_id: int) -> _CheckedFile | None:
        identity = _identify(self._path(entry_id))
        known = self._checked.get(entry_id)
        if known is not None and known.identity == identity:
            return known
        entry = self._read(entry_id)
        return _CheckedFile(identity, entry.details) if entry is not None else None

    def _list_ids(self) -> set[int]:
        try:
            names = [path.name for path in self.directory.iterdir()]
        except FileNotFoundError:
            return set()
        ids: set[int] = set()
        for name in names:
            if found := _ENTRY_NAME.fullmatch(name):
                ids.add(int(found[1]))
            elif name != _ANNOUNCEMENT_NAME and not _TEMPORARY_NAME.fullmatch(name):
                self._report_once(name, DamagedEntry("not a file of the history"))
        return ids

    def _next_id(self, newest: HistoryEntry | None) -> int:
        entry_id = newest.id + 1 if newest is not None else 1
        taken = self._list_ids()
        while entry_id in taken:  # skip the IDs of damaged files
            entry_id += 1
        return entry_id

    def _remove_oldest(self) -> None:
        newest_first = sorted(self._list_ids(), reverse=True)
        total = 0
        for place, entry_id in enumerate(newest_first):
            path = self._path(entry_id)
            try:
                total += path.lstat().st_size
                if place >= MAX_ENTRIES or (place and total > MAX_TOTAL_SIZE):
                    path.unlink()
            except FileNotFoundError:
                continue
            except OSError as error:
                self._report_once(path.name, error)

    def _write(self, path: Path, content: bytes) -> None:
        atomic.make_directory(self.directory)
        directory = self.directory.stat()
        if stat.S_IMODE(directory.st_mode) != 0o700:
            self.directory.chmod(0o700)
        atomic.write(path, content)
        if directory.st_uid != os.geteuid():
            # Root may write the announcement, but the server must be able to read it as another
            # user.
            os.chown(path, directory.st_uid, directory.st_gid)

    def _report_once(self, name: str, error: Exception) -> None:
        if name not in self._reported and len(self._reported) < MAX_ENTRIES:
            self._reported.add(name)
            reason = os_reason(error)
            self._report(
                f"skipping {escape(str(self.directory / name))} in the configuration history: "
                f"{reason}; delete it"
            )

    def _path(self, entry_id: int) -> Path:
        return self.directory / f"{entry_id}.config"

    @property
    def _announcement_path(self) -> Path:
        return self.directory / _ANNOUNCEMENT_NAME


def config_history_for(home: Path, config_file: Path) -> ConfigHistory:
    """Return the history of a configuration file."""
    return ConfigHistory(history_directory(home, config_file))


def history_directory(home: Path, config_file: Path) -> Path:
    """Return the directory of a history, named like the last-known-good copy of the same file."""
    return home / "config-history" / last_good_for(home, config_file).path.stem


def _identify(path: Path) -> FileIdentity | None:
    """Return the content of the file; None if the file does not exist."""
    try:
        return identify(path.lstat())
    except OSError:
        return None


def _read_file(path: Path) -> bytes:
    """Read a regular file; a pipe would block."""
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise DamagedEntry("not a regular file")
        with open(descriptor, "rb", closefd=False) as file:
            content = file.read(_MAX_STORED_SIZE + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MAX_STORED_SIZE:
        raise DamagedEntry("the file is too large")
    return content
