from __future__ import annotations

from typing import Any

import av
import numpy as np
import pytest

from cogwork.media.encoded_frames import TICKS_PER_SECOND
from cogwork.media.video_encoder import VideoCodec, VideoEncoder, default_bitrate


def picture(width: int = 320, height: int = 240, shift: int = 0) -> np.ndarray:
    pixels = np.zeros((height, width, 3), np.uint8)
    pixels[:, :, 2] = 200  # red
    pixels[:, shift : shift + 40] = (255, 255, 255)
    return pixels


@pytest.mark.parametrize(("codec", "decoder"), [(VideoCodec.H264, "h264"), (VideoCodec.VP8, "vp8")])
def test_pictures_can_be_decoded(codec: VideoCodec, decoder: str) -> None:
    encoder = VideoEncoder(codec, 160, 120, 500_000)
    context: Any = av.CodecContext.create(decoder, "r")
    decoded, keys = [], []
    for number in range(10):
        time = number * TICKS_PER_SECOND // 15
        for each in encoder.encode(picture(shift=number * 10), time, as_key=number in (0, 6)):
            assert each.time == time
            keys.append(each.is_key)
            decoded += context.decode(av.Packet(each.data))
    decoded += context.decode(None)
    assert keys == [number in (0, 6) for number in range(10)]
    assert [(each.width, each.height) for each in decoded] == [(160, 120)] * 10
    red = decoded[-1].to_ndarray(format="rgb24")[60, 150]
    assert red[0] > 150
    assert red[1] < 60


def test_bitrate_limits_the_size() -> None:
    noise = np.random.default_rng(0)
    sizes = []
    for bitrate in (200_000, 2_000_000):
        encoder = VideoEncoder(VideoCodec.H264, 320, 240, bitrate)
        total = 0
        for number in range(45):
            pixels = noise.integers(0, 255, (240, 320, 3), np.uint8)
            encoded = encoder.encode(pixels, number * TICKS_PER_SECOND // 15, as_key=False)
            total += sum(len(each.data) for each in encoded)
        sizes.append(total)
    assert sizes[0] < sizes[1] / 3


@pytest.mark.parametrize("rate", [5, 15, 30])
def test_bits_are_divided_among_the_pictures(rate: int) -> None:
    noise = np.random.default_rng(0)
    encoder = VideoEncoder(VideoCodec.H264, 320, 240, 500_000, rate)
    total = 0
    for number in range(4 * rate):
        pixels = noise.integers(0, 255, (240, 320, 3), np.uint8)
        encoded = encoder.encode(pixels, number * TICKS_PER_SECOND // rate, as_key=False)
        total += sum(len(each.data) for each in encoded)
    assert total * 8 / 4 == pytest.approx(500_000, rel=0.3)


def test_default_bitrate_grows_with_the_size() -> None:
    assert default_bitrate(1280, 720) == 2_000_000
    assert default_bitrate(64, 48) == 300_000
    assert default_bitrate(3840, 2160) == 6_000_000
