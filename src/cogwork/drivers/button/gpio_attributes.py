"""Attributes of the GPIO button model."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes, Duration, Needs


class GpioButtonAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """Board that the button is connected to."""
    pin: Annotated[str, Field(min_length=1)]
    """Pin that a push pulses."""
    duration: Annotated[Duration, Field(gt=0, le=60)] = 0.2
    """Duration of a push, such as `200ms`."""
    inverted: bool = False
    """Whether a push is low instead of high, as many relays require."""
