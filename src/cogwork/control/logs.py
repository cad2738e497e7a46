"""The latest log lines over HTTP, as JSON Lines. With `follow`, the response continues with new
lines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

from cogwork.core.clock import Clock
from cogwork.core.limits.loop_throttle import LoopThrottle
from cogwork.logs.entry import Entry, as_json
from cogwork.logs.levels import Level
from cogwork.logs.pattern import Pattern
from cogwork.logs.ring_buffer import RingBuffer, RingQuery

_POLL_INTERVAL = 0.2
"""Seconds between two polls for new lines."""
_BATCH = 100
"""Lines that are filtered before other tasks of the event loop can run."""
_CHUNK_SIZE = 16 * 1024
"""Characters per chunk."""


def parse_query(params: Mapping[str, str]) -> RingQuery:
    """Parse the query parameters of a request. Raise ValueError if one is invalid."""
    return RingQuery(
        level=Level.parse(params["level"]) if "level" in params else 0,
        logger=Pattern.parse(params["logger"]) if "logger" in params else None,
        text=params.get("text", ""),
        since=_parse_seconds(params["since"]) if "since" in params else 0.0,
    )


async def stream_log_lines(
    ring: RingBuffer, query: RingQuery, clock: Clock, throttle: LoopThrottle, *, follow: bool
) -> AsyncIterator[str]:
    """Yield lines in small chunks. Buffer no lines for a slow client."""
    number = 0
    while True:
        await throttle.acquire()
        last, entries = ring.read_after(number, query, _BATCH)
        for chunk in _join_chunks(entries):
            yield chunk
        if last != number:
            number = last
        elif follow:
            await clock.sleep(_POLL_INTERVAL)
        else:
            return


def _join_chunks(entries: Iterable[Entry]) -> Iterator[str]:
    """Join lines into chunks that a slow client can read within the timeout."""
    lines: list[str] = []
    size = 0
    for entry in entries:
        lines.append(f"{as_json(entry)}\n")
        size += len(lines[-1])
        if size >= _CHUNK_SIZE:
            yield "".join(lines)
            lines, size = [], 0
    if lines:
        yield "".join(lines)


def _parse_seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f'"since" must be a number of seconds since 1970, not "{text}"') from None
