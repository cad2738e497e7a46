from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import logging
import queue
import threading
import time
import weakref
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.support.waiting import block, block_until, run_others, wait_until

from cogwork.core.clock import Clock, ManualClock, SystemClock
from cogwork.core.workers import Workers
from cogwork.drivers.camera.capture import Capture, DeferredPixels, FrameRateMeter, SourceFault
from cogwork.media.image import Pixels

LOGGER = "test.camera"
OPEN = "open"
GONE = SourceFault("gone", "it is gone")

Event = str | int | Exception
"""What a source does next: it opens, brings the picture of that number, or fails."""


@dataclass
class Reel:
    """A scripted source: it does the next event, and blocks until there is one."""

    rate: float | None = None
    events: queue.Queue[Event] = field(default_factory=queue.Queue)
    opens: list[float] = field(default_factory=list)
    opened: list[weakref.ref[OpenedReel]] = field(default_factory=list)
    closed: int = 0
    developed: list[int] = field(default_factory=list)
    shots: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    close_error: Exception | None = None

    def tell(self, *events: Event) -> Reel:
        for event in events:
            self.events.put(event)
        return self

    def open(self) -> OpenedReel:
        self.opens.append(time.monotonic())
        assert self.next() == OPEN
        opened = OpenedReel(self)
        self.opened.append(weakref.ref(opened))
        return opened

    def next(self) -> str | int:
        event = self.events.get()
        if not isinstance(event, Exception):
            return event
        try:
            raise event
        finally:
            del event  # whose traceback would keep this frame, which keeps it


class OpenedReel:
    def __init__(self, reel: Reel) -> None:
        self._reel = reel

    @property
    def rate(self) -> float | None:
        return self._reel.rate

    def read(self) -> DeferredPixels:
        event = self._reel.next()
        assert isinstance(event, int)
        return self._shot(event)

    def close(self) -> None:
        self._reel.closed += 1
        if self._reel.close_error is not None:
            raise self._reel.close_error

    def _shot(self, number: int) -> DeferredPixels:
        reel = self._reel

        def decode_shot() -> Pixels:
            reel.developed.append(number)
            if number < 0:
                raise ZeroDivisionError("no such colour")
            return np.full((2, 2, 3), number, np.uint8)

        reel.shots.add(decode_shot)
        return decode_shot


@contextlib.asynccontextmanager
async def start_capture(
    reel: Reel, clock: Clock | None = None, pauses: tuple[float, ...] = (0.0,)
) -> AsyncIterator[Capture]:
    workers = Workers("camera test")
    logger = logging.getLogger(LOGGER)
    capture = Capture(reel, clock or SystemClock(), logger, workers, stall=3.0, retry_delays=pauses)
    try:
        yield capture
    finally:
        reel.tell(GONE)
        await capture.aclose()
        workers.close()


async def read_number(capture: Capture) -> int:
    return int((await capture.latest_frame()).pixels[0, 0, 0])


async def read_fault(capture: Capture) -> SourceFault:
    with pytest.raises(SourceFault) as error:
        await capture.latest_frame()
    return error.value


def log_lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG]


@pytest.fixture(autouse=True)
def log_everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, LOGGER)


class TestFirstPicture:
    async def test_first_frame_is_awaited(self) -> None:
        reel, clock = Reel(), ManualClock()
        async with start_capture(reel, clock) as capture:
            frame = asyncio.create_task(capture.latest_frame())
            await clock.advance(9)
            assert not frame.done()
            assert capture.status()["state"] == "opening"
            assert capture.fault is None
            reel.tell(OPEN, 7)
            assert (await frame).pixels[0, 0, 0] == 7
            assert (await frame).captured_at == clock.time()
            assert capture.status()["state"] == "live"

    async def test_request_after_a_failed_open_fails_at_once(self) -> None:
        reel, clock = Reel().tell(GONE), ManualClock()
        async with start_capture(reel, clock) as capture:
            assert str(await read_fault(capture)) == ("it is gone; no frames yet; retrying")

    async def test_source_stuck_in_open_is_reported(self, caplog: pytest.LogCaptureFixture) -> None:
        reel, clock = Reel(), ManualClock()
        async with start_capture(reel, clock) as capture:
            frame = asyncio.create_task(capture.latest_frame())
            await clock.advance(9.9)
            assert not frame.done()
            await clock.advance(0.1)
            with pytest.raises(SourceFault, match="has been opening for 10 s; no frames yet"):
                await frame
            assert (await read_fault(capture)).code == "opening"
            await clock.advance(100)
            reel.tell(OPEN, 1)
            await wait_until(lambda: capture.fault is None)
            assert await read_number(capture) == 1
        assert log_lines(caplog) == [
            "no frames: the source has been opening for 10 s; retrying",
            "receiving frames again after 100.0 s",
        ]


class TestChanges:
    async def test_loss_and_recovery_log_one_line_each(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        reel, clock = Reel().tell(OPEN, 1, 2), ManualClock()
        other = SourceFault("refused", "connection refused")
        async with start_capture(reel, clock) as capture:
            await wait_until(lambda: capture.status()["pictures"] == 2)
            await clock.advance(1)
            reel.tell(GONE, other, other, OPEN, other)
            await wait_until(lambda: len(reel.opens) == 5)
            words = "connection refused; last frame is 1.0 s old; retrying"
            assert str(await read_fault(capture)) == capture.fault == words
            assert capture.status() == {
                "state": "lost",
                "code": "refused",
                "reason": words,
                "pictures": 2,
                "missed": 0,
                "rate": 0.0,
                "age_seconds": 1.0,
            }
            await clock.advance(2.5)
            reel.tell(OPEN, 3)
            await wait_until(lambda: capture.fault is None)
            assert await read_number(capture) == 3
            assert capture.status()["code"] == capture.status()["reason"] == ""
        assert log_lines(caplog) == [
            "no frames: it is gone; retrying",
            "receiving frames again after 2.5 s",
        ]
        assert reel.closed == 3

    async def test_source_stuck_in_read_is_reported(self, caplog: pytest.LogCaptureFixture) -> None:
        reel, clock = Reel().tell(OPEN, 1), ManualClock()
        async with start_capture(reel, clock) as capture:
            assert await read_number(capture) == 1
            await clock.advance(2)
            reel.tell(2)
            await wait_until(lambda: capture.status()["pictures"] == 2)
            await clock.advance(2.9)
            assert capture.fault is None
            await clock.advance(0.1)
            assert (await read_fault(capture)).code == "stalled"
            await clock.advance(50)
            reel.tell(3)
            await wait_until(lambda: capture.fault is None)
        assert log_lines(caplog) == [
            "no frames: the source is open but sent nothing for 3 s; "
            'raise "stall" if it is slow; retrying',
            "receiving frames again after 50.0 s",
        ]

    async def test_final_fault_is_not_retried(self, caplog: pytest.LogCaptureFixture) -> None:
        reel = Reel().tell(OPEN, 1, SourceFault("ended", "it has ended", final=True))
        async with start_capture(reel, ManualClock()) as capture:
            await wait_until(lambda: capture.fault is not None)
            assert capture.fault == "it has ended; last frame is 0.0 s old"
            assert len(reel.opens) == reel.closed == 1
        assert log_lines(caplog) == ["no frames: it has ended"]

    async def test_events_are_handled_in_order_after_a_blocked_loop(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        reel = Reel().tell(OPEN, 1)
        async with start_capture(reel) as capture:
            assert await read_number(capture) == 1
            reel.tell(2, GONE, OPEN, 3)
            block_until(lambda: capture.status()["pictures"] == 3)
            await wait_until(lambda: len(log_lines(caplog)) == 2)
            assert await read_number(capture) == 3

    @pytest.mark.parametrize("where", ["open", "read"])
    async def test_unexpected_error_is_reported_and_retried(self, where: str) -> None:
        slip = ZeroDivisionError("a slip of its author")
        reel = Reel().tell(*([slip] if where == "open" else [OPEN, slip]))
        async with start_capture(reel, ManualClock()) as capture:
            fault = await read_fault(capture)
            assert fault.code == "failed"
            assert str(fault).startswith("reading failed: a slip of its author; ")
            reel.tell(OPEN, 1)
            await wait_until(lambda: capture.fault is None)

    async def test_error_in_close_is_reported_and_retried(self) -> None:
        reel = Reel(close_error=OSError("jammed")).tell(OPEN, 1, GONE)
        async with start_capture(reel) as capture:
            await wait_until(lambda: capture.fault is not None)
            assert str(await read_fault(capture)).startswith("reading failed: jammed; ")
            reel.close_error = None
            reel.tell(OPEN, 2)
            await wait_until(lambda: capture.fault is None)

    async def test_lost_source_is_garbage_collected(self) -> None:
        reel = Reel().tell(OPEN, 1, SourceFault("gone", "it is gone"))
        gc.collect()
        gc.disable()
        try:
            async with start_capture(reel) as capture:
                await wait_until(lambda: capture.fault is not None and len(reel.opens) == 2)
                assert reel.opened[0]() is None
        finally:
            gc.enable()

    async def test_retry_delays_grow_until_a_frame_arrives(self) -> None:
        reel = Reel().tell(GONE, GONE, GONE, GONE, OPEN, 1, GONE, GONE)
        async with start_capture(reel, pauses=(0.02, 0.06, 0.12)):
            await wait_until(lambda: len(reel.opens) == 7)
        pauses = [later - sooner for sooner, later in itertools.pairwise(reel.opens)]
        wanted = [0.02, 0.06, 0.12, 0.12, 0.02, 0.06]
        assert all(want <= pause for want, pause in zip(wanted, pauses, strict=True)), pauses
        assert sum(pauses) < sum(wanted) + 1


class TestFrames:
    async def test_all_readers_share_one_decoded_frame(self) -> None:
        reel = Reel().tell(OPEN, 1)
        async with start_capture(reel) as capture:
            frames = await asyncio.gather(*(capture.latest_frame() for _ in range(8)))
            assert len({id(frame) for frame in frames}) == 1
            assert await capture.latest_frame() is frames[0]
            reel.tell(2)
            await wait_until(lambda: capture.status()["pictures"] == 2)
            assert await capture.latest_frame() is not frames[0]
        assert reel.developed == [1, 2]

    async def test_only_the_newest_frame_is_kept_and_decoded(self) -> None:
        reel = Reel().tell(OPEN)
        async with start_capture(reel) as capture:
            reel.tell(*range(1, 201))
            while capture.status()["pictures"] < 200:
                assert len(reel.shots) <= 4
                assert len(vars(asyncio.get_running_loop())["_ready"]) <= 4
                block(0.001)
            assert await read_number(capture) == 200
        assert reel.developed == [200]

    async def test_frame_that_fails_to_decode_does_not_affect_the_next(self) -> None:
        reel = Reel().tell(OPEN, -1)
        async with start_capture(reel) as capture:
            with pytest.raises(ZeroDivisionError, match="no such colour"):
                await capture.latest_frame()
            reel.tell(2)
            await wait_until(lambda: capture.status()["pictures"] == 2)
            assert await read_number(capture) == 2


class TestClosing:
    @pytest.mark.parametrize("events", [[], [OPEN], [OPEN, 1]])
    async def test_close_waits_for_a_pending_open_or_read(
        self, events: list[Event], caplog: pytest.LogCaptureFixture
    ) -> None:
        reel = Reel().tell(*events)
        async with start_capture(reel) as capture:
            await wait_until(lambda: reel.opens and reel.events.empty())
            closing = asyncio.create_task(capture.aclose())
            await run_others()
            assert (await read_fault(capture)).code == "closed"
            assert not closing.done()
            reel.tell(*([2] if events else [OPEN]))
            await closing
            assert (await read_fault(capture)).code == "closed"
        assert reel.closed == 1
        assert log_lines(caplog) == []

    async def test_waiting_readers_are_told_about_close(self) -> None:
        reel = Reel()
        async with start_capture(reel) as capture:
            frame = asyncio.create_task(capture.latest_frame())
            await wait_until(lambda: reel.opens)
            reel.tell(GONE)
            await capture.aclose()
            with pytest.raises(SourceFault, match="the camera is closed"):
                await frame

    async def test_close_interrupts_a_retry_delay(self) -> None:
        reel = Reel().tell(GONE)
        async with start_capture(reel, pauses=(60.0,)) as capture:
            await wait_until(lambda: capture.fault is not None)
            async with asyncio.timeout(60):
                await capture.aclose()

    async def test_thread_of_a_stuck_source_is_abandoned(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        reel, clock = Reel().tell(OPEN, 1), ManualClock()
        async with start_capture(reel, clock) as capture:
            await read_number(capture)
            closing = asyncio.create_task(capture.aclose())
            await clock.advance(4.9)
            assert not closing.done()
            await clock.advance(0.1)
            await closing
            [thread] = [each for each in threading.enumerate() if each.name == "camera test"]
            assert thread.daemon
        assert log_lines(caplog) == ["the source did not close in time; leaving its thread running"]

    def test_capture_thread_ends_after_the_event_loop_is_gone(self) -> None:
        reel = Reel().tell(OPEN, 1)

        async def leave() -> None:
            clock = ManualClock()
            workers = Workers("camera test")
            capture = Capture(reel, clock, logging.getLogger(LOGGER), workers)
            await read_number(capture)
            closing = asyncio.create_task(capture.aclose())
            await clock.advance(5)
            await closing
            workers.close()

        asyncio.run(leave())
        reel.tell(GONE)


class TestPace:
    def test_missed_counts_frames_that_the_rate_promised(self) -> None:
        pace = FrameRateMeter()
        pace.reset(10.0)
        for now in (0.0, 0.1, 0.24, 0.3, 0.6, 1.6):
            pace.record(now)
        assert pace.missed == 2 + 9

    def test_frames_are_not_missed_while_the_source_is_lost(self) -> None:
        pace = FrameRateMeter()
        pace.reset(10.0)
        pace.record(0.0)
        pace.reset(10.0)
        pace.record(60.0)
        assert pace.missed == 0

    def test_frames_are_not_missed_without_a_known_rate(self) -> None:
        pace = FrameRateMeter()
        pace.reset(None)
        pace.record(0.0)
        pace.record(60.0)
        assert pace.missed == 0

    def test_rate_covers_the_last_seconds(self) -> None:
        pace = FrameRateMeter()
        pace.reset(None)
        assert pace.rate(0.0) == 0.0
        for number in range(100):
            pace.record(number / 20)
        assert pace.rate(5.0) == pytest.approx(20, rel=0.02)
        assert pace.rate(60.0) == 0.0

    def test_initial_burst_does_not_inflate_the_rate(self) -> None:
        pace = FrameRateMeter()
        pace.reset(None)
        pace.record(1.0)
        pace.record(1.0)
        assert pace.rate(1.0) == 1.0

    def test_rate_can_be_read_while_frames_are_recorded(self) -> None:
        pace, stop = FrameRateMeter(), threading.Event()

        def count() -> None:
            while not stop.is_set():
                pace.record(time.monotonic())

        thread = threading.Thread(target=count)
        thread.start()
        try:
            for _ in range(300):
                assert pace.rate(time.monotonic()) >= 0
        finally:
            stop.set()
            thread.join()
