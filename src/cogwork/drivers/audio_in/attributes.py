"""What the microphones read from their configuration."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Attributes, Duration, Needs, fault


class FakeAudioInAttributes(Attributes):
    frequency_hz: Annotated[int, Field(ge=1, le=100_000)] = 440
    """How high the tone is that it hears; at most half of the sample rate."""
    hears: Annotated[str, Needs("rdk:component:audio_out")] | None = None
    """A fake speaker beside it: what is played there is heard, instead of the tone."""
    sample_rate_hz: Annotated[int, Field(ge=1000, le=384_000)] = 44_100
    """How many samples a second it takes."""
    num_channels: Annotated[int, Field(ge=1, le=8)] = 1
    """How many channels it has. The tone is the same on each."""
    chunk: Annotated[Duration, Field(ge=0.01, le=1.0)] = 0.1
    """How much sound is sent at a time."""

    @model_validator(mode="after")
    def _can_be_sampled(self) -> Self:
        if self.hears is None and 2 * self.frequency_hz > self.sample_rate_hz:
            raise fault(
                codes.BAD_VALUE,
                f'"frequency_hz" must be at most {self.sample_rate_hz // 2}, half of '
                '"sample_rate_hz": a higher tone would be heard as another one',
            )
        return self
