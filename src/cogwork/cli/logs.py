"""`cogwork logs`: the last lines of a running machine's log, and those that come."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from datetime import datetime
from typing import Any

from cogwork.cli.reach import Declined, Unreachable, log_lines
from cogwork.cli.terminal import FINE, USAGE, complain, paint
from cogwork.config.diagnose import printable
from cogwork.core import duration

_STYLES = {"error": "red", "critical": "red", "warn": "yellow", "debug": "dim"}


def logs(arguments: argparse.Namespace) -> int:
    try:
        query = _query(arguments)
    except ValueError as error:
        complain(str(error))
        return USAGE
    try:
        with contextlib.suppress(KeyboardInterrupt):
            for line in log_lines(arguments.address, query):
                print(line if arguments.json else shown(json.loads(line)), flush=True)
    except (Unreachable, Declined) as error:
        complain(str(error))
        return USAGE
    return FINE


def _query(arguments: argparse.Namespace) -> dict[str, str]:
    query = {
        name: value
        for name in ("level", "logger", "text")
        if (value := getattr(arguments, name)) is not None
    }
    if arguments.since is not None:
        query["since"] = str(_moment(arguments.since, time.time()))
    if arguments.follow:
        query["follow"] = "1"
    return query


def _moment(text: str, now: float) -> float:
    """A time, or how long ago: `2026-11-15T14:02`, `10m`."""
    with contextlib.suppress(ValueError):
        return now - duration.parse(text)
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    raise ValueError(f'"{text}" is no time; write how long ago, as 10m, or 2026-11-15T14:02')


def shown(entry: dict[str, Any]) -> str:
    level = entry["level"]
    head = f"{entry['time']}  {level.upper():8}  {entry['logger']}  "
    texts = [entry["message"], entry["trace"]] if entry.get("trace") else [entry["message"]]
    lines = "\n".join(printable(line) for text in texts for line in text.split("\n"))
    style = _STYLES.get(level)
    return f"{paint(head, style) if style else head}{lines}"
