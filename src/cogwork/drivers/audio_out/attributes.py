"""What the speakers read from their configuration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.fields import Attributes


class FakeAudioOutAttributes(Attributes):
    sample_rate_hz: Annotated[int, Field(ge=1000, le=384_000)] = 44_100
    """The rate that it says it plays at. Sound of any rate is played."""
    num_channels: Annotated[int, Field(ge=1, le=8)] = 2
    """How many channels a sound may have."""
    speed: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    """How many times faster than it should a sound is over."""
