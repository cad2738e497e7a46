"""The conversion of a log line to a message for the cloud."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from typing import Final

from viam.gen.common.v1.common_pb2 import LogEntry

from cogwork.logs.entry import Entry, level_name

_HOST: Final = socket.gethostname()


def to_log_message(entry: Entry) -> LogEntry:
    file, _, line = entry.place.rpartition(":")
    message = LogEntry(
        host=_HOST,
        level=level_name(entry.level).lower(),
        logger_name=entry.logger,
        message=entry.message,
        stack=entry.trace or "",
    )
    message.time.FromMicroseconds(int(entry.time * 1e6))
    message.caller.update({"File": file or entry.place, "Line": int(line) if line.isdigit() else 0})
    for key, value in entry.fields.items():
        message.fields.add().update({key: value if _is_plain(value) else _to_text(value)})
    return message


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _to_text(value: object) -> str:
    is_nested = isinstance(value, Mapping | list)
    return json.dumps(value, ensure_ascii=False, default=str) if is_nested else str(value)
