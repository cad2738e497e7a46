"""Who has something that moves, when several may want it: the newest command has it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from cogwork.core.clock import Clock, Waitable
from cogwork.core.errors import Interrupted

T = TypeVar("T")


class Turns:
    """Of one thing. A command that a newer one ends fails, and says so."""

    def __init__(self, called: str) -> None:
        """`called`: what errors call it, such as `base "b"`."""
        self._called = called
        self._turn = Turn(called, "")

    def take(self, command: str) -> Turn:
        """Whoever has it loses it, here and now."""
        self._turn.over.set_result(command)
        self._turn = Turn(self._called, command)
        return self._turn


class Turn:
    """One command's time with it, until a newer one takes over."""

    def __init__(self, called: str, command: str) -> None:
        self.command = command
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        """Gets the name of the command that takes over."""
        self._called = called

    @property
    def is_over(self) -> bool:
        return self.over.done()

    def check(self) -> None:
        if self.is_over:
            raise Interrupted(
                f"{self._called} did not finish {self.command}: {self.over.result()} ended it"
            )

    async def wait(self, clock: Clock, seconds: float | None, *waitables: Waitable) -> None:
        """Until the time is up or one of them is done; an error when the turn is over."""
        await clock.wait([self.over, *waitables], seconds)
        self.check()

    async def outcome(self, awaitable: Awaitable[T]) -> T:
        """Of something else, which is given up with the turn: nothing of it goes on after that."""
        task = asyncio.ensure_future(awaitable)
        try:
            await asyncio.wait((task, self.over), return_when=asyncio.FIRST_COMPLETED)
            self.check()
            return task.result()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
