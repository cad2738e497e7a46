"""A reader of the ticks of a board's digital interrupts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from viam.components.board import Board, Tick, TickStream

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError

_BACKOFF = (0.25, 0.5, 1.0, 2.0)
"""Seconds before each attempt to reopen the stream; the last value repeats."""


class TicksLost(CogworkError):
    """The stream of ticks from the board has failed."""

    status = "UNAVAILABLE"


class TickReader:
    """Reads ticks from a stream. If the stream fails, sets `fault` to the reason and reopens it."""

    def __init__(
        self,
        board: Board,
        interrupts: Sequence[str],
        on_tick: Callable[[Tick], None],
        clock: Clock,
        logger: logging.Logger,
    ) -> None:
        self.fault: str | None = None
        """The reason why no ticks are received, or None while the stream works."""
        self._board = board
        self._interrupts = interrupts
        self._on_tick = on_tick
        self._clock = clock
        self._log = logger
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start reading; fail immediately if the board does not have one of the interrupts."""
        stream = await self._open_stream()
        self._task = asyncio.create_task(self._read(stream))

    def raise_if_lost(self) -> None:
        if self.fault is not None:
            raise TicksLost(self.fault)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _open_stream(self) -> TickStream:
        parts = [await self._board.digital_interrupt_by_name(name) for name in self._interrupts]
        return await self._board.stream_ticks(parts)

    async def _read(self, stream: TickStream | None) -> None:
        failures = 0
        while True:
            try:
                stream = stream or await self._open_stream()
                self.fault = None
                async for tick in stream:
                    if tick.ByteSize():  # an empty tick marks the start of the stream
                        self._on_tick(tick)
                    failures = 0
                self._report_loss("the board ended the stream", failures)
            except Exception as error:
                self._report_loss(str(error), failures)
            stream = None
            await self._clock.sleep(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
            failures += 1

    def _report_loss(self, reason: str, failures: int) -> None:
        if failures == 0:
            self._log.warning("the board's stream of ticks failed: %s; reopening it", reason)
        self.fault = f"the board's stream of ticks failed: {reason}; reopening it"
