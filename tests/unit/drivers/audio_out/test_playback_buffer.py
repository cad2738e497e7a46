from __future__ import annotations

import pytest

from cogwork.drivers.audio_out.pcm import CODECS, PcmFormat
from cogwork.drivers.audio_out.playback_buffer import RETENTION_SECONDS, AudioClip, PlaybackBuffer

MONO = PcmFormat(CODECS["pcm16"], 1000, 1)


def piece(values: list[int], since: float, form: PcmFormat = MONO, speed: float = 1.0) -> AudioClip:
    data = b"".join(value.to_bytes(2, "little") for value in values)
    seconds = len(values) / form.channels / form.rate / speed
    return AudioClip(form, data, since, since + seconds, speed)


def heard(air: PlaybackBuffer, since: float, frames: int, form: PcmFormat = MONO) -> list[int]:
    data = air.render(since, frames, form)
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@pytest.fixture
def air() -> PlaybackBuffer:
    return PlaybackBuffer()


def test_what_is_let_out_is_heard_then(air: PlaybackBuffer) -> None:
    air.add(piece([1, 2, 3], 5.0), 5.0)
    assert heard(air, 4.998, 7) == [0, 0, 1, 2, 3, 0, 0]
    assert heard(air, 4.0, 3) == [0, 0, 0]


def test_what_is_cut_off_is_heard_until_then(air: PlaybackBuffer) -> None:
    air.add(piece([1, 2, 3], 5.0), 5.0)
    air.add(piece([4, 5, 6], 5.003), 5.0)
    air.cut_off(5.002)
    assert heard(air, 5.0, 6) == [1, 2, 0, 0, 0, 0]


def test_another_rate_hears_each_sample_for_as_long(air: PlaybackBuffer) -> None:
    air.add(piece([1, 2, 3, 4], 0.0), 0.0)
    assert heard(air, 0.0, 8, PcmFormat(CODECS["pcm16"], 2000, 1)) == [1, 1, 2, 2, 3, 3, 4, 4]
    assert heard(air, 0.0, 2, PcmFormat(CODECS["pcm16"], 500, 1)) == [1, 3]


def test_what_is_played_faster_is_heard_faster(air: PlaybackBuffer) -> None:
    air.add(piece([1, 2, 3, 4], 0.0, speed=2.0), 0.0)
    assert heard(air, 0.0, 3) == [1, 3, 0]


@pytest.mark.parametrize("late", [0.0, 4e-7, 8e-7])
def test_what_begins_a_hair_late_is_heard_from_its_beginning(
    air: PlaybackBuffer, late: float
) -> None:
    fast = PcmFormat(CODECS["pcm16"], 384_000, 1)
    air.add(piece(list(range(1, 1001)), late, fast, speed=1000.0), 0.0)
    assert heard(air, 0.0, 1) == [1]


def test_channels(air: PlaybackBuffer) -> None:
    stereo = PcmFormat(CODECS["pcm16"], 1000, 2)
    air.add(piece([1, 10, 2, 20], 0.0, stereo), 0.0)
    assert heard(air, 0.0, 2) == [1, 2]
    assert heard(air, 0.0, 2, stereo) == [1, 10, 2, 20]
    other = PlaybackBuffer()
    other.add(piece([1, 2], 0.0), 0.0)
    assert heard(other, 0.0, 2, stereo) == [1, 1, 2, 2]


@pytest.mark.parametrize("since", [1_000_000.0, 123_456.789, 0.1])
def test_no_sample_slips_because_of_the_last_digits(air: PlaybackBuffer, since: float) -> None:
    form = PcmFormat(CODECS["pcm16"], 44_100, 1)
    values = list(range(1, 4411))
    air.add(piece(values, since, form), since)
    assert heard(air, since, 4410, form) == values


def test_what_is_long_past_is_forgotten(air: PlaybackBuffer) -> None:
    air.add(piece([1], 0.0), 0.0)
    air.add(piece([2], RETENTION_SECONDS), RETENTION_SECONDS)
    assert heard(air, 0.0, 1) == [1]
    air.add(piece([3], RETENTION_SECONDS + 2), RETENTION_SECONDS + 2)
    assert heard(air, 0.0, 1) == [0]
    assert heard(air, RETENTION_SECONDS, 1) == [2]


def test_however_much_comes_some_of_it_is_kept() -> None:
    air = PlaybackBuffer()
    for number in range(10_000):
        air.add(piece([number % 1000 + 1], number / 1000), 0.0)
    assert heard(air, 9.999, 1) == [1000]
    assert heard(air, 0.0, 1) == [0]
