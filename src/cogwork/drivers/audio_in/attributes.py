"""Attributes of the audio_in models."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import Attributes, Dependency, Duration, fault


class FakeAudioInAttributes(Attributes):
    """A microphone without hardware that records a tone, or a fake speaker."""

    frequency_hz: Annotated[int, Field(ge=1, le=100_000)] = 440
    """Frequency of the tone; at most half of the sample rate."""
    hears: Annotated[str, Dependency("rdk:component:audio_out")] | None = None
    """Name of a fake speaker to record instead of the tone."""
    sample_rate_hz: Annotated[int, Field(ge=1000, le=384_000)] = 44_100
    """Samples per second."""
    num_channels: Annotated[int, Field(ge=1, le=8)] = 1
    """Number of channels. All channels carry the same tone."""
    chunk: Annotated[Duration, Field(ge=0.01, le=1.0)] = 0.1
    """Duration of each chunk that is sent."""

    @model_validator(mode="after")
    def _check_nyquist(self) -> Self:
        if self.hears is None and 2 * self.frequency_hz > self.sample_rate_hz:
            raise fault(
                codes.BAD_VALUE,
                f'"frequency_hz" must be at most {self.sample_rate_hz // 2}, half of '
                '"sample_rate_hz": a higher tone would alias',
            )
        return self
