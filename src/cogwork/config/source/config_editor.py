"""Reads, checks and saves the configuration file of a running machine for its control page."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cogwork.config.check import diagnostic_format, diff
from cogwork.config.check.checker import CheckResult
from cogwork.config.check.diagnostic_collector import CheckCancelled
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig
from cogwork.config.check.planned_steps import PlannedStep, list_planned_steps
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.file_replacement import find_obstacle, replace_text
from cogwork.config.source.history_entry import Author, AuthorKind, checksum
from cogwork.config.source.watcher import load_content
from cogwork.config.text.file import Unreadable, read_text
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.core.os_error_text import write_reason

MAX_EDIT_SIZE = 2 * 1024 * 1024
"""Maximum bytes of a text that is checked for the page.

Files may be larger, but a client may send a hostile text: at the maximum size of a file, checking
it would take gigabytes of memory and half a minute while the machine runs.
"""

_log = logging.getLogger("rdk.config")

IsCancelled = Callable[[], bool]


class StaleEdit(CogworkError):
    """The file was changed after the editor read it."""


class CannotWrite(CogworkError):
    """The file cannot be written."""


class WouldBeRefused(CogworkError):
    """The machine would not apply the text."""

    def __init__(self, diagnostics: list[dict[str, Any]]) -> None:
        super().__init__("the machine would refuse this configuration; fix its errors")
        self.diagnostics = diagnostics


@dataclass(frozen=True, slots=True)
class ConfigText:
    text: str
    checksum: str
    obstacle: str
    """The reason why the file cannot be edited; empty if it can be edited."""


@dataclass(frozen=True, slots=True)
class ConfigPreview:
    """The result of a dry run: the changes that saving a text would make."""

    diagnostics: list[dict[str, Any]]
    plan: list[PlannedStep]
    settings: list[diff.SectionChange]
    """Changes of sections other than the resources."""
    is_refused: bool


@dataclass(frozen=True, slots=True)
class Edit:
    text: str
    checksum: str
    """The checksum of the text that was edited."""
    restored: int | None
    """The ID of the history entry that is restored; empty for any other edit."""


class ConfigEditor:
    """Reads, checks and saves the configuration file. Its methods block, so call them in
    threads."""

    def __init__(
        self,
        file: Path,
        history: ConfigHistory,
        context: LoadContext,
        running: Callable[[], LoadedConfig | None],
        redact: Callable[[str], str],
        clock: Clock,
    ) -> None:
        """`running` returns the configuration that the machine uses."""
        self.history = history
        self._file = file
        self._context = context
        self._running = running
        self._redact = redact
        self._clock = clock
        self._lock = threading.Lock()

    def read(self) -> ConfigText:
        """Return the text to edit. A configuration from a cloud is read-only, with its secrets
        masked."""
        running = self._running()
        if running is not None and (cloud := _cloud_of(running)):
            return ConfigText(self._redact(running.text), "", _describe_cloud(cloud))
        try:
            text = read_text(self._file)
        except Unreadable as error:
            return ConfigText("", "", f"cannot read {self._file}: {error}")
        data = text.encode()
        return ConfigText(text, checksum(data), self._find_obstacle(len(data)))

    def preview(self, content: str | Unreadable, is_cancelled: IsCancelled) -> ConfigPreview:
        """Return the changes that saving the text would make. Raise CheckCancelled and
        MemoryError."""
        loaded = load_content(content, self._context, is_cancelled)
        diagnostics = self._describe(loaded)
        if loaded.is_refused:
            return ConfigPreview(diagnostics, [], [], is_refused=True)
        running = self._running()
        before = running.result if running is not None else _NOTHING
        change = diff.diff(before, loaded.result, self._context.catalog)
        steps = list_planned_steps(change)
        return ConfigPreview(diagnostics, steps, change.sections, is_refused=False)

    def save(self, edit: Edit, name: str, is_cancelled: IsCancelled) -> str:
        """Write the file and return its checksum. The machine applies it like any other edit.

        `name` is the user who saves the file. Raise StaleEdit, WouldBeRefused, CannotWrite,
        InvalidRequest, CheckCancelled and MemoryError.
        """
        data = _encode(edit.text)
        running = self._running()
        if running is not None and (cloud := _cloud_of(running)):
            raise CannotWrite(_describe_cloud(cloud))
        loaded = load_content(edit.text, self._context, is_cancelled)
        if loaded.is_refused:
            raise WouldBeRefused(self._describe(loaded))
        with self._lock:
            if is_cancelled():
                raise CheckCancelled
            self._replace(edit, name)
        return checksum(data)

    def _find_obstacle(self, size: int) -> str:
        if size > MAX_EDIT_SIZE:
            return f"{self._file} is larger than {_LIMIT}; edit the file itself"
        return find_obstacle(self._file) or ""

    def _replace(self, edit: Edit, name: str) -> None:
        before = self._read_unchanged(edit.checksum)
        if before == edit.text:
            return
        self._announce(edit, name)
        try:
            replace_text(self._file, edit.text)
        except OSError as error:
            raise CannotWrite(
                f"cannot write {self._file}: {write_reason(error)}; fix that and save again"
            ) from None
        _log.info("the configuration was saved on the control page by %s", name or "a client")

    def _read_unchanged(self, expected: str) -> str:
        try:
            text = read_text(self._file)
        except Unreadable as error:
            raise StaleEdit(f"cannot read {self._file}: {error}") from None
        if checksum(text.encode()) != expected:
            raise StaleEdit(
                f"{self._file} was changed since you opened it; reload it and edit it again"
            )
        return text

    def _announce(self, edit: Edit, name: str) -> None:
        try:
            self.history.announce(edit.text, self._find_author(edit, name), self._clock.time())
        except OSError as error:
            # Continue without the author in the history: the edit succeeds if the file can be
            # written.
            _log.warning("cannot record in the history who saved the configuration: %s", error)

    def _find_author(self, edit: Edit, name: str) -> Author:
        if edit.restored is not None:
            entry = self.history.find(edit.restored)
            if entry is not None and entry.text == edit.text:
                return Author(AuthorKind.RESTORE, name, entry.id)
        return Author(AuthorKind.PAGE, name)

    def _describe(self, loaded: LoadedConfig) -> list[dict[str, Any]]:
        """Return the diagnostics as the status of the machine shows them."""
        reported = diagnostic_format.as_reported(loaded.diagnostics, loaded.result, str(self._file))
        return [
            {
                key: self._redact(value) if isinstance(value, str) else value
                for key, value in each.items()
            }
            for each in reported
        ]


_LIMIT = f"{MAX_EDIT_SIZE // 1024 // 1024} MiB"
_NOTHING = CheckResult(MachineConfig.model_construct(), (), ())


def _encode(text: str) -> bytes:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        raise InvalidRequest("the text has characters that UTF-8 cannot encode") from None
    if len(data) > MAX_EDIT_SIZE:
        raise InvalidRequest(f"the text is larger than {_LIMIT}; edit the file itself")
    return data


def _cloud_of(running: LoadedConfig) -> str:
    """Return the address of the cloud that provides the configuration; empty without a cloud."""
    cloud = running.result.config.cloud
    return cloud.app_address if cloud is not None else ""


def _describe_cloud(address: str) -> str:
    return (
        f"the configuration of this machine comes from the cloud at {address}; edit it there: "
        "cogwork fleet config edit"
    )
