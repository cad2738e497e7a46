"""Attributes of the world state store models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Duration, fault

_MAX_OBJECTS = 200


class FakeWorldStateStoreAttributes(Attributes):
    """A world state store whose objects change by themselves."""

    interval: Annotated[Duration, Field(ge=0.01, le=86_400)] = 2.0
    """Seconds until the next object appears."""
    lifetime: Annotated[Duration, Field(ge=0.01, le=86_400)] = 10.0
    """Duration that an object circles the origin before it disappears."""
    update_rate_hz: Annotated[float, Field(gt=0, le=100)] = 10.0
    """How many times per second the objects move."""
    radius_mm: Annotated[float, Field(gt=0)] = 500.0
    """Distance of the objects from the origin."""
    reference_frame: Annotated[str, Field(min_length=1)] = "world"
    """Frame whose origin the objects circle."""

    @model_validator(mode="after")
    def _check_object_count(self) -> Self:
        if self.lifetime / self.interval > _MAX_OBJECTS:
            raise fault(
                codes.BAD_VALUE,
                f'"lifetime" must be at most {_MAX_OBJECTS} times "interval": there would be too '
                "many objects",
            )
        return self
