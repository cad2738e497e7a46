"""What the world state stores read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, fault

_MOST_THINGS = 200


class FakeWorldStateStoreAttributes(Attributes):
    interval: Annotated[Duration, Field(ge=0.01, le=86_400)] = 2.0
    """How long it takes until another thing appears."""
    lifetime: Annotated[Duration, Field(ge=0.01, le=86_400)] = 10.0
    """How long a thing stays, moving round the middle of the world, before it vanishes."""
    update_rate_hz: Annotated[float, Field(gt=0, le=100)] = 10.0
    """How often a second things move."""
    radius_mm: Annotated[float, Field(gt=0)] = 500.0
    """How far from the middle they move."""
    reference_frame: Annotated[str, Field(min_length=1)] = "world"
    """The frame whose middle that is."""

    @model_validator(mode="after")
    def _can_be_listed(self) -> Self:
        if self.lifetime / self.interval > _MOST_THINGS:
            raise fault(
                codes.BAD_VALUE,
                f'"lifetime" must be at most {_MOST_THINGS} times "interval": there would be too '
                "many things",
            )
        return self
