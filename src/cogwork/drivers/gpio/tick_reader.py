"""Reads the ticks of a board's digital interrupts for as long as somebody wants them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from viam.components.board import Board, Tick, TickStream

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError

_PAUSES = (0.25, 0.5, 1.0, 2.0)
"""Seconds before the ticks are asked for again; the last one stays."""


class TicksLost(CogworkError):
    """A board that does not say what its pins do."""

    status = "UNAVAILABLE"


class TickReader:
    """Asks again when the board fails. What happened meanwhile is lost, and that is said."""

    def __init__(
        self,
        board: Board,
        interrupts: Sequence[str],
        hear: Callable[[Tick], None],
        clock: Clock,
        logger: logging.Logger,
    ) -> None:
        self.trouble: str | None = None
        """Why no ticks come."""
        self._board = board
        self._interrupts = interrupts
        self._hear = hear
        self._clock = clock
        self._log = logger
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """An interrupt that the board does not have is an error here and now."""
        stream = await self._opened()
        self._task = asyncio.create_task(self._read(stream))

    def check(self) -> None:
        if self.trouble is not None:
            raise TicksLost(self.trouble)

    async def aclose(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _opened(self) -> TickStream:
        parts = [await self._board.digital_interrupt_by_name(name) for name in self._interrupts]
        return await self._board.stream_ticks(parts)

    async def _read(self, stream: TickStream | None) -> None:
        failures = 0
        while True:
            try:
                stream = stream or await self._opened()
                self.trouble = None
                async for tick in stream:
                    self._hear(tick)
                    failures = 0
                self._lose("the board ended the stream", failures)
            except Exception as error:
                self._lose(str(error), failures)
            stream = None
            await self._clock.sleep(_PAUSES[min(failures, len(_PAUSES) - 1)])
            failures += 1

    def _lose(self, reason: str, failures: int) -> None:
        if failures == 0:
            self._log.warning("ticks are lost: %s", reason)
        self.trouble = f"no ticks come, and some are lost: {reason}; it is tried again"
