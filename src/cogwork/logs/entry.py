"""One line of the log, as every output gets it."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LEVELS = {10: "DEBUG", 20: "INFO", 30: "WARN", 40: "ERROR", 50: "CRITICAL"}
"""As the public API spells them."""


@dataclass(slots=True)
class Entry:
    time: float
    """Seconds since 1970."""
    level: int
    """As the standard library counts them."""
    logger: str
    place: str
    """Where in the code: `drive.py:50`."""
    message: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    trace: str | None = None
    """The traceback that belongs to it."""


def level_name(level: int) -> str:
    return LEVELS.get(level) or LEVELS[min(max(level // 10, 1), 5) * 10]


def moment(seconds: float) -> str:
    """In UTC, to the millisecond."""
    whole, milliseconds = divmod(round(seconds * 1000), 1000)
    return f"{_second(whole)}.{milliseconds:03}Z"


@functools.lru_cache(maxsize=4)
def _second(whole: int) -> str:
    """Most lines come in the same second as the one before."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(whole))


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What would move the cursor of a terminal, or worse."""


def as_text(entry: Entry) -> str:
    """Tab-separated, as log readers of this API expect it. Ends without a line break."""
    message = entry.message
    if _CONTROL.search(message) is not None:
        message = _CONTROL.sub(lambda found: repr(found[0])[1:-1], message)
    parts = [moment(entry.time), level_name(entry.level), entry.logger, entry.place, message]
    if entry.fields:
        parts.append(json.dumps(entry.fields, ensure_ascii=False, default=str))
    line = "\t".join(parts)
    return f"{line}\n{entry.trace}" if entry.trace else line


def as_json(entry: Entry) -> str:
    value: dict[str, Any] = {
        "time": moment(entry.time),
        "level": level_name(entry.level).lower(),
        "logger": entry.logger,
        "place": entry.place,
        "message": entry.message,
    }
    if entry.fields:
        value["fields"] = entry.fields
    if entry.trace:
        value["trace"] = entry.trace
    return json.dumps(value, ensure_ascii=False, default=str)
