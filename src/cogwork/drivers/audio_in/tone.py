"""A sine tone that goes on forever."""

from __future__ import annotations

import math

from cogwork.drivers.audio_out.pcm import CODECS, Codec, Format

_LOUDNESS = 0.5


class Tone:
    """It repeats itself, so that only the shortest stretch that does is worked out."""

    def __init__(self, frequency: int, rate: int, channels: int) -> None:
        """Takes time for some frequencies: make it in a thread."""
        self._rate = rate
        self._frames = rate // math.gcd(rate, frequency)
        turn = math.tau * frequency / rate
        samples = [_LOUDNESS * math.sin(turn * frame) for frame in range(self._frames)]
        self._once = {codec: _on_each(channels, samples, codec) for codec in CODECS.values()}

    def heard(self, since: float, frames: int, form: Format) -> bytes:
        once, size = self._once[form.codec], form.frame_size
        first = round(since * self._rate) % self._frames
        times = (first + frames) // self._frames + 1
        return (once * times)[first * size : (first + frames) * size]


def _on_each(channels: int, samples: list[float], codec: Codec) -> bytes:
    one = codec.encoded(samples)
    size = len(one) // len(samples)
    frames = bytearray(len(one) * channels)
    for channel in range(channels):
        for byte in range(size):
            frames[channel * size + byte :: channels * size] = one[byte::size]
    return bytes(frames)
