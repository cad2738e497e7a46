"""What the switches read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, fault


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
