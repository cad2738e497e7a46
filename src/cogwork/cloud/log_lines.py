"""Log entries of machines as lines of the log store."""

from __future__ import annotations

from typing import Final

from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.cloud.log_store import LogLine

_MAX_MESSAGE: Final = 32 << 10
_MAX_NAME: Final = 256


def to_line(part_id: str, entry: LogEntry) -> LogLine:
    """Return the line of an entry, whose texts are cut where they are too long."""
    kept = LogEntry()
    kept.CopyFrom(entry)
    kept.message = entry.message[:_MAX_MESSAGE]
    kept.stack = entry.stack[:_MAX_MESSAGE]
    kept.logger_name = entry.logger_name[:_MAX_NAME]
    kept.host = entry.host[:_MAX_NAME]
    level = entry.level.lower()[:16]
    return LogLine(
        part_id,
        entry.time.ToMicroseconds(),
        level,
        kept.logger_name,
        kept.message,
        kept.SerializeToString(),
    )
