from __future__ import annotations

from cogwork.media.encoded_frames import EncodedFrame, join_frame
from cogwork.media.picture_group import PictureGroup
from cogwork.webrtc.track_frames import TrackFrames
from cogwork.webrtc.video_track import VideoTrack


def frame(number: int, *, is_key: bool = False, size: int = 1) -> EncodedFrame:
    return EncodedFrame(bytes([number % 256]) * size, number * 3000, is_key, is_from_camera=True)


def numbers(frames: list[EncodedFrame]) -> list[int]:
    return [each.data[0] for each in frames]


def test_group_begins_with_the_last_key_frame() -> None:
    group = PictureGroup()
    group.add(frame(1))
    assert group.repeat() == []
    for number in range(2, 8):
        group.add(frame(number, is_key=number in (2, 5)))
    assert numbers(group.repeat()) == [5, 6, 7]
    times = [each.time for each in group.repeat()]
    assert times == sorted(set(times))
    assert times[0] > 7 * 3000
    assert times[-1] < 8 * 3000


def test_group_that_is_too_large_is_given_up() -> None:
    group = PictureGroup()
    group.add(frame(1, is_key=True))
    for number in range(2, 1000):
        group.add(frame(number))
    assert group.repeat() == []
    group.add(frame(1, is_key=True, size=5_000_000))
    assert len(group.repeat()) == 1
    group.add(frame(2, size=5_000_000))
    group.add(frame(3))
    assert group.repeat() == []
    group.add(frame(4, is_key=True))
    assert numbers(group.repeat()) == [4]


async def test_new_viewer_gets_the_whole_group_at_once() -> None:
    source, first, second = TrackFrames(lambda: None), VideoTrack(), VideoTrack()
    source.tracks.add(first)
    assert not source.repeat(first)
    for number in range(1, 31):
        source.data_received(join_frame(frame(number, is_key=number == 1)))
    source.tracks.add(second)
    assert source.repeat(second)
    source.data_received(join_frame(frame(31)))
    received = [bytes(await second.recv())[0] for _ in range(31)]
    assert received == list(range(1, 32))
    # What is encoded here has its own key frames.
    source.data_received(join_frame(EncodedFrame(b"x", 0, True)))
    assert not source.repeat(second)
