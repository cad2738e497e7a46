"""A queue of pin edges from the callback thread to the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable

from viam.components.board import Tick

from cogwork.drivers.board.tick_queue import MAX_PENDING


class EdgeQueue:
    """A bounded queue: a noisy pin cannot exhaust the memory or block the event loop.

    At most one flush is scheduled at a time, and at most `MAX_PENDING` ticks wait.
    """

    def __init__(self, on_tick: Callable[[Tick], None], on_lost: Callable[[int], None]) -> None:
        """`on_tick` receives each tick. If ticks were dropped, `on_lost` then receives their
        number."""
        self._on_tick = on_tick
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._pending: deque[Tick] = deque()
        self._lost = 0
        self._flush_scheduled = False

    def add(self, tick: Tick) -> None:
        """Add a tick from any thread."""
        with self._lock:
            if len(self._pending) < MAX_PENDING:
                self._pending.append(tick)
            else:
                self._lost += 1
            if self._flush_scheduled:
                return
            self._flush_scheduled = True
        with contextlib.suppress(RuntimeError):  # the loop is closed, so nothing reads ticks
            self._loop.call_soon_threadsafe(self._flush)

    def _flush(self) -> None:
        with self._lock:
            pending, self._pending = self._pending, deque()
            lost, self._lost = self._lost, 0
            self._flush_scheduled = False
        for tick in pending:
            self._on_tick(tick)
        if lost:
            self._on_lost(lost)
