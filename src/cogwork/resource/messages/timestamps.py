"""Convert seconds to protobuf Timestamps and Durations."""

from __future__ import annotations

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp


def to_timestamp(seconds: float) -> Timestamp:
    """Convert seconds since 1970 to a Timestamp."""
    timestamp = Timestamp()
    timestamp.FromNanoseconds(int(seconds * 1e9))
    return timestamp


def to_duration(seconds: float) -> Duration:
    duration = Duration()
    duration.FromNanoseconds(round(seconds * 1e9))
    return duration
