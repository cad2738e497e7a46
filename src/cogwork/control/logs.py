"""The last lines of the log over HTTP, as JSON lines; with `follow`, also those that come."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from cogwork.core.clock import Clock
from cogwork.logs.entry import as_json
from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern
from cogwork.logs.ring import Query, Ring

_LOOK = 0.2
"""Seconds between two looks for whoever follows."""


def read_query(asked: Mapping[str, str]) -> Query:
    """Raises ValueError with a sentence."""
    return Query(
        level=Level.parse(asked["level"]) if "level" in asked else 0,
        logger=Pattern.parse(asked["logger"]) if "logger" in asked else None,
        text=asked.get("text", ""),
        since=_seconds(asked["since"]) if "since" in asked else 0.0,
    )


async def log_lines(ring: Ring, query: Query, clock: Clock, *, follow: bool) -> AsyncIterator[str]:
    number, entries = ring.after(0, query)
    yield "".join(f"{as_json(entry)}\n" for entry in entries)
    while follow:
        await clock.sleep(_LOOK)
        number, entries = ring.after(number, query)
        if entries:
            yield "".join(f"{as_json(entry)}\n" for entry in entries)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'since is a number of seconds since 1970, not "{text}"') from None
