"""A log entry, the common form that every output receives."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cogwork.core.escape import escape, escape_json, escape_lines

LEVEL_NAMES = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "CRITICAL"}
"""The level names of the public API."""


@dataclass(slots=True)
class Entry:
    time: float
    """Seconds since 1970."""
    level: int
    """The level number of the standard library."""
    logger: str
    place: str
    """The location of the log call, such as `drive.py:50`."""
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    trace: str | None = None
    """Additional lines, such as a traceback or an excerpt of a file."""


def level_name(level: int) -> str:
    return LEVEL_NAMES.get(level) or LEVEL_NAMES[min(max(level // 10, 1), 5) * 10]


def format_timestamp(seconds: float) -> str:
    """Format a time in UTC with milliseconds."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_format_second(whole)}.{milliseconds:03}Z"


@functools.lru_cache(maxsize=4)
def _format_second(whole: int) -> str:
    """Format a whole second, cached because most entries share it with the previous one."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


def as_text(entry: Entry) -> str:
    """Format an entry as tab-separated text without a line break, as log readers of this API
    expect."""
    parts = [format_timestamp(entry.time), level_name(entry.level)]
    parts += map(escape, (entry.logger, entry.place, entry.message))
    if entry.fields:
        parts.append(escape(json.dumps(entry.fields, ensure_ascii=False, default=str)))
    line = "\t".join(parts)
    return f"{line}\n{escape_lines(entry.trace)}" if entry.trace else line


def as_json(entry: Entry) -> str:
    value = {
        "time": format_timestamp(entry.time),
        "level": level_name(entry.level).lower(),
        **describe_content(entry),
    }
    return escape_json(json.dumps(value, ensure_ascii=False, default=str))


def describe_content(entry: Entry) -> dict[str, object]:
    """Return the fields that both JSON formats share: all but the time and the level."""
    value: dict[str, object] = {
        "logger": entry.logger,
        "place": entry.place,
        "message": entry.message,
    }
    if entry.fields:
        value["fields"] = entry.fields
    if entry.trace:
        value["trace"] = entry.trace
    return value
