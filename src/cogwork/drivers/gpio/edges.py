"""Edges of pins, on their way from the thread that sees them to the loop."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable

from viam.components.board import Tick

from cogwork.drivers.board.ticks import MOST_WAITING


class Edges:
    """A pin that flickers fills neither the memory nor the loop: one message is under way at a
    time, and no more ticks wait than a reader may have waiting."""

    def __init__(self, deliver: Callable[[Tick], None], lose: Callable[[int], None]) -> None:
        """`lose`: told how many there was no room for, after those that there was."""
        self._deliver = deliver
        self._lose = lose
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: deque[Tick] = deque()
        self._lost = 0
        self._told = False

    def add(self, tick: Tick) -> None:
        """From any thread."""
        with self._lock:
            if len(self._waiting) < MOST_WAITING:
                self._waiting.append(tick)
            else:
                self._lost += 1
            if self._told:
                return
            self._told = True
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it who would read
            self._loop.call_soon_threadsafe(self._hand_over)

    def _hand_over(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, deque()
            lost, self._lost = self._lost, 0
            self._told = False
        for tick in waiting:
            self._deliver(tick)
        if lost:
            self._lose(lost)
