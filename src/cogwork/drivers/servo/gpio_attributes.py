"""What a servo on a pin reads from its configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault

_Angle = Annotated[float, Field(ge=0, le=360)]


class GpioServoAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that its signal wire goes to."""
    pin: Annotated[str, Field(min_length=1)]
    """The pin of its signal wire."""
    min_angle_deg: _Angle = 0.0
    """The smallest angle that it goes to, in degrees."""
    max_angle_deg: _Angle = 180.0
    """The largest angle that it goes to, in degrees."""
    starting_position_deg: _Angle | None = None
    """Where it turns when the machine starts; without it, to its smallest angle."""
    frequency_hz: Annotated[int, Field(ge=40, le=450)] = 50
    """How many pulses a second it gets. Digital servos take up to 330."""
    min_width_us: Annotated[int, Field(gt=0)] = 500
    """How long a pulse for the smallest angle is, in microseconds."""
    max_width_us: Annotated[int, Field(gt=0)] = 2500
    """How long a pulse for the largest angle is, in microseconds."""
    degrees_per_second: Annotated[float, Field(gt=0)] | None = None
    """How fast it is led to where it should be. Without it, it jumps as fast as it can, and a move
    ends at once."""

    @property
    def start(self) -> float:
        given = self.starting_position_deg
        return self.min_angle_deg if given is None else given

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_angle_deg >= self.max_angle_deg:
            raise fault(
                codes.BAD_VALUE,
                f'"min_angle_deg" {self.min_angle_deg:g} is not less than "max_angle_deg" '
                f"{self.max_angle_deg:g}",
            )
        if not self.min_angle_deg <= self.start <= self.max_angle_deg:
            raise fault(
                codes.BAD_VALUE, f"it cannot start at {self.start:g} degrees, where it never goes"
            )
        if self.min_width_us >= self.max_width_us:
            raise fault(codes.BAD_VALUE, '"min_width_us" is not less than "max_width_us"')
        if self.max_width_us * self.frequency_hz >= 1_000_000:
            raise fault(
                codes.BAD_VALUE,
                f"{self.frequency_hz} pulses of {self.max_width_us} us do not fit into a second: "
                'lower "frequency_hz"',
            )
        return self
