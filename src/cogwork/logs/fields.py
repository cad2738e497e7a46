"""Converts the fields of a log record to plain values of limited size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from cogwork.logs.redactor import redact_value
from cogwork.logs.truncation import LIMIT, NAME_LIMIT, truncate

Redact = Callable[[str], str]


def limit_fields(fields: Mapping[Any, Any], redact: Redact) -> Mapping[str, Any]:
    """Redact the fields and truncate them so that together they stay within the limit.

    A value that JSON cannot represent, or that is truncated, becomes text.
    """
    bounded: dict[str, Any] = {}
    room = LIMIT
    for number, (name, value) in enumerate(fields.items()):
        if room <= 0:
            bounded["…"] = f"[cut {len(fields) - number:,} fields]"
            break
        key = truncate(str(name), redact, NAME_LIMIT)
        bounded[key], size = _limit_value(value, redact, room)
        room -= len(key) + size
    return bounded


def _limit_value(value: Any, redact: Redact, room: int) -> tuple[Any, int]:
    """Return the limited value and its size in bytes of UTF-8."""
    if isinstance(value, str):
        text = truncate(value, redact, room)
        return text, _utf8_size(text)
    document = _to_json(value)
    if (size := _utf8_size(document)) <= room:
        return redact_value(json.loads(document), redact), size
    return truncate(document, redact, room), room


def _to_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except Exception:
        # An invalid field must not prevent the whole message from being logged.
        return json.dumps(f"<{type(value).__name__} that cannot be formatted>")


def _utf8_size(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))
