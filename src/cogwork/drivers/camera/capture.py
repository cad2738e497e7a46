"""The one loop that reads a device, however many want its pictures.

A thread of its own opens the source, reads it, and opens it again when it is lost. Only the
newest picture is kept: nothing queues, and nobody's slowness is anybody else's delay.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.newest import Newest
from cogwork.core.workers import Workers
from cogwork.resource.frame import Frame, Picture
from cogwork.resource.image import Pixels

_FIRST_PICTURE = 10.0
"""Seconds that a source gets to be opened, while callers wait for it."""
_PAUSES = (0.25, 0.5, 1.0, 1.5)
"""Seconds before the source is opened again; the last one stays."""
_ENDING = 5.0
"""Seconds that the thread gets to leave the source."""


class SourceFault(CogworkError):
    """There are no pictures, and why."""

    status = "UNAVAILABLE"

    def __init__(self, code: str, sentence: str, *, final: bool = False) -> None:
        """`final`: it stays so, and is not tried again."""
        super().__init__(sentence)
        self.code = code
        self.final = final


Shot = Callable[[], Pixels]
"""Makes a picture of what was read. A source with work to put off, such as converting colours,
puts it here: it is done for pictures that somebody wants."""


class Opened(Protocol):
    @property
    def rate(self) -> float | None:
        """Pictures a second, where the source says so."""

    def read(self) -> Shot:
        """Blocks until the next picture, a few seconds at most. Raises SourceFault."""

    def close(self) -> None: ...


class Source(Protocol):
    def open(self) -> Opened:
        """Blocks. Raises SourceFault."""


@dataclass(frozen=True, slots=True)
class _Taken:
    number: int
    shot: Shot
    at: float
    """On the clock's own time."""
    captured_at: float


class Capture:
    def __init__(
        self,
        source: Source,
        clock: Clock,
        logger: logging.Logger,
        workers: Workers,
        *,
        stall: float = 3.0,
        pauses: tuple[float, ...] = _PAUSES,
    ) -> None:
        """`stall`: seconds without a picture after which a source counts as lost."""
        self._source = source
        self._clock = clock
        self._log = logger
        self._workers = workers
        self._stall = stall
        self._pauses = pauses
        self._fault: SourceFault | None = None
        self._lost_at = 0.0
        self._taken: _Taken | None = None
        self._pace = Pace()
        self._frame: Newest[Frame] = Newest()
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._news = self._loop.create_future()
        self._ended = self._loop.create_future()
        self._told = threading.Event()
        self._thread = threading.Thread(target=self._run, name=workers.name, daemon=True)
        self._watch = self._loop.create_task(self._watched())
        self._thread.start()

    @property
    def trouble(self) -> str | None:
        """Why there are no pictures."""
        if self._fault is None:
            return None
        age = self._age()
        last = f"the last picture is {age:.1f} s old" if age is not None else "no picture came yet"
        return f"{self._fault}; {last}{_prospect(self._fault)}"

    def status(self) -> Mapping[str, Any]:
        return {
            "state": self._state(),
            "code": self._fault.code if self._fault is not None else "",
            "reason": self.trouble or "",
            "pictures": self._taken.number if self._taken is not None else 0,
            "missed": self._pace.missed,
            "rate": round(self._pace.rate(self._clock.monotonic()), 2),
            "age_seconds": self._age(),
        }

    async def frame(self) -> Frame:
        """The newest picture. Whoever comes before the first one waits for it."""
        while self._taken is None and self._fault is None:
            await self._clock.wait([self._news], _FIRST_PICTURE)
        if self._fault is not None:
            raise SourceFault(self._fault.code, self.trouble or "")
        taken = self._taken
        assert taken is not None
        return await self._frame.of(
            taken.number, lambda: asyncio.wrap_future(self._workers.submit(self._develop, taken))
        )

    async def aclose(self) -> None:
        self._stop.set()
        self._fault = SourceFault("closed", "the camera is closed", final=True)
        self._wake()
        self._watch.cancel()
        await asyncio.wait([self._watch])
        await self._frame.aclose()
        await self._clock.wait([self._ended], _ENDING)
        if self._ended.done():
            self._thread.join()
        else:
            self._log.warning("the source does not let go; its thread is left to itself")

    def _develop(self, taken: _Taken) -> Frame:
        return Frame(Picture(taken.shot(), self._workers), taken.captured_at)

    def _state(self) -> str:
        if self._fault is not None:
            return "lost"
        return "opening" if self._taken is None else "live"

    def _age(self) -> float | None:
        return None if self._taken is None else self._clock.monotonic() - self._taken.at

    # The thread's side.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            before = self._taken
            fault = self._failure()
            self._told.clear()  # a picture after this is news again
            self._tell(self._lose, fault)
            if fault.final:
                break
            failures = 0 if self._taken is not before else failures
            self._stop.wait(self._pauses[min(failures, len(self._pauses) - 1)])
            failures += 1
        self._tell(self._ended.set_result, None)

    def _failure(self) -> SourceFault:
        """Reads for as long as it can."""
        try:
            self._read_on()
        except SourceFault as fault:
            # A traceback keeps what was open, such as the threads of a decoder: this has none.
            return SourceFault(fault.code, str(fault), final=fault.final)
        except Exception as error:
            self._log.debug("reading failed", exc_info=True)
            return SourceFault("failed", f"reading it failed: {error}")
        return SourceFault("closed", "the camera is closed", final=True)

    def _read_on(self) -> None:
        opened = self._source.open()
        try:
            self._pace.begin(opened.rate)
            while not self._stop.is_set():
                shot = opened.read()
                self._arrive(shot)
        finally:
            opened.close()

    def _arrive(self, shot: Shot) -> None:
        now = self._clock.monotonic()
        self._pace.count(now)
        number = self._taken.number + 1 if self._taken is not None else 1
        self._taken = _Taken(number, shot, now, self._clock.time())
        # One message is enough until it is read, however many pictures come meanwhile.
        if not self._told.is_set():
            self._told.set()
            self._tell(self._seen)

    def _tell(self, what: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *arguments)
        except RuntimeError:
            self._stop.set()  # the loop is gone, and so is everybody who would look

    # The loop's side.

    def _seen(self) -> None:
        self._told.clear()
        if self._stop.is_set():
            return
        if self._fault is not None:
            lost = self._clock.monotonic() - self._lost_at
            self._log.info("there are pictures again, after %.1f s", lost)
            self._fault = None
        self._wake()

    def _lose(self, fault: SourceFault) -> None:
        if self._stop.is_set():
            return
        if self._fault is None:
            self._log.warning("there are no pictures: %s%s", fault, _prospect(fault))
            self._lost_at = self._clock.monotonic()
        self._fault = fault
        self._wake()

    def _wake(self) -> None:
        if not self._news.done():
            self._news.set_result(None)

    async def _watched(self) -> None:
        """A source that hangs cannot say so itself."""
        while True:
            patience = _FIRST_PICTURE if self._taken is None else self._stall
            await self._clock.wait([self._news], patience)
            if self._news.done():
                self._news = self._loop.create_future()
            elif self._fault is None:
                self._lose(self._silence(patience))

    def _silence(self, seconds: float) -> SourceFault:
        if self._taken is None:
            return SourceFault("opening", f"the source has been opening for {seconds:g} s")
        return SourceFault("stalled", f"the source is open and sent nothing for {seconds:g} s")


def _prospect(fault: SourceFault) -> str:
    return "" if fault.final else "; it is tried again"


class Pace:
    """How many pictures come, and how many should have."""

    def __init__(self) -> None:
        self.missed = 0
        """Pictures that the source should have brought by its own rate, and did not."""
        self._rate: float | None = None
        self._arrivals: deque[float] = deque(maxlen=1200)

    def begin(self, rate: float | None) -> None:
        self._rate = rate
        self._arrivals.clear()

    def count(self, now: float) -> None:
        if self._rate and self._arrivals:
            gap = (now - self._arrivals[-1]) * self._rate
            # Late by less than one and a half is jitter.
            self.missed += max(round(gap) - 1, 0) if gap > 1.5 else 0
        self._arrivals.append(now)

    def rate(self, now: float) -> float:
        """Pictures a second, over the last five seconds."""
        # A copy first: the thread goes on counting.
        recent = [each for each in tuple(self._arrivals) if now - each < 5]
        if len(recent) < 2:
            return 0.0
        # A stream begins with what it had ready, all at once.
        return (len(recent) - 1) / max(recent[-1] - recent[0], 1.0)
