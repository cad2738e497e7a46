from __future__ import annotations

import pytest

from cogwork.drivers.audio_out.pcm import CODECS, PcmFormat
from cogwork.drivers.audio_out.playback_buffer import RETENTION_SECONDS, AudioClip, PlaybackBuffer

MONO = PcmFormat(CODECS["pcm16"], 1000, 1)


def clip(values: list[int], since: float, form: PcmFormat = MONO, speed: float = 1.0) -> AudioClip:
    data = b"".join(value.to_bytes(2, "little") for value in values)
    seconds = len(values) / form.channels / form.rate / speed
    return AudioClip(form, data, since, since + seconds, speed)


def rendered(
    buffer: PlaybackBuffer, since: float, frames: int, form: PcmFormat = MONO
) -> list[int]:
    data = buffer.render(since, frames, form)
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@pytest.fixture
def buffer() -> PlaybackBuffer:
    return PlaybackBuffer()


def test_clip_is_rendered_at_its_time(buffer: PlaybackBuffer) -> None:
    buffer.add(clip([1, 2, 3], 5.0), 5.0)
    assert rendered(buffer, 4.998, 7) == [0, 0, 1, 2, 3, 0, 0]
    assert rendered(buffer, 4.0, 3) == [0, 0, 0]


def test_cut_off_silences_everything_after_it(buffer: PlaybackBuffer) -> None:
    buffer.add(clip([1, 2, 3], 5.0), 5.0)
    buffer.add(clip([4, 5, 6], 5.003), 5.0)
    buffer.cut_off(5.002)
    assert rendered(buffer, 5.0, 6) == [1, 2, 0, 0, 0, 0]


def test_rendering_at_another_rate_repeats_or_skips_samples(buffer: PlaybackBuffer) -> None:
    buffer.add(clip([1, 2, 3, 4], 0.0), 0.0)
    assert rendered(buffer, 0.0, 8, PcmFormat(CODECS["pcm16"], 2000, 1)) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert rendered(buffer, 0.0, 2, PcmFormat(CODECS["pcm16"], 500, 1)) == [1, 3]


def test_faster_clip_is_rendered_faster(buffer: PlaybackBuffer) -> None:
    buffer.add(clip([1, 2, 3, 4], 0.0, speed=2.0), 0.0)
    assert rendered(buffer, 0.0, 3) == [1, 3, 0]


@pytest.mark.parametrize("late", [0.0, 4e-7, 8e-7])
def test_clip_with_a_rounding_delay_is_rendered_from_its_start(
    buffer: PlaybackBuffer, late: float
) -> None:
    fast = PcmFormat(CODECS["pcm16"], 384_000, 1)
    buffer.add(clip(list(range(1, 1001)), late, fast, speed=1000.0), 0.0)
    assert rendered(buffer, 0.0, 1) == [1]


def test_channels_are_converted_between_mono_and_stereo(buffer: PlaybackBuffer) -> None:
    stereo = PcmFormat(CODECS["pcm16"], 1000, 2)
    buffer.add(clip([1, 10, 2, 20], 0.0, stereo), 0.0)
    assert rendered(buffer, 0.0, 2) == [1, 2]
    assert rendered(buffer, 0.0, 2, stereo) == [1, 10, 2, 20]
    other = PlaybackBuffer()
    other.add(clip([1, 2], 0.0), 0.0)
    assert rendered(other, 0.0, 2, stereo) == [1, 1, 2, 2]


@pytest.mark.parametrize("since", [1_000_000.0, 123_456.789, 0.1])
def test_rounding_of_timestamps_shifts_no_sample(buffer: PlaybackBuffer, since: float) -> None:
    form = PcmFormat(CODECS["pcm16"], 44_100, 1)
    values = list(range(1, 4411))
    buffer.add(clip(values, since, form), since)
    assert rendered(buffer, since, 4410, form) == values


def test_clips_older_than_the_retention_period_are_dropped(buffer: PlaybackBuffer) -> None:
    buffer.add(clip([1], 0.0), 0.0)
    buffer.add(clip([2], RETENTION_SECONDS), RETENTION_SECONDS)
    assert rendered(buffer, 0.0, 1) == [1]
    buffer.add(clip([3], RETENTION_SECONDS + 2), RETENTION_SECONDS + 2)
    assert rendered(buffer, 0.0, 1) == [0]
    assert rendered(buffer, RETENTION_SECONDS, 1) == [2]


def test_buffer_size_is_limited_and_keeps_the_newest_clips() -> None:
    buffer = PlaybackBuffer()
    for number in range(10_000):
        buffer.add(clip([number % 1000 + 1], number / 1000), 0.0)
    assert rendered(buffer, 9.999, 1) == [1000]
    assert rendered(buffer, 0.0, 1) == [0]
