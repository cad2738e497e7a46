"""An endless sine tone."""

from __future__ import annotations

import math

from cogwork.drivers.audio_out.pcm import CODECS, PcmCodec, PcmFormat

_AMPLITUDE = 0.5


class Tone:
    """A tone that stores its shortest repeating part and plays it in a loop."""

    def __init__(self, frequency: int, rate: int, channels: int) -> None:
        """Compute the samples. This is slow for some frequencies: call it in a thread."""
        self._rate = rate
        self._period_frames = rate // math.gcd(rate, frequency)
        step = math.tau * frequency / rate
        samples = [_AMPLITUDE * math.sin(step * frame) for frame in range(self._period_frames)]
        self._periods = {
            codec: _encode_channels(channels, samples, codec) for codec in CODECS.values()
        }

    def render(self, since: float, frames: int, pcm_format: PcmFormat) -> bytes:
        period, size = self._periods[pcm_format.codec], pcm_format.frame_size
        first = round(since * self._rate) % self._period_frames
        times = (first + frames) // self._period_frames + 1
        return (period * times)[first * size : (first + frames) * size]


def _encode_channels(channels: int, samples: list[float], codec: PcmCodec) -> bytes:
    one = codec.encode(samples)
    size = len(one) // len(samples)
    frames = bytearray(len(one) * channels)
    for channel in range(channels):
        for byte in range(size):
            frames[channel * size + byte :: channels * size] = one[byte::size]
    return bytes(frames)
