"""Where configurations come from: a file that is watched, or somebody who pushes.

A source hands over one candidate after the other and is told what became of each. The newest one
counts: a candidate nobody has taken yet is superseded by the next.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from cogwork.config.file import Unreadable, read_text
from cogwork.config.load import Located
from cogwork.config.positions import Json
from cogwork.core.clock import Clock
from cogwork.core.workers import Workers
from cogwork.graph.reconcile import Applied, Superseded


@dataclass(frozen=True, slots=True)
class Refused:
    """The configuration cannot be used at all; the machine keeps what it runs."""

    faults: tuple[Located, ...]

    @property
    def because(self) -> str:
        return "; ".join(fault.diagnostic.message for fault in self.faults)


Verdict = Applied | Superseded | Refused


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """A configuration that wants to be applied: text, a value, or why there is none."""

    content: str | dict[str, Json] | Unreadable
    file: str | None = None
    verdict: asyncio.Future[Verdict] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    def decide(self, verdict: Verdict) -> None:
        if not self.verdict.done():
            self.verdict.set_result(verdict)

    def fail(self, error: Exception) -> None:
        """Something went wrong that is not the candidate's fault."""
        if not self.verdict.done():
            self.verdict.set_exception(error)
            # Whoever pushed it may not wait for it; it is logged where it happened.
            self.verdict.exception()


class Source(Protocol):
    async def next(self) -> Candidate:
        """The first one at once, another one when it changed."""

    async def aclose(self) -> None: ...


class PushedSource:
    """For whoever is told of changes, as by a cloud."""

    def __init__(self) -> None:
        self._pushed: Candidate | None = None
        self._arrived = asyncio.Event()
        self._closed = False

    def push(self, content: str | dict[str, Json]) -> asyncio.Future[Verdict]:
        """The future says what became of it."""
        if self._pushed is not None:
            self._pushed.decide(Superseded(""))
        self._pushed = Candidate(content)
        self._arrived.set()
        if self._closed:
            self._pushed.decide(Superseded(""))
        return self._pushed.verdict

    async def next(self) -> Candidate:
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
    """Looks at the file instead of waiting for the system's word: the same for every way to save,
    every file system and every platform, and a look costs microseconds."""

    def __init__(
        self, path: Path, clock: Clock, *, look_every: float = 0.25, quiet: float = 0.25
    ) -> None:
        self._path = path
        self._clock = clock
        self._look_every = look_every
        self._quiet = quiet
        self._seen: _Signature | None = None
        self._text: str | None = None
        self._taken = False
        self._thread = Workers("config-file")

    async def next(self) -> Candidate:
        while True:
            signature = await self._look()
            if self._taken and signature == self._seen:
                await self._clock.sleep(self._look_every)
                continue
            if self._taken:
                signature = await self._settled(signature)
            candidate = await self._read()
            self._seen = signature
            if candidate is not None:
                return candidate

    async def aclose(self) -> None:
        self._thread.close()

    async def _settled(self, signature: _Signature) -> _Signature:
        """Wait until the writer has paused, but not for ever."""
        deadline = self._clock.monotonic() + 8 * self._quiet
        while self._clock.monotonic() < deadline:
            await self._clock.sleep(self._quiet)
            latest = await self._look()
            if latest == signature:
                break
            signature = latest
        return signature

    async def _read(self) -> Candidate | None:
        """None when the file says what it said before."""
        content: str | Unreadable
        try:
            content = await self._thread.run(lambda: read_text(self._path))
        except Unreadable as error:
            content = error
        text = content if isinstance(content, str) else None
        if self._taken and text is not None and text == self._text:
            return None
        self._taken = True
        self._text = text
        return Candidate(content, str(self._path))

    async def _look(self) -> _Signature:
        return await self._thread.run(lambda: _signature(self._path))


_Signature = tuple[int, int, int, int] | None


def _signature(path: Path) -> _Signature:
    """Differs whenever the file was written to or replaced."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino
