"""Fixes for gpiozero's lgpio pins. Importing this module imports lgpio: see `factory.py`."""

from __future__ import annotations

import lgpio
from gpiozero import PinInvalidState
from gpiozero.pins.lgpio import LGPIOFactory, LGPIOPin


class PatchedLgpioFactory(LGPIOFactory):  # type: ignore[misc]  # gpiozero is untyped
    def __init__(self) -> None:
        super().__init__()
        # Use a separate set of pins: gpiozero's factories share one, so closing a factory would
        # close the pins of the others.
        self.pins: dict[object, PatchedLgpioPin] = {}
        self.pin_class = PatchedLgpioPin


class PatchedLgpioPin(LGPIOPin):  # type: ignore[misc]
    """A pin that accepts any duty cycle. gpiozero rounds to whole percents, which gives a servo
    only ten positions."""

    _pwm: tuple[float, float] | None

    def output_with_state(self, state: float) -> None:
        """Make the pin an output that has the given level from the start. gpiozero would set the
        pin low first, which turns many relays on."""
        chip = self.factory._handle  # noqa: SLF001 - like the base class
        lgpio.gpio_claim_output(chip, self._number, int(bool(state)))

    def _set_state(self, value: float) -> None:
        if not self._pwm:
            super()._set_state(value)
            return
        frequency, _ = self._pwm
        chip = self.factory._handle  # noqa: SLF001 - like the base class
        try:
            lgpio.tx_pwm(chip, self._number, frequency, value * 100)
        except lgpio.error as error:
            raise PinInvalidState(f"lgpio rejected the duty cycle {value:g}: {error}") from error
        self._pwm = (frequency, value * 100)

    def _set_frequency(self, value: float | None) -> None:
        try:
            super()._set_frequency(value)
        except lgpio.error:
            if value:
                raise
            # The transmit queue is full. Release the pin instead of waiting, because PWM must stop
            # now.
            chip = self.factory._handle  # noqa: SLF001
            lgpio.gpio_free(chip, self._number)
            lgpio.gpio_claim_output(chip, self._number, 0)
            self._pwm = None
