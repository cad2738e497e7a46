"""Log lines over HTTP: sent in small parts, with cheap followers."""

from __future__ import annotations

import asyncio
import json

import pytest

from cogwork.control.logs import parse_query, stream_log_lines
from cogwork.core.clock import ManualClock
from cogwork.core.limits.loop_throttle import LoopThrottle
from cogwork.logs.entry import Entry
from cogwork.logs.ring_buffer import RingBuffer, RingQuery


def fill(ring: RingBuffer, count: int, message: str = "line") -> None:
    for number in range(count):
        ring.put(Entry(float(number), 20, "rdk", "x.py:1", f"{message} {number}"))


async def test_lines_are_sent_in_small_parts() -> None:
    ring = RingBuffer()
    fill(ring, 5000)
    parts = [
        part
        async for part in stream_log_lines(
            ring, RingQuery(), ManualClock(), LoopThrottle(), follow=False
        )
    ]
    lines = "".join(parts).splitlines()
    assert [json.loads(line)["time"] for line in lines] == sorted(
        json.loads(line)["time"] for line in lines
    )
    assert len(lines) == 5000
    assert max(part.count("\n") for part in parts) <= 100


async def test_slow_client_skips_evicted_lines() -> None:
    ring = RingBuffer(lines=1000)
    fill(ring, 1000, "old")
    lines = stream_log_lines(ring, RingQuery(), ManualClock(), LoopThrottle(), follow=False)
    assert "old 0" in await anext(lines)
    fill(ring, 1000, "new")
    assert "new 0" in await anext(lines)
    await lines.aclose()  # type: ignore[attr-defined]


async def test_follower_checks_only_new_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    checked_entries = 0
    original_matches = RingQuery.matches

    def count(query: RingQuery, entry: Entry) -> bool:
        nonlocal checked_entries
        checked_entries += 1
        return original_matches(query, entry)

    monkeypatch.setattr(RingQuery, "matches", count)
    ring, clock = RingBuffer(), ManualClock()
    fill(ring, 5000)
    query = parse_query({"text": "news"})
    lines = stream_log_lines(ring, query, clock, LoopThrottle(), follow=True)
    following = asyncio.ensure_future(anext(lines))
    await clock.advance(60)
    assert checked_entries == 5000
    fill(ring, 3, "news")
    await clock.advance(0.3)
    assert (await following).count("\n") == 3
    assert checked_entries == 5003
    await lines.aclose()  # type: ignore[attr-defined]
