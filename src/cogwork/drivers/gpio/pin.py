"""One pin of this computer, as the API has it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from viam.components.board import Board

from cogwork.core.errors import CogworkError, InvalidRequest

USUAL_HZ = 1000
"""The frequency of a PWM for which nobody chose one."""
MOST_HZ = 10_000
"""The fastest PWM that lgpio makes."""


class PinFault(CogworkError):
    """A pin that does not do what it is told, and why."""

    status = "UNAVAILABLE"


class GpioPin(Board.GPIOPin):
    """Each call is an ioctl of a few microseconds: a thread for it would only make it late."""

    def __init__(self, called: str, pin: Any) -> None:
        """`called`: what errors call it. `pin`: gpiozero's."""
        super().__init__(pin.info.name)
        self._called = called
        self._pin = pin
        self._frequency = USUAL_HZ
        self.watcher: str | None = None
        """The digital interrupt that watches it, and needs it to stay an input."""

    @property
    def output(self) -> float | None:
        """How much of the time it is driven high; None: it is an input."""
        return float(self._pin.state) if self._pin.function == "output" else None

    async def set(self, high: bool, **_: Any) -> None:
        with self._explained():
            self._drive(high)

    async def get(self, **_: Any) -> bool:
        with self._explained():
            return bool(self._pin.state)

    async def set_pwm(self, duty_cycle: float, **_: Any) -> None:
        if not 0 <= duty_cycle <= 1:
            raise InvalidRequest(
                f"{self._called} takes a duty cycle from 0 to 1, not {duty_cycle:g}"
            )
        with self._explained():
            if duty_cycle == 0:
                self._drive(False)
                return
            self._become_output(False)
            if self._pin.frequency != self._frequency:
                self._pin.frequency = self._frequency
            self._pin.state = duty_cycle

    async def get_pwm(self, **_: Any) -> float:
        with self._explained():
            return float(self._pin.state) if self._pin.frequency else 0.0

    async def set_pwm_frequency(self, frequency: int, **_: Any) -> None:
        """0 is the usual one."""
        if not 0 <= frequency <= MOST_HZ:
            raise InvalidRequest(
                f"{self._called} makes a PWM of {MOST_HZ} Hz at most, not of {frequency} Hz"
            )
        self._frequency = frequency or USUAL_HZ
        with self._explained():
            if self._pin.frequency:
                self._pin.frequency = self._frequency

    async def get_pwm_frequency(self, **_: Any) -> int:
        return self._frequency

    def rest(self) -> None:
        """Low, if it pulses. Whatever is wired to a pin that does not may be on when it is low."""
        with self._explained():
            if self._pin.frequency:
                self._drive(False)

    def _drive(self, high: bool) -> None:
        self._become_output(high)
        if self._pin.frequency:
            self._pin.frequency = None
        self._pin.state = high

    def _become_output(self, high: bool) -> None:
        """Of that level from the first moment on."""
        if self.watcher is not None:
            raise InvalidRequest(
                f'{self._called} is watched by the digital interrupt "{self.watcher}", and stays '
                "an input"
            )
        if self._pin.function != "output":
            self._pin.output_with_state(high)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        # lgpio has an error class of its own, which stands for nothing in particular.
        try:
            yield
        except CogworkError:
            raise
        except Exception as error:
            raise PinFault(f"{self._called} does not obey: {error}") from error
