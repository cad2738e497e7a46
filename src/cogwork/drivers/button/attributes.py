"""What the buttons read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, Needs, fault


class FakeButtonAttributes(Attributes):
    board: Annotated[str, Field(min_length=1), Needs("rdk:component:board")] | None = None
    """A board one of whose pins goes high for a moment with every push."""
    pin: Annotated[str, Field(min_length=1)] | None = None
    """The pin of the board."""
    pulse: Annotated[Duration, Field(gt=0)] = 0.1
    """For how long the pin is high, such as `100ms`."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if (self.board is None) != (self.pin is None):
            missing = "board" if self.board is None else "pin"
            raise fault(
                codes.MISSING_FIELD, f'"board" and "pin" go together: "{missing}" is missing'
            )
        return self
