"""Attributes of the encoder models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, fault

_Interrupt = Annotated[str, Field(min_length=1)]


class FakeEncoderAttributes(Attributes):
    """An encoder without hardware that follows a motor, or counts at a fixed rate."""

    motor: Annotated[str, Field(min_length=1), Dependency("rdk:component:motor")] | None = None
    """Motor to follow, which must report its position."""
    ticks_per_revolution: Annotated[float, Field(gt=0)] = 360.0
    """Ticks per revolution of the shaft."""
    rate: float = 0.0
    """Ticks per second without a motor. A negative rate counts down."""

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if self.motor is not None and self.rate:
            raise fault(codes.BAD_VALUE, 'remove "rate" or "motor": the motor determines the rate')
        return self


class IncrementalPins(Attributes):
    a: _Interrupt
    """Digital interrupt of the board for the first signal."""
    b: _Interrupt
    """Digital interrupt for the second signal. Swap `a` and `b` to reverse the direction."""


class IncrementalEncoderAttributes(Attributes):
    """An encoder with two signals on pins of a board, which measures the direction."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the encoder is connected to."""
    pins: IncrementalPins
    """Names of the board's digital interrupts `a` and `b`. Every edge of either is a tick: an
    encoder with 100 pulses per revolution counts 400 ticks."""


class SinglePins(Attributes):
    i: _Interrupt
    """Digital interrupt of the board for the signal."""


class SingleEncoderAttributes(Attributes):
    """An encoder with one signal on a pin of a board, which cannot measure the direction."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the encoder is connected to."""
    pins: SinglePins
    """Name of the board's digital interrupt `i`. Every rising edge is a tick. The motor that uses
    this encoder determines the direction; without a motor, the encoder counts up."""
