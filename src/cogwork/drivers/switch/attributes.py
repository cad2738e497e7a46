"""What the switches read from their configuration."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Needs, fault


class FakeSwitchAttributes(Attributes):
    position_count: Annotated[int, Field(ge=1)] = 2
    """How many positions it has. Not needed beside `labels`."""
    labels: list[str] = []
    """What its positions are called, the first one first."""
    position: Annotated[int, Field(ge=0)] = 0
    """Where it stands at first; the first position is 0."""

    @property
    def count(self) -> int:
        return len(self.labels) or self.position_count

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if "position_count" in self.model_fields_set and self.position_count != self.count:
            raise fault(
                codes.BAD_VALUE,
                f"{self.position_count} positions and {self.count} labels do not agree: "
                'leave "position_count" out',
            )
        if self.position >= self.count:
            raise fault(
                codes.BAD_VALUE,
                f"position {self.position} is beyond the last, which is {self.count - 1}",
            )
        return self


class GpioSwitchAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")]
    """The board that it is wired to."""
    pins: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1, max_length=16)]
    """The pins that stand for its position."""
    code: Literal["binary", "one_of"] = "binary"
    """How: `binary` is a number, the first pin its lowest bit, so that one pin is off and on; with
    `one_of`, the pin of its position is on and all others are off."""
    labels: list[str] = []
    """What its positions are called, the first one first."""
    position: Annotated[int, Field(ge=0)] = 0
    """Where it stands at first; the first position is 0."""
    inverted: bool = False
    """Whether the pins are low to be on, as many relays want it."""

    @property
    def count(self) -> int:
        return len(self.pins) if self.code == "one_of" else 2 ** len(self.pins)

    def levels(self, position: int) -> list[bool]:
        """Which pins are on."""
        if self.code == "one_of":
            return [place == position for place in range(len(self.pins))]
        return [bool(position >> place & 1) for place in range(len(self.pins))]

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if len(set(self.pins)) < len(self.pins):
            raise fault(codes.BAD_VALUE, "the same pin stands here twice")
        if self.labels and len(self.labels) != self.count:
            raise fault(
                codes.BAD_VALUE, f"{len(self.labels)} labels are not one for each of {self.count}"
            )
        if self.position >= self.count:
            raise fault(
                codes.BAD_VALUE,
                f"position {self.position} is beyond the last, which is {self.count - 1}",
            )
        return self
