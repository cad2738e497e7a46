"""gpiozero's pins on lgpio, with four things mended. Imports lgpio: see `factory.py`."""

from __future__ import annotations

import lgpio
from gpiozero import PinInvalidState
from gpiozero.pins.lgpio import LGPIOFactory, LGPIOPin


class FineFactory(LGPIOFactory):  # type: ignore[misc]  # it has no types
    def __init__(self) -> None:
        super().__init__()
        # gpiozero has one set of pins for all factories: closing one would close those of others.
        self.pins: dict[object, FinePin] = {}
        self.pin_class = FinePin


class FinePin(LGPIOPin):  # type: ignore[misc]
    """Takes any duty cycle. gpiozero's own takes whole percents, and of these a servo's whole
    range has ten."""

    _pwm: tuple[float, float] | None

    def output_with_state(self, state: float) -> None:
        """In one step. gpiozero's own is low first, which is on for many a relay."""
        chip = self.factory._handle  # noqa: SLF001 - as the class it extends does
        lgpio.gpio_claim_output(chip, self._number, int(bool(state)))

    def _set_state(self, value: float) -> None:
        if not self._pwm:
            super()._set_state(value)
            return
        frequency, _ = self._pwm
        chip = self.factory._handle  # noqa: SLF001 - as the class it extends does
        try:
            lgpio.tx_pwm(chip, self._number, frequency, value * 100)
        except lgpio.error as error:
            raise PinInvalidState(f"lgpio takes no duty cycle of {value:g}: {error}") from error
        self._pwm = (frequency, value * 100)

    def _set_frequency(self, value: float | None) -> None:
        try:
            super()._set_frequency(value)
        except lgpio.error:
            if value:
                raise
            # The queue of what it is still to do is full: a pin that should rest does not wait.
            chip = self.factory._handle  # noqa: SLF001
            lgpio.gpio_free(chip, self._number)
            lgpio.gpio_claim_output(chip, self._number, 0)
            self._pwm = None
