"""The capture loop that reads a device on behalf of all its users.

A dedicated thread opens the source, reads it, and reopens it after a fault. Only the latest frame
is kept: nothing queues, and a slow consumer does not delay others.
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
from cogwork.core.single_flight import SingleFlight
from cogwork.core.workers import Workers
from cogwork.media.image import Pixels
from cogwork.resource.frame import Frame, Image

_STALL_TIMEOUT = 3.0
_OPEN_TIMEOUT = 10.0
"""Seconds that callers wait for a source to open."""
_RETRY_DELAYS = (0.25, 0.5, 1.0, 1.5)
"""Back-off in seconds before the source is reopened; the last delay repeats."""
_CLOSE_TIMEOUT = 5.0
"""Seconds that the thread gets to release the source."""


class SourceFault(CogworkError):
    """The source does not deliver frames, for the given reason."""

    status = "UNAVAILABLE"

    def __init__(self, code: str, sentence: str, *, final: bool = False) -> None:
        """Set `final` if the fault is permanent, so that the source is not reopened."""
        super().__init__(sentence)
        self.code = code
        self.final = final


DeferredPixels = Callable[[], Pixels]
"""A function that decodes a captured frame.

Sources put expensive work here, such as color conversion, because it runs only for frames that are
requested.
"""


class OpenedSource(Protocol):
    @property
    def rate(self) -> float | None:
        """Frames per second, if the source reports it."""

    def read(self) -> DeferredPixels:
        """Wait a few seconds at most for the next frame and return it. This call blocks.

        Raise SourceFault if no frame arrives.
        """

    def close(self) -> None: ...


class FrameSource(Protocol):
    def open(self) -> OpenedSource:
        """Open the source, or raise SourceFault. This call blocks."""


@dataclass(frozen=True, slots=True)
class _CapturedPicture:
    number: int
    decode: DeferredPixels
    monotonic_at: float
    """Capture time on the monotonic clock."""
    captured_at: float


class Capture:
    def __init__(
        self,
        source: FrameSource,
        clock: Clock,
        logger: logging.Logger,
        workers: Workers,
        *,
        stall: float | None = None,
        retry_delays: tuple[float, ...] = _RETRY_DELAYS,
    ) -> None:
        """`stall` is the configured number of seconds without a frame after which the source counts
        as lost; None if the camera has no such setting."""
        self._source = source
        self._clock = clock
        self._log = logger
        self._workers = workers
        self._stall_timeout = stall if stall is not None else _STALL_TIMEOUT
        self._has_stall_setting = stall is not None
        self._retry_delays = retry_delays
        self._source_fault: SourceFault | None = None
        self._lost_at = 0.0
        self._latest: _CapturedPicture | None = None
        self._rate_meter = FrameRateMeter()
        self._latest_frame: SingleFlight[Frame] = SingleFlight()
        self._stop = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._update_future = self._loop.create_future()
        self._thread_ended = self._loop.create_future()
        self._update_pending = threading.Event()
        self._thread = threading.Thread(target=self._run, name=workers.name, daemon=True)
        self._stall_watcher = self._loop.create_task(self._watch_for_stall())
        self._thread.start()

    @property
    def fault(self) -> str | None:
        """Reason why there are no frames, or None."""
        if self._source_fault is None:
            return None
        age = self._image_age()
        last = f"last frame is {age:.1f} s old" if age is not None else "no frames yet"
        return f"{self._source_fault}; {last}{_retry_hint(self._source_fault)}"

    def status(self) -> Mapping[str, Any]:
        return {
            "state": self._state(),
            "code": self._source_fault.code if self._source_fault is not None else "",
            "reason": self.fault or "",
            "pictures": self._latest.number if self._latest is not None else 0,
            "missed": self._rate_meter.missed,
            "rate": round(self._rate_meter.rate(self._clock.monotonic()), 2),
            "age_seconds": self._image_age(),
        }

    async def latest_frame(self) -> Frame:
        """Return the latest frame. If there is none yet, wait for the first one."""
        while self._latest is None and self._source_fault is None:
            await self._clock.wait([self._update_future], _OPEN_TIMEOUT)
        if self._source_fault is not None:
            raise SourceFault(self._source_fault.code, self.fault or "")
        captured = self._latest
        assert captured is not None
        return await self._latest_frame.get(
            captured.number,
            lambda: asyncio.wrap_future(self._workers.submit(self._make_frame, captured)),
        )

    async def aclose(self) -> None:
        self._stop.set()
        self._source_fault = SourceFault("closed", "the camera is closed", final=True)
        self._notify_waiters()
        self._stall_watcher.cancel()
        await asyncio.wait([self._stall_watcher])
        await self._latest_frame.aclose()
        await self._clock.wait([self._thread_ended], _CLOSE_TIMEOUT)
        if self._thread_ended.done():
            self._thread.join()
        else:
            self._log.warning("the source did not close in time; leaving its thread running")

    def _make_frame(self, captured: _CapturedPicture) -> Frame:
        return Frame(Image(captured.decode(), self._workers), captured.captured_at)

    def _state(self) -> str:
        if self._source_fault is not None:
            return "lost"
        return "opening" if self._latest is None else "live"

    def _image_age(self) -> float | None:
        return None if self._latest is None else self._clock.monotonic() - self._latest.monotonic_at

    # Runs in the capture thread.

    def _run(self) -> None:
        failures = 0
        while not self._stop.is_set():
            before = self._latest
            fault = self._read_until_fault()
            self._update_pending.clear()  # let the next frame notify the loop
            self._call_in_loop(self._on_fault, fault)
            if fault.final:
                break
            failures = 0 if self._latest is not before else failures
            self._stop.wait(self._retry_delays[min(failures, len(self._retry_delays) - 1)])
            failures += 1
        self._call_in_loop(self._thread_ended.set_result, None)

    def _read_until_fault(self) -> SourceFault:
        """Read until a fault occurs, and return it."""
        try:
            self._read_loop()
        except SourceFault as fault:
            # Drop the traceback, which keeps resources alive, such as the threads of a decoder.
            return SourceFault(fault.code, str(fault), final=fault.final)
        except Exception as error:
            self._log.debug("reading frames failed", exc_info=True)
            return SourceFault("failed", f"reading failed: {error}")
        return SourceFault("closed", "the camera is closed", final=True)

    def _read_loop(self) -> None:
        opened = self._source.open()
        try:
            self._rate_meter.reset(opened.rate)
            while not self._stop.is_set():
                decode = opened.read()
                self._on_image_read(decode)
        finally:
            opened.close()

    def _on_image_read(self, decode: DeferredPixels) -> None:
        now = self._clock.monotonic()
        self._rate_meter.record(now)
        number = self._latest.number + 1 if self._latest is not None else 1
        self._latest = _CapturedPicture(number, decode, now, self._clock.time())
        # One notification is enough until the loop has handled it, regardless of further frames.
        if not self._update_pending.is_set():
            self._update_pending.set()
            self._call_in_loop(self._on_image)

    def _call_in_loop(self, callback: Callable[..., None], *arguments: Any) -> None:
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            self._stop.set()  # the loop is closed, so there are no consumers left

    # Runs in the event loop.

    def _on_image(self) -> None:
        self._update_pending.clear()
        if self._stop.is_set():
            return
        if self._source_fault is not None:
            lost = self._clock.monotonic() - self._lost_at
            self._log.info("receiving frames again after %.1f s", lost)
            self._source_fault = None
        self._notify_waiters()

    def _on_fault(self, fault: SourceFault) -> None:
        if self._stop.is_set():
            return
        if self._source_fault is None:
            self._log.warning("no frames: %s%s", fault, _retry_hint(fault))
            self._lost_at = self._clock.monotonic()
        self._source_fault = fault
        self._notify_waiters()

    def _notify_waiters(self) -> None:
        if not self._update_future.done():
            self._update_future.set_result(None)

    async def _watch_for_stall(self) -> None:
        """Detect a source that stalls without reporting a fault."""
        while True:
            timeout = _OPEN_TIMEOUT if self._latest is None else self._stall_timeout
            await self._clock.wait([self._update_future], timeout)
            if self._update_future.done():
                self._update_future = self._loop.create_future()
            elif self._source_fault is None:
                self._on_fault(self._stall_fault(timeout))

    def _stall_fault(self, seconds: float) -> SourceFault:
        if self._latest is None:
            return SourceFault("opening", f"the source has been opening for {seconds:g} s")
        why = f"the source is open but sent nothing for {seconds:g} s"
        advice = '; raise "stall" if it is slow' if self._has_stall_setting else ""
        return SourceFault("stalled", f"{why}{advice}")


def _retry_hint(fault: SourceFault) -> str:
    return "" if fault.final else "; retrying"


class FrameRateMeter:
    """Measures the frame rate and counts missed frames."""

    def __init__(self) -> None:
        self.missed = 0
        """Number of frames that did not arrive, according to the frame rate of the source."""
        self._rate: float | None = None
        self._arrivals: deque[float] = deque(maxlen=1200)

    def reset(self, rate: float | None) -> None:
        self._rate = rate
        self._arrivals.clear()

    def record(self, now: float) -> None:
        if self._rate and self._arrivals:
            gap = (now - self._arrivals[-1]) * self._rate
            # A delay below one and a half intervals is jitter.
            self.missed += max(round(gap) - 1, 0) if gap > 1.5 else 0
        self._arrivals.append(now)

    def rate(self, now: float) -> float:
        """Return the frames per second over the last five seconds."""
        # Copy the arrivals first, because the thread keeps recording.
        recent = [each for each in tuple(self._arrivals) if now - each < 5]
        if len(recent) < 2:
            return 0.0
        # Divide by at least one second: a stream starts with a burst of buffered frames.
        return (len(recent) - 1) / max(recent[-1] - recent[0], 1.0)
