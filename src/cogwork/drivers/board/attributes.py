"""What the boards read from their configuration."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, fault


class Part(Attributes):
    name: Annotated[str, Field(min_length=1)]
    """What calls ask for."""


class AnalogAttributes(Part):
    """A pin with a value, to be read and written."""

    pin: str = ""
    """Which pin it is, for people: a fake wires nothing."""
    value: Annotated[int, Field(ge=-(2**31), lt=2**31)] = 0
    """What it reads until another value is written."""
    min: float = 0.0
    """The lowest voltage it can measure."""
    max: float = 0.0
    """The highest voltage it can measure."""
    step_size: float = 0.0
    """How many volts a value of one more is."""


class InterruptAttributes(Part):
    """A pin whose changes are counted and streamed."""

    pin: str
    """The GPIO pin it watches."""


PartOf = TypeVar("PartOf", bound=Part)


def _distinct(parts: list[PartOf]) -> list[PartOf]:
    name, times = Counter(part.name for part in parts).most_common(1)[0] if parts else ("", 0)
    if times > 1:
        raise fault(codes.BAD_VALUE, f'"{name}" is the name of {times} of them')
    return parts


class FakeBoardAttributes(Attributes):
    analogs: Annotated[list[AnalogAttributes], AfterValidator(_distinct)] = []
    """Its analog pins: `name`, and if you like `pin`, `value`, `min`, `max` and `step_size`."""
    digital_interrupts: Annotated[list[InterruptAttributes], AfterValidator(_distinct)] = []
    """Its digital interrupts: the `name` of each, and the GPIO `pin` that it watches."""


class GpioInterruptAttributes(InterruptAttributes):
    pull: Literal["up", "down", "none"] = "none"
    """Which resistor of the computer holds the pin while nothing drives it. A button that connects
    the pin to ground wants `up`."""
    debounce: Annotated[Duration, Field(ge=0)] = 0.0
    """How long a level must last to count. A button wants `5ms`, an encoder nothing."""


class GpioBoardAttributes(Attributes):
    pin_factory: Literal["lgpio", "mock"] = "lgpio"
    """Where the pins are: `lgpio` uses those of this Raspberry Pi, `mock` only pretends to."""
    digital_interrupts: Annotated[list[GpioInterruptAttributes], AfterValidator(_distinct)] = []
    """Pins whose changes are counted and streamed: the `name` of each and its `pin`, and if you
    like `pull` and `debounce`."""
