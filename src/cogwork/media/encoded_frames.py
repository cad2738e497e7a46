"""Encoded video frames on a socket: a header with size, flags and time precedes each frame."""

from __future__ import annotations

import struct
from typing import NamedTuple

TICKS_PER_SECOND = 90_000
"""Resolution of frame times, which is the clock rate of RTP video."""
_HEAD = struct.Struct(">I??Q")


class EncodedFrame(NamedTuple):
    data: bytes
    time: int
    """The time of the frame in ticks, by the monotonic clock."""
    is_key: bool
    """Whether the frame can be decoded without earlier frames."""
    is_from_camera: bool = False
    """Whether the camera encoded the frame; viewers cannot request key frames from a camera."""


def join_frame(frame: EncodedFrame) -> bytes:
    head = _HEAD.pack(len(frame.data), frame.is_key, frame.is_from_camera, frame.time)
    return head + frame.data


class FrameSplitter:
    def __init__(self) -> None:
        self._received = bytearray()

    def feed(self, data: bytes) -> list[EncodedFrame]:
        """Return the frames that the data completes."""
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
