"""Attributes of the servo models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Self

from pydantic import Field, JsonValue, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, IgnoredValue, UnsetIfZero, fault

_Angle = Annotated[int, Field(ge=0, lt=2**32)]
_FineAngle = Annotated[float, Field(ge=0, le=360)]


class FakeServoAttributes(Attributes):
    """A servo without hardware that turns in real time."""

    degrees_per_second: Annotated[float, Field(gt=0)] = 180.0
    """Speed of rotation."""
    minimum: _Angle = 0
    """Smallest angle in degrees, which is also the initial one."""
    maximum: _Angle = 180
    """Largest angle in degrees."""

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.minimum > self.maximum:
            raise fault(
                codes.BAD_VALUE,
                f'"minimum" {self.minimum} is greater than "maximum" {self.maximum}',
            )
        return self


class GpioServoAttributes(Attributes):
    """A hobby servo on a pin of a board."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the signal wire is connected to."""
    pin: Annotated[str, Field(min_length=1)]
    """Pin of the signal wire."""
    min_angle_deg: _FineAngle = 0.0
    """Smallest angle in degrees."""
    max_angle_deg: Annotated[_FineAngle, UnsetIfZero()] = 180.0
    """Largest angle in degrees."""
    starting_position_deg: _FineAngle | None = None
    """Angle to move to when the machine starts; the smallest angle by default."""
    frequency_hz: Annotated[int, Field(ge=40, le=450), UnsetIfZero()] = 50
    """Pulses per second. Digital servos accept up to 330."""
    min_width_us: Annotated[int, Field(ge=0), UnsetIfZero()] = 500
    """Pulse width for the smallest angle, in microseconds."""
    max_width_us: Annotated[int, Field(ge=0), UnsetIfZero()] = 2500
    """Pulse width for the largest angle, in microseconds."""
    degrees_per_second: Annotated[float, Field(gt=0)] | None = None
    """Speed of rotation. Without it, the servo moves as fast as it can, and a move returns
    immediately."""

    def ignored_values(self, written: Mapping[str, JsonValue]) -> tuple[IgnoredValue, ...]:
        if written.get("max_angle_deg") != 0:
            return ()
        message = '"max_angle_deg" 0 counts as not set, so the servo turns up to 180 degrees'
        return (
            IgnoredValue(("max_angle_deg",), message, "set the largest angle", is_removable=True),
        )

    @property
    def start_angle(self) -> float:
        given = self.starting_position_deg
        return self.min_angle_deg if given is None else given

    @model_validator(mode="after")
    def _check_limits(self) -> Self:
        if self.min_angle_deg >= self.max_angle_deg:
            raise fault(
                codes.BAD_VALUE,
                f'"min_angle_deg" {self.min_angle_deg:g} is not less than "max_angle_deg" '
                f"{self.max_angle_deg:g}",
            )
        if not self.min_angle_deg <= self.start_angle <= self.max_angle_deg:
            raise fault(
                codes.BAD_VALUE,
                f'"starting_position_deg" {self.start_angle:g} is not between "min_angle_deg" and '
                '"max_angle_deg"',
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
