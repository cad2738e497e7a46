"""What the encoders on digital interrupts read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes, Needs

_Interrupt = Annotated[str, Field(min_length=1)]


class IncrementalPins(Attributes):
    a: _Interrupt
    """The digital interrupt of the board for one of its two signals."""
    b: _Interrupt
    """The one for the other. Swap them to count the other way."""


class IncrementalEncoderAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that it is wired to."""
    pins: IncrementalPins
    """The names of the board's digital interrupts `a` and `b`. Every edge of either is a tick: an
    encoder of 100 pulses makes 400 ticks in one revolution."""


class SinglePins(Attributes):
    i: _Interrupt
    """The digital interrupt of the board for its signal."""


class SingleEncoderAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that it is wired to."""
    pins: SinglePins
    """The name of the board's digital interrupt `i`. Each time that it goes high is a tick. The
    motor that names this encoder says which way it counts; without one, it counts up."""
