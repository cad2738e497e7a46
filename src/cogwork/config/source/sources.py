"""Configuration sources: a watched file, or configurations that are pushed.

A source yields candidates and receives a verdict on each. A newer candidate supersedes one that
has not been processed yet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cogwork.config.check.loader import LocatedDiagnostic
from cogwork.config.text.file import (
    NoSuchFile,
    TemporarilyUnreadable,
    Unreadable,
    file_signature,
    read_text,
)
from cogwork.config.text.positions import Json
from cogwork.core.backoff import Backoff, RetryPolicy
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.files.file_identity import FileIdentity
from cogwork.core.workers import TooMuchWork, Workers
from cogwork.graph.reconciler import Applied, Superseded

RETRY = RetryPolicy(first=0.2, maximum=5.0)
"""Delays between attempts to read or check a file while memory, threads or files are exhausted."""

_log = logging.getLogger("rdk.config")


@dataclass(frozen=True, slots=True)
class ConfigRefused:
    """The configuration is unusable; the machine keeps its current one."""

    diagnostics: tuple[LocatedDiagnostic, ...]

    @property
    def reason(self) -> str:
        return "; ".join(fault.diagnostic.message for fault in self.diagnostics)


Verdict = Applied | Superseded | ConfigRefused


@dataclass(frozen=True, slots=True, eq=False)
class ConfigCandidate:
    """A configuration to apply: text, a value, or the error that prevented reading it."""

    content: str | dict[str, Json] | Unreadable
    file: str | None = None
    directory: Path | None = None
    """The absolute directory of the configuration file; None for a configuration from a cloud."""
    verdict: asyncio.Future[Verdict] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    store: Callable[[], Awaitable[None]] | None = None
    """Stores what the source needs to yield this configuration again. Called once it is applied,
    before the verdict."""

    def decide(self, verdict: Verdict) -> None:
        if not self.verdict.done():
            self.verdict.set_result(verdict)

    def fail(self, error: Exception) -> None:
        """Report an internal error that the candidate did not cause."""
        if not self.verdict.done():
            self.verdict.set_exception(error)
            # Retrieve the error, so that asyncio does not log it again if nothing awaits the
            # verdict.
            self.verdict.exception()


class ConfigSource(Protocol):
    async def next(self) -> ConfigCandidate:
        """Return the first candidate immediately, and later ones when something changes."""

    async def aclose(self) -> None: ...


class PushedSource:
    """A source for configurations that are pushed, such as by the cloud."""

    def __init__(self) -> None:
        self._pushed: ConfigCandidate | None = None
        self._arrived = asyncio.Event()
        self._closed = False

    def push(self, content: str | dict[str, Json]) -> asyncio.Future[Verdict]:
        """Submit a configuration and return a future for its verdict."""
        if self._pushed is not None:
            self._pushed.decide(Superseded(""))
        self._pushed = ConfigCandidate(content)
        self._arrived.set()
        if self._closed:
            self._pushed.decide(Superseded(""))
        return self._pushed.verdict

    async def next(self) -> ConfigCandidate:
        await self._arrived.wait()
        self._arrived.clear()
        candidate, self._pushed = self._pushed, None
        assert candidate is not None
        return candidate

    async def aclose(self) -> None:
        self._closed = True
        if self._pushed is not None:
            self._pushed.decide(Superseded(""))


class FileSource:
    """A source that polls a file.

    Unlike file system events, polling works for every way to save a file and on every file system
    and platform, and it only takes microseconds.
    """

    def __init__(
        self, path: Path, clock: Clock, *, poll_interval: float = 0.25, debounce: float = 0.25
    ) -> None:
        self._path = path
        self._clock = clock
        self._poll_interval = poll_interval
        self._debounce_time = debounce
        self._last_signature: FileIdentity | None = None
        self._last_text: str | None = None
        self._has_delivered = False
        self._backoff = Backoff(RETRY)
        """The number of times in a row that the file was temporarily unreadable."""
        self._thread = Workers("config-file")

    async def next(self) -> ConfigCandidate:
        while True:
            candidate = await self._poll()
            if candidate is not None:
                return candidate

    async def _poll(self) -> ConfigCandidate | None:
        """Return a changed configuration; wait and return None if there is no change."""
        try:
            if self._backoff.failures:
                await self._clock.sleep(self._backoff.delay)
            signature = await self._read_signature()
            is_unchanged = self._has_delivered and signature == self._last_signature
            if is_unchanged and not self._backoff.failures:
                await self._clock.sleep(self._poll_interval)
                return None
            if self._has_delivered:
                signature = await self._debounce(signature)
            content = await self._read_content()
        except (TemporarilyUnreadable, TooMuchWork) as error:
            return self._schedule_retry(error)
        if self._backoff.failures:
            self._backoff.reset()
            _log.info("%s is readable again", self._path)
        # Forget the signature of a deleted file, because the file may reappear with the same one.
        self._last_signature = None if isinstance(content, NoSuchFile) else signature
        return self._make_candidate(content)

    async def aclose(self) -> None:
        self._thread.close()

    async def _debounce(self, signature: FileIdentity | None) -> FileIdentity | None:
        """Wait until the file has stopped changing, or until a timeout."""
        deadline = self._clock.monotonic() + 8 * self._debounce_time
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(self._debounce_time)
            latest = await self._read_signature()
            if latest == signature:
                break
            signature = latest
        return signature

    async def _read_content(self) -> str | Unreadable:
        """Return the text, or a permanent error. Raise TemporarilyUnreadable."""
        try:
            return await self._thread.run(lambda: read_text(self._path))
        except TemporarilyUnreadable:
            raise
        except Unreadable as error:
            return error

    def _make_candidate(self, content: str | Unreadable) -> ConfigCandidate | None:
        """Return a candidate, or None if the text is unchanged."""
        text = content if isinstance(content, str) else None
        if self._has_delivered and text is not None and text == self._last_text:
            return None
        self._has_delivered = True
        self._last_text = text
        return self._build_candidate(content)

    def _schedule_retry(self, error: CogworkError) -> ConfigCandidate | None:
        """Schedule another attempt. If this was the first read, return the error as a candidate;
        otherwise the last candidate stays in effect."""
        if not self._backoff.failures:
            _log.error(
                "cannot read %s: %s; keeping the current configuration and retrying",
                self._path,
                error,
            )
        self._backoff.next_delay()
        if self._has_delivered:
            return None
        self._has_delivered = True
        return self._build_candidate(Unreadable(str(error)))

    def _build_candidate(self, content: str | Unreadable) -> ConfigCandidate:
        return ConfigCandidate(content, str(self._path), self._path.absolute().parent)

    async def _read_signature(self) -> FileIdentity | None:
        return await self._thread.run(lambda: file_signature(self._path))
