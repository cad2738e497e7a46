"""A watchdog for an event loop: a thread that detects when the loop is stuck.

The watchdog counts only the time in which its own thread could run. So a loop does not count as
stuck when the process was suspended, or when the computer was too busy for both threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass

TICK = 0.1
"""Seconds between two heartbeats of the loop, and between two checks."""


@dataclass(frozen=True, slots=True)
class WatchdogLimits:
    stuck: float = 2.0
    """Seconds without a heartbeat after which the loop counts as stuck."""
    give_up: float = 10.0
    """Seconds without a heartbeat after which the watchdog gives up."""


class LoopWatchdog:
    """Watches the loop on which it is created. The callbacks run in the watchdog's own thread."""

    def __init__(
        self,
        on_stuck: Callable[[str], None],
        on_recovery: Callable[[float], None],
        on_give_up: Callable[[str], None],
        limits: WatchdogLimits,
        on_tick: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_stuck` and `on_give_up` get the stack of the loop's thread.

        `on_recovery` gets the seconds for which the loop was stuck. `on_tick` is called with every
        check.
        """
        self._on_stuck = on_stuck
        self._on_recovery = on_recovery
        self._on_give_up = on_give_up
        self._limits = limits
        self._on_tick = on_tick
        self._loop = asyncio.get_running_loop()
        self._watched_thread_id = threading.get_ident()
        self._heartbeats = 0
        self._closed = threading.Event()
        self._heartbeat()
        self._thread = threading.Thread(target=self._watch, name="loop watchdog", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._timer.cancel()
        self._closed.set()
        self._thread.join(10 * TICK)

    def _heartbeat(self) -> None:
        self._heartbeats += 1
        self._timer = self._loop.call_later(TICK, self._heartbeat)

    def _watch(self) -> None:
        seen, stuck_for, is_reported = self._heartbeats, 0.0, False
        before = time.monotonic()
        while not self._closed.wait(TICK):
            self._on_tick()
            now = time.monotonic()
            # If the wait took longer than two ticks, this thread could not run either. Do not count
            # that time.
            passed, before = min(now - before, 2 * TICK), now
            if self._heartbeats != seen:
                if is_reported:
                    self._on_recovery(stuck_for)
                seen, stuck_for, is_reported = self._heartbeats, 0.0, False
                continue
            stuck_for += passed
            if stuck_for >= self._limits.give_up:
                self._on_give_up(self._format_stack())
                return
            if stuck_for >= self._limits.stuck and not is_reported:
                is_reported = True
                self._on_stuck(self._format_stack())
                # Do not count the time that the callback took.
                before = time.monotonic()

    def _format_stack(self) -> str:
        frame = sys._current_frames().get(self._watched_thread_id)  # noqa: SLF001 - no public API
        return "".join(traceback.format_stack(frame)) if frame is not None else "unknown\n"


def run_with_timeout(seconds: float, name: str, act: Callable[[], object]) -> bool:
    """Run `act` in a new thread with a timeout, and return whether it finished in time.

    Use this for calls that may hang because the loop's thread holds a lock.
    """
    ended = threading.Event()

    def run() -> None:
        with contextlib.suppress(Exception):
            act()
        ended.set()

    threading.Thread(target=run, name=name, daemon=True).start()
    return ended.wait(seconds)
