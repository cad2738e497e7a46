"""One GPIO pin of this computer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from viam.components.board import Board

from cogwork.core.errors import CogworkError, InvalidRequest

DEFAULT_PWM_HZ = 1000
"""Default PWM frequency."""
MAX_PWM_HZ = 10_000
"""Maximum PWM frequency of lgpio."""


class PinFault(CogworkError):
    """A pin operation failed; the message is the reason."""

    status = "UNAVAILABLE"


class GpioPin(Board.GPIOPin):
    """A GPIO pin. Each call is an ioctl of a few microseconds, which is faster than a thread."""

    def __init__(self, display_name: str, pin: Any) -> None:
        """`display_name` names the pin in errors; `pin` is gpiozero's pin."""
        super().__init__(pin.info.name)
        self._display_name = display_name
        self._pin = pin
        self._frequency = DEFAULT_PWM_HZ
        self.watcher: str | None = None
        """The digital interrupt that watches the pin, which must then stay an input."""

    @property
    def output_level(self) -> float | None:
        """The duty cycle of an output, or None for an input."""
        return float(self._pin.state) if self._pin.function == "output" else None

    async def set(self, high: bool, **_: Any) -> None:
        with self._translated_errors():
            self._drive(high)

    async def get(self, **_: Any) -> bool:
        with self._translated_errors():
            return bool(self._pin.state)

    async def set_pwm(self, duty_cycle: float, **_: Any) -> None:
        if not 0 <= duty_cycle <= 1:
            raise InvalidRequest(
                f"{self._display_name} accepts a duty cycle between 0 and 1, not {duty_cycle:g}"
            )
        with self._translated_errors():
            if duty_cycle == 0:
                self._drive(False)
                return
            self._make_output(False)
            if self._pin.frequency != self._frequency:
                self._pin.frequency = self._frequency
            self._pin.state = duty_cycle

    async def get_pwm(self, **_: Any) -> float:
        with self._translated_errors():
            return float(self._pin.state) if self._pin.frequency else 0.0

    async def set_pwm_frequency(self, frequency: int, **_: Any) -> None:
        """Set the frequency; 0 is the default."""
        if not 0 <= frequency <= MAX_PWM_HZ:
            raise InvalidRequest(
                f"{self._display_name} supports PWM of up to {MAX_PWM_HZ} Hz, not {frequency} Hz"
            )
        self._frequency = frequency or DEFAULT_PWM_HZ
        with self._translated_errors():
            if self._pin.frequency:
                self._pin.frequency = self._frequency

    async def get_pwm_frequency(self, **_: Any) -> int:
        return self._frequency

    def stop_pwm(self) -> None:
        """Set the pin low if it has a PWM signal.

        Without PWM, the pin keeps its level, because low might turn a device on.
        """
        with self._translated_errors():
            if self._pin.frequency:
                self._drive(False)

    def _drive(self, high: bool) -> None:
        self._make_output(high)
        if self._pin.frequency:
            self._pin.frequency = None
        self._pin.state = high

    def _make_output(self, high: bool) -> None:
        """Make the pin an output with the given initial level."""
        if self.watcher is not None:
            raise InvalidRequest(
                f'{self._display_name} is watched by the digital interrupt "{self.watcher}" '
                "and must stay an input"
            )
        if self._pin.function != "output":
            self._pin.output_with_state(high)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        # Catch all exceptions: the class of lgpio's errors derives directly from Exception.
        try:
            yield
        except CogworkError:
            raise
        except Exception as error:
            raise PinFault(f"{self._display_name} failed: {error}") from error
