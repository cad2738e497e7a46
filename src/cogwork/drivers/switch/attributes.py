"""Attributes of the switch models."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, fault


class FakeSwitchAttributes(Attributes):
    """A switch without hardware that keeps its position."""

    position_count: Annotated[int, Field(ge=1)] = 2
    """Number of positions. Not needed with `labels`."""
    labels: list[str] = []
    """Labels of the positions, in order."""
    position: Annotated[int, Field(ge=0)] = 0
    """Initial position; the first position is 0."""

    @property
    def count(self) -> int:
        return len(self.labels) or self.position_count

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if "position_count" in self.model_fields_set and self.position_count != self.count:
            raise fault(
                codes.BAD_VALUE,
                f"there are {self.position_count} positions, but {self.count} labels: "
                'remove "position_count"',
            )
        if self.position >= self.count:
            raise fault(
                codes.BAD_VALUE,
                f"position {self.position} does not exist: the last one is {self.count - 1}",
            )
        return self


class GpioSwitchAttributes(Attributes):
    """A switch whose position is encoded on pins of a board: one relay or several."""

    board: Annotated[str, Field(min_length=1), Dependency("rdk:component:board")]
    """Board that the switch is connected to."""
    pins: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=16)]
    """Pins that encode the position."""
    code: Literal["binary", "one_of"] = "binary"
    """Encoding of the position. `binary`: the pins are the bits of a binary number, lowest bit
    first; a single pin gives the positions off and on. `one_of`: each position has its own pin,
    which is on while all others are off."""
    labels: list[str] = []
    """Labels of the positions, in order."""
    position: Annotated[int, Field(ge=0)] = 0
    """Initial position; the first position is 0."""
    inverted: bool = False
    """Whether the pins are low when on, as many relays require."""

    @property
    def count(self) -> int:
        return len(self.pins) if self.code == "one_of" else 2 ** len(self.pins)

    def levels(self, position: int) -> list[bool]:
        """Return for each pin whether it is on in the position."""
        if self.code == "one_of":
            return [index == position for index in range(len(self.pins))]
        return [bool(position >> index & 1) for index in range(len(self.pins))]

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        if len(set(self.pins)) < len(self.pins):
            raise fault(codes.BAD_VALUE, '"pins" names the same pin twice')
        if self.labels and len(self.labels) != self.count:
            raise fault(
                codes.BAD_VALUE, f"there are {len(self.labels)} labels, but {self.count} positions"
            )
        if self.position >= self.count:
            raise fault(
                codes.BAD_VALUE,
                f"position {self.position} does not exist: the last one is {self.count - 1}",
            )
        return self
