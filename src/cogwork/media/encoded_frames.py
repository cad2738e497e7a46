"""Encoded frames of a video on a socket: each has its size, its kind and its time before it."""

from __future__ import annotations

import struct
from typing import NamedTuple

TICKS_PER_SECOND = 90_000
"""Of the time of a frame, as RTP counts it."""
_HEAD = struct.Struct(">I??Q")


class EncodedFrame(NamedTuple):
    data: bytes
    time: int
    """In ticks of the monotonic clock."""
    is_key: bool
    """Whether it can be shown without the frames before it."""
    is_from_camera: bool = False
    """Whether the camera encoded it; no one can ask for a key frame then."""


def join_frame(frame: EncodedFrame) -> bytes:
    head = _HEAD.pack(len(frame.data), frame.is_key, frame.is_from_camera, frame.time)
    return head + frame.data


class FrameSplitter:
    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[EncodedFrame]:
        """Return the frames that are complete now."""
        received = self._received
        received += data
        frames = []
        at = 0
        while len(received) - at >= _HEAD.size:
            size, is_key, is_from_camera, time = _HEAD.unpack_from(received, at)
            start = at + _HEAD.size
            if start + size > len(received):
                break
            at = start + size
            data = bytes(received[start:at])
            frames.append(EncodedFrame(data, time, is_key, is_from_camera))
        del received[:at]
        return frames
