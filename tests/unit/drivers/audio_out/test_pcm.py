from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.drivers.audio_out.pcm import CODECS


@given(st.lists(st.integers(-(2**15), 2**15 - 1)))
def test_samples_survive_encoding_and_decoding(numbers: list[int]) -> None:
    samples = [number / 2**15 for number in numbers]
    for codec in CODECS.values():
        assert list(codec.decode(codec.encode(samples))) == samples


@pytest.mark.parametrize(
    ("codec", "data"),
    [
        ("pcm16", struct.pack("<4h", 0, 16384, -32768, 32767)),
        ("pcm32", struct.pack("<4i", 0, 2**30, -(2**31), 2**31 - 1)),
        ("pcm32_float", struct.pack("<4f", 0.0, 0.5, -1.0, 1.0)),
    ],
)
def test_encoding_matches_the_pcm_format(codec: str, data: bytes) -> None:
    assert CODECS[codec].encode([0.0, 0.5, -1.0, 1.0]) == data


def test_samples_beyond_full_scale_are_clipped() -> None:
    assert CODECS["pcm16"].encode([7.0, -7.0]) == struct.pack("<2h", 32767, -32768)
    loudest = CODECS["pcm32"].encode([3e38, -3e38])
    assert loudest == struct.pack("<2i", 2**31 - 1, -(2**31))


@pytest.mark.parametrize("codec", ["pcm16", "pcm32"])
def test_nan_and_infinite_samples_are_encoded_as_silence(codec: str) -> None:
    silence = CODECS[codec].encode([0.0] * 3)
    assert CODECS[codec].encode([math.nan, math.inf, -math.inf]) == silence
