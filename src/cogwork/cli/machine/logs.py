"""`cogwork logs`: show the latest lines of a machine's log and follow new ones."""

from __future__ import annotations

import argparse
import contextlib
import json
import time
from datetime import datetime
from typing import Any

from cogwork.cli.client.another_make import report_no_log
from cogwork.cli.client.http_client import Declined, NotCogwork, Unreachable, stream_log_lines
from cogwork.cli.terminal import EXIT_OK, EXIT_USAGE, paint, print_error
from cogwork.core import duration
from cogwork.core.escape import escape, escape_json, escape_lines

_STYLES = {"error": "red", "critical": "red", "warn": "yellow", "debug": "dim"}


def logs(arguments: argparse.Namespace) -> int:
    try:
        query = _build_query(arguments)
    except ValueError as error:
        print_error(str(error))
        return EXIT_USAGE
    try:
        for line in stream_log_lines(arguments.address, query):
            text = escape_json(line) if arguments.json else format_entry(json.loads(line))
            print(text, flush=True)
    except NotCogwork as error:
        return report_no_log(arguments.address, error)
    except (Unreachable, Declined) as error:
        print_error(str(error))
        return EXIT_USAGE
    return EXIT_OK


def _build_query(arguments: argparse.Namespace) -> dict[str, str]:
    query = {
        name: value
        for name in ("level", "logger", "text")
        if (value := getattr(arguments, name)) is not None
    }
    if arguments.since is not None:
        query["since"] = str(parse_time(arguments.since, time.time()))
    if arguments.follow:
        query["follow"] = "1"
    return query


def parse_time(text: str, now: float) -> float:
    """Parse a point in time, `2026-11-15T14:02`, or an age, `10m`."""
    with contextlib.suppress(ValueError):
        return now - duration.parse(text)
    with contextlib.suppress(ValueError):
        return datetime.fromisoformat(text).timestamp()
    raise ValueError(f'invalid time "{text}"; expected an age such as 10m, or 2026-11-15T14:02')


def format_entry(entry: dict[str, Any]) -> str:
    """Format an entry as one line; the lines of its traceback are indented below."""
    time, level, logger, message = map(
        escape, (entry["time"], entry["level"], entry["logger"], entry["message"])
    )
    head = f"{time}  {level.upper():8}  {logger}  "
    place = f"{escape(entry['place'])}  " if entry.get("place") else ""
    more = json.dumps(entry["fields"], ensure_ascii=False) if entry.get("fields") else ""
    fields = f"  {escape(more)}" if more else ""
    trace = f"\n{escape_lines(entry['trace'])}" if entry.get("trace") else ""
    style = _STYLES.get(level)
    return f"{paint(head, style) if style else head}{place}{message}{fields}{trace}"
