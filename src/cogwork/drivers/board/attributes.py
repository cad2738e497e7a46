"""Attributes of the board models."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal, TypeVar

from pydantic import AfterValidator, Field

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Duration, fault


class BoardPart(Attributes):
    name: Annotated[str, Field(min_length=1)]
    """Name that clients use."""


class AnalogAttributes(BoardPart):
    """A pin with a value that can be read and written."""

    pin: str = ""
    """Pin label, for information only: a fake board has no wiring."""
    value: Annotated[int, Field(ge=-(2**31), lt=2**31)] = 0
    """Initial value."""
    min: float = 0.0
    """Lowest voltage that the pin can measure."""
    max: float = 0.0
    """Highest voltage that the pin can measure."""
    step_size: float = 0.0
    """Volts per step of the value."""


class InterruptAttributes(BoardPart):
    """A pin whose changes are counted and streamed."""

    pin: str
    """GPIO pin to watch."""


PartOf = TypeVar("PartOf", bound=BoardPart)


def _check_unique_names(parts: list[PartOf]) -> list[PartOf]:
    name, times = Counter(part.name for part in parts).most_common(1)[0] if parts else ("", 0)
    if times > 1:
        raise fault(
            codes.BAD_VALUE, f'the name "{name}" is used {times} times; names must be unique'
        )
    return parts


class FakeBoardAttributes(Attributes):
    """A board without hardware whose pins keep what is written to them."""

    analogs: Annotated[list[AnalogAttributes], AfterValidator(_check_unique_names)] = []
    """Analog pins: `name`, and optionally `pin`, `value`, `min`, `max` and `step_size`."""
    digital_interrupts: Annotated[
        list[InterruptAttributes], AfterValidator(_check_unique_names)
    ] = []
    """Digital interrupts: `name`, and the GPIO `pin` to watch."""


class GpioInterruptAttributes(InterruptAttributes):
    pull: Literal["up", "down", "none"] = "none"
    """Internal resistor that holds the pin while nothing drives it. Use `up` for a button that
    connects the pin to ground."""
    debounce: Annotated[Duration, Field(ge=0)] = 0.0
    """Minimum duration of a level; shorter changes are ignored. Use `5ms` for a button, and omit it
    for an encoder."""


class GpioBoardAttributes(Attributes):
    """The GPIO pins of this computer, such as a Raspberry Pi."""

    pin_factory: Literal["lgpio", "mock"] = "lgpio"
    """Source of the pins: `lgpio` uses the pins of this Raspberry Pi, `mock` simulates them."""
    digital_interrupts: Annotated[
        list[GpioInterruptAttributes], AfterValidator(_check_unique_names)
    ] = []
    """Pins whose changes are counted and streamed: `name` and `pin`, and optionally `pull` and
    `debounce`."""
