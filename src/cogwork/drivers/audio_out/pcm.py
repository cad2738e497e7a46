"""Sound as plain samples: what each codec makes of them, without a library."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from viam.proto.common import AudioInfo

from cogwork.core.errors import InvalidRequest

HIGHEST_RATE = 384_000
"""Samples a second: no device has more."""


@dataclass(frozen=True, slots=True)
class Codec:
    name: str
    letter: str
    """As `array` calls the type of its samples."""
    full: float | None
    """What the loudest sample is, where samples are integers."""

    def encoded(self, samples: Iterable[float]) -> bytes:
        """Of samples from -1 to 1. As integers, what is louder is cut off, and what is no number is
        silence."""
        numbers: array[Any]
        if self.full is None:
            numbers = array(self.letter, samples)
        else:
            full, most = self.full, self.full - 1
            numbers = array(
                self.letter,
                [
                    round(level) if -full <= (level := each * full) <= most else _cut(level, most)
                    for each in samples
                ],
            )
        return _little(numbers).tobytes()

    def decoded(self, data: bytes) -> Sequence[float]:
        numbers: array[Any] = array(self.letter)
        numbers.frombytes(data)
        samples = _little(numbers)
        full = self.full
        return samples if full is None else [each / full for each in samples]


CODECS = {
    codec.name: codec
    for codec in (
        Codec("pcm16", "h", 2.0**15),
        Codec("pcm32", "i", 2.0**31),
        Codec("pcm32_float", "f", None),
    )
}


@dataclass(frozen=True, slots=True)
class Format:
    codec: Codec
    rate: int
    """Frames a second. A frame has a sample for each channel."""
    channels: int

    @property
    def frame_size(self) -> int:
        """In bytes."""
        return array(self.codec.letter).itemsize * self.channels

    def info(self) -> AudioInfo:
        return AudioInfo(
            codec=self.codec.name, sample_rate_hz=self.rate, num_channels=self.channels
        )


def codec_named(name: str, called: str) -> Codec:
    """`called`: what errors call the device, such as `audio_out "speaker"`."""
    codec = CODECS.get(name)
    if codec is None:
        asked = f'has no codec "{name}"' if name else "needs to know which codec"
        raise InvalidRequest(f"{called} {asked}; it has {', '.join(CODECS)}")
    return codec


def _cut(level: float, most: float) -> int:
    """Ahead of rounding: what is not finite has no integer."""
    return int(max(-most - 1, min(level, most))) if math.isfinite(level) else 0


def _little(numbers: array[Any]) -> array[Any]:
    """On the wire the low byte comes first, whatever this computer is."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
