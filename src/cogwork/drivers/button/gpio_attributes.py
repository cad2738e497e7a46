"""What a button on a pin reads from its configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes, Duration, Needs


class GpioButtonAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that it is wired to."""
    pin: Annotated[str, Field(min_length=1)]
    """The pin that a push pulses."""
    duration: Annotated[Duration, Field(gt=0, le=60)] = 0.2
    """How long a push lasts, such as `200ms`."""
    inverted: bool = False
    """Whether a push is low instead of high, as many relays want it."""
