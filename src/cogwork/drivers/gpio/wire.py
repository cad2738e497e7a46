"""What is wired to pins of a board, whichever board that is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

from viam.components.board import Board

from cogwork.core.ending import to_its_end
from cogwork.core.errors import CogworkError

ANSWER = 5.0
"""Seconds that a pin or an encoder gets to answer; one of a module is another process."""

T = TypeVar("T")


class NoAnswer(CogworkError):
    """A pin or an encoder that says nothing."""

    status = "UNAVAILABLE"


class Wire:
    """To one pin, which may have to be held low to mean yes."""

    def __init__(self, called: str, pin: Board.GPIOPin, *, inverted: bool = False) -> None:
        """`called`: what errors call the pin."""
        self._called = called
        self._pin = pin
        self._inverted = inverted

    @classmethod
    async def to(cls, board: Board, pin: str, *, inverted: bool = False) -> Wire:
        called = f'pin "{pin}" of board "{board.name}"'
        return cls(called, await board.gpio_pin_by_name(pin), inverted=inverted)

    async def set(self, on: bool) -> None:
        await answer(self._called, self._pin.set(on != self._inverted))

    async def pulse(self, share: float) -> None:
        """High for that share of the time."""
        await answer(self._called, self._pin.set_pwm(share))

    async def pulse_at(self, hertz: int) -> None:
        await answer(self._called, self._pin.set_pwm_frequency(hertz))


async def answer(called: str, asking: Awaitable[T]) -> T:
    """Within a deadline that holds whoever is asked, and however it takes one."""
    try:
        async with asyncio.timeout(ANSWER) as limit:
            return await asking
    except TimeoutError:
        if not limit.expired():
            raise
        raise NoAnswer(
            f"{called} did not answer within {ANSWER:g} s; look at the log of its board, or of the "
            "module that it comes from"
        ) from None


async def every(writes: Iterable[Coroutine[Any, Any, None]]) -> None:
    """All at once and to their end, even if some fail or whoever asked is gone: each has a deadline
    of its own. The first that failed is told then."""
    for failed in await to_its_end(asyncio.gather(*writes, return_exceptions=True)):
        if failed is not None:
            raise failed
