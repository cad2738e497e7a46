"""PCM codecs, without a library."""

from __future__ import annotations

import math
import sys
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from viam.proto.common import AudioInfo

from cogwork.core.errors import InvalidRequest

MAX_SAMPLE_RATE = 384_000
"""Maximum samples per second; no device supports more."""


@dataclass(frozen=True, slots=True)
class PcmCodec:
    name: str
    typecode: str
    """The type of a sample, as a type code of `array`."""
    full_scale: float | None
    """The absolute value of the loudest sample, if samples are integers."""

    def encode(self, samples: Iterable[float]) -> bytes:
        """Encode samples from -1 to 1.

        Integer codecs clip louder samples and replace NaN and infinity by silence.
        """
        numbers: array[Any]
        if self.full_scale is None:
            numbers = array(self.typecode, samples)
        else:
            full_scale, maximum = self.full_scale, self.full_scale - 1
            numbers = array(
                self.typecode,
                [
                    round(level)
                    if -full_scale <= (level := each * full_scale) <= maximum
                    else _clip(level, maximum)
                    for each in samples
                ],
            )
        return _to_little_endian(numbers).tobytes()

    def decode(self, data: bytes) -> Sequence[float]:
        numbers: array[Any] = array(self.typecode)
        numbers.frombytes(data)
        samples = _to_little_endian(numbers)
        full_scale = self.full_scale
        return samples if full_scale is None else [each / full_scale for each in samples]


CODECS = {
    codec.name: codec
    for codec in (
        PcmCodec("pcm16", "h", 2.0**15),
        PcmCodec("pcm32", "i", 2.0**31),
        PcmCodec("pcm32_float", "f", None),
    )
}


@dataclass(frozen=True, slots=True)
class PcmFormat:
    codec: PcmCodec
    rate: int
    """Frames per second. A frame has one sample per channel."""
    channels: int

    @property
    def frame_size(self) -> int:
        """Bytes per frame."""
        return array(self.codec.typecode).itemsize * self.channels

    def to_audio_info(self) -> AudioInfo:
        return AudioInfo(
            codec=self.codec.name, sample_rate_hz=self.rate, num_channels=self.channels
        )


def find_codec(name: str, display_name: str) -> PcmCodec:
    """Return the codec. `display_name` names the device in errors, such as `audio_out "mic"`."""
    codec = CODECS.get(name)
    if codec is None:
        problem = f'has no codec "{name}"' if name else "needs a codec"
        raise InvalidRequest(f"{display_name} {problem}; it supports {', '.join(CODECS)}")
    return codec


def _clip(level: float, maximum: float) -> int:
    """Clip and round the level; infinity and NaN, which cannot be rounded, become 0."""
    return int(max(-maximum - 1, min(level, maximum))) if math.isfinite(level) else 0


def _to_little_endian(numbers: array[Any]) -> array[Any]:
    """Convert to little endian, the byte order on the wire."""
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
