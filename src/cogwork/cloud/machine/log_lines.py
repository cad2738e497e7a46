"""The conversion of machines' log entries to lines of the log store."""

from __future__ import annotations

from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp
from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.storage.log_store import LogLine

_MAX_MESSAGE: Final = 32 << 10
_MAX_NAME: Final = 256
_MAX_LEVEL: Final = 16
_MAX_FIELDS_SIZE: Final = 32 << 10
"""Maximum bytes of an entry's caller, and of all its fields together. Larger ones are dropped."""
_FIRST_SECOND: Final = -62_135_596_800
_LAST_SECOND: Final = 253_402_300_799
"""The last second of the year 9999. Timestamps are valid from the year 1 on."""
_MAX_NANOS: Final = 999_999_999


def limit_entry(entry: LogEntry) -> None:
    """Change an entry so that every client can read it, and shorten long values.

    The time is limited to the valid range, and the source location (`caller`) gets the fields that
    the SDK expects.
    """
    if not _is_within_limits(entry):
        entry.CopyFrom(_cut(entry))
    _complete_caller(entry)


def _is_within_limits(entry: LogEntry) -> bool:
    """Return whether an entry is within all limits, as most are."""
    return (
        entry.ByteSize() <= _MAX_MESSAGE
        and len(entry.host) <= _MAX_NAME
        and len(entry.level) <= _MAX_LEVEL
        and len(entry.logger_name) <= _MAX_NAME
        and _FIRST_SECOND <= entry.time.seconds <= _LAST_SECOND
        and 0 <= entry.time.nanos <= _MAX_NANOS
    )


def _complete_caller(entry: LogEntry) -> None:
    fields = entry.caller.fields
    if "File" not in fields or not fields["File"].HasField("string_value"):
        fields["File"].string_value = ""
    if "Line" not in fields or not fields["Line"].HasField("number_value"):
        fields["Line"].number_value = 0


def _cut(entry: LogEntry) -> LogEntry:
    kept = LogEntry(
        host=entry.host[:_MAX_NAME],
        level=entry.level[:_MAX_LEVEL],
        time=_limit_time(entry.time),
        logger_name=entry.logger_name[:_MAX_NAME],
        message=entry.message[:_MAX_MESSAGE],
        stack=entry.stack[:_MAX_MESSAGE],
    )
    if entry.caller.ByteSize() <= _MAX_FIELDS_SIZE:
        kept.caller.CopyFrom(entry.caller)
    if sum(field.ByteSize() for field in entry.fields) <= _MAX_FIELDS_SIZE:
        kept.fields.extend(entry.fields)
    return kept


def to_line(part_id: str, entry: LogEntry) -> LogLine:
    """Return the log line for an entry that is within the limits."""
    return LogLine(
        part_id,
        entry.time.ToMicroseconds(),
        entry.level.lower(),
        entry.logger_name,
        entry.message,
        entry.SerializeToString(),
    )


def _limit_time(time: Timestamp) -> Timestamp:
    seconds = min(max(time.seconds, _FIRST_SECOND), _LAST_SECOND)
    return Timestamp(seconds=seconds, nanos=min(max(time.nanos, 0), _MAX_NANOS))
