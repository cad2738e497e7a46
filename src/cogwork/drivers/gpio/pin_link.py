"""Access to a pin of any board, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable
from typing import Any, TypeVar

from viam.components.board import Board

from cogwork.core.errors import CogworkError
from cogwork.core.shield import await_shielded
from cogwork.resource.emergency_stop import run_without_loop

ANSWER_TIMEOUT = 5.0
"""Timeout in seconds of a request to a pin or an encoder. A module may provide either of them."""

T = TypeVar("T")


class NoAnswer(CogworkError):
    """A pin or an encoder did not answer."""

    status = "UNAVAILABLE"


class PinLink:
    """A connection to one pin, optionally inverted."""

    def __init__(self, display_name: str, pin: Board.GPIOPin, *, inverted: bool = False) -> None:
        """`display_name` names the pin in errors."""
        self._display_name = display_name
        self._pin = pin
        self._inverted = inverted

    @classmethod
    async def connect(cls, board: Board, pin: str, *, inverted: bool = False) -> PinLink:
        display_name = f'pin "{pin}" of board "{board.name}"'
        return cls(display_name, await board.gpio_pin_by_name(pin), inverted=inverted)

    async def set(self, on: bool) -> None:
        await await_answer(self._display_name, self._pin.set(on != self._inverted))

    def set_without_loop(self, on: bool) -> None:
        """Set the pin without the event loop. Raise NeedsLoop if another process provides the
        pin."""
        run_without_loop(self._pin.set(on != self._inverted))

    async def set_pwm(self, duty_cycle: float) -> None:
        """Set the duty cycle."""
        await await_answer(self._display_name, self._pin.set_pwm(duty_cycle))

    async def set_pwm_frequency(self, hertz: int) -> None:
        await await_answer(self._display_name, self._pin.set_pwm_frequency(hertz))


async def await_answer(display_name: str, request: Awaitable[T]) -> T:
    """Await a request; raise NoAnswer if it takes too long."""
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT) as limit:
            return await request
    except TimeoutError:
        if not limit.expired():
            raise
        raise NoAnswer(
            f"{display_name} did not answer within {ANSWER_TIMEOUT:g} s; check the log of its "
            "board or of the module that provides it"
        ) from None


async def run_all(writes: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Run all writes concurrently until each has ended, even if some fail or the caller is
    cancelled.

    Each write has its own deadline. Raise the first error when all writes have ended.
    """
    for error in await await_shielded(asyncio.gather(*writes, return_exceptions=True)):
        if error is not None:
            raise error
