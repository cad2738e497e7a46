"""Attributes of the audio_out models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from cogwork.config.schema.fields import Attributes


class FakeAudioOutAttributes(Attributes):
    """A speaker without hardware that plays in real time without a sound."""

    sample_rate_hz: Annotated[int, Field(ge=1000, le=384_000)] = 44_100
    """Sample rate to report. Audio of any rate is played."""
    num_channels: Annotated[int, Field(ge=1, le=8)] = 2
    """Maximum number of channels."""
    speed: Annotated[float, Field(gt=0, le=10_000)] = 1.0
    """Factor by which audio is played faster than real time."""
