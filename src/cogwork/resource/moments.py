"""Moments and durations as the messages of the public API carry them."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def timestamp(seconds: float) -> Timestamp:
    """Of seconds since 1970."""
    moment = Timestamp()
    moment.FromNanoseconds(int(seconds * 1e9))
    return moment


def duration(seconds: float) -> Duration:
    length = Duration()
    length.FromNanoseconds(round(seconds * 1e9))
    return length
