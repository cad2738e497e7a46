"""Attributes of the button models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, Duration, fault


class FakeButtonAttributes(Attributes):
    """A button without hardware that counts pushes and optionally pulses a pin."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")] | None = None
    """Board with a pin that every push sets high for a moment."""
    pin: Annotated[str, Field(min_length=1)] | None = None
    """Pin of the board."""
    pulse: Annotated[Duration, Field(gt=0)] = 0.1
    """Duration of the pulse, such as `100ms`."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if (self.board is None) != (self.pin is None):
            missing = "board" if self.board is None else "pin"
            raise fault(
                codes.MISSING_FIELD, f'"board" and "pin" require each other: "{missing}" is missing'
            )
        return self


class GpioButtonAttributes(Attributes):
    """A button whose push is a pulse on a pin of a board."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the button is connected to."""
    pin: Annotated[str, Field(min_length=1)]
    """Pin that is set for the duration of a push."""
    duration: Annotated[Duration, Field(gt=0, le=60)] = 0.2
    """Duration of a push, such as `200ms`."""
    inverted: bool = False
    """Whether the pin is low instead of high during a push, as many relays require."""
