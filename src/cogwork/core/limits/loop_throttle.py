"""Spread work over iterations of the event loop.

Hundreds of connections may become ready at once. Handling all of them in one iteration would block
the loop for long, and a gRPC call takes several iterations.
"""

from __future__ import annotations

import asyncio
from collections import deque

_PER_TURN = 4


class LoopThrottle:
    """Starts a few pieces of work per loop iteration, first come, first served."""

    def __init__(self, per_turn: int = _PER_TURN) -> None:
        self._per_turn = per_turn
        self._left = per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        """Futures of waiting tasks, at most one per connection."""
        self._next_turn: asyncio.Handle | None = None

    async def acquire(self) -> None:
        loop = asyncio.get_running_loop()
        if self._next_turn is None:
            self._next_turn = loop.call_soon(self._begin_turn)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _begin_turn(self) -> None:
        self._next_turn = None
        self._left = self._per_turn
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        if self._left < self._per_turn:
            self._next_turn = asyncio.get_running_loop().call_soon(self._begin_turn)
