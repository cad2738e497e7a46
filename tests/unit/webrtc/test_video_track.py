from __future__ import annotations

import asyncio

from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import run_others

from cogwork.media.encoded_frames import EncodedFrame, FrameSplitter, join_frame
from cogwork.webrtc.video_track import _MAX_WAITING, VideoTrack

PICTURES = st.builds(EncodedFrame, st.binary(max_size=200), st.integers(0, 2**63), st.booleans())


@given(st.lists(PICTURES), st.integers(1, 60))
def test_pictures_survive_any_division(pictures: list[EncodedFrame], size: int) -> None:
    data = b"".join(map(join_frame, pictures))
    splitter = FrameSplitter()
    found = []
    for start in range(0, len(data), size):
        found += splitter.feed(data[start : start + size])
    assert found == pictures


def picture(number: int, *, is_key: bool = False) -> EncodedFrame:
    return EncodedFrame(bytes([number]), 90_000 * number, is_key)


async def test_viewer_starts_with_a_key_frame() -> None:
    track = VideoTrack()
    for number in range(5):
        track.add(picture(number, is_key=number == 2))
    received = [await track.recv() for _ in range(3)]
    assert [bytes(each) for each in received] == [b"\x02", b"\x03", b"\x04"]
    assert [each.pts for each in received] == [180_000, 270_000, 360_000]


async def test_slow_viewer_continues_with_the_next_key_picture() -> None:
    requests: list[None] = []
    track = VideoTrack()
    track.on_key = lambda: requests.append(None)
    track.add(picture(0, is_key=True))
    for number in range(1, _MAX_WAITING + 5):
        track.add(picture(number))
    assert len(requests) == 1
    waiting = asyncio.ensure_future(track.recv())
    await run_others()
    assert not waiting.done()
    track.add(picture(99, is_key=True))
    assert bytes(await waiting) == bytes([99])
