"""The ring buffer of the last log lines, and queries on it."""

from __future__ import annotations

import logging

from cogwork.logs.entry import Entry
from cogwork.logs.pattern import Pattern
from cogwork.logs.ring_buffer import RingBuffer, RingQuery, estimate_size


def filled_buffer() -> RingBuffer:
    ring = RingBuffer(lines=3)
    for number, (level, logger, message) in enumerate(
        [
            (logging.ERROR, "rdk", "forgotten"),
            (logging.INFO, "rdk.config", "Read the file"),
            (logging.WARNING, "rdk.networking", "a client left"),
            (logging.ERROR, "rdk.config", "it is wrong"),
        ]
    ):
        ring.put(Entry(float(number), level, logger, "", message))
    return ring


def query_messages(query: RingQuery) -> list[str]:
    return [entry.message for entry in filled_buffer().read_after(0, query)[1]]


def test_oldest_lines_are_evicted() -> None:
    assert query_messages(RingQuery()) == ["Read the file", "a client left", "it is wrong"]


def test_size_in_bytes_is_bounded() -> None:
    ring = RingBuffer(size=1 << 20)
    wide = "\N{PILE OF POO}" * 8000
    for number in range(200):
        entry = Entry(float(number), logging.INFO, "rdk", "", f"{number}{wide}", {"a": [wide]})
        ring.put(entry)
    kept = ring.read_after(0, RingQuery())[1]
    assert 1 <= len(kept) <= 16
    assert kept[-1].time == 199.0
    assert sum(map(estimate_size, kept)) == ring._size <= 1 << 20


def test_query_filters_by_level_logger_text_and_time() -> None:
    assert query_messages(RingQuery(level=logging.WARNING)) == ["a client left", "it is wrong"]
    assert query_messages(RingQuery(logger=Pattern.parse("rdk.c*"))) == [
        "Read the file",
        "it is wrong",
    ]
    assert query_messages(RingQuery(text="read THE")) == ["Read the file"]
    assert query_messages(RingQuery(since=2.0)) == ["a client left", "it is wrong"]


def test_read_after_returns_only_new_lines() -> None:
    ring = filled_buffer()
    number, _ = ring.read_after(0, RingQuery())
    assert ring.read_after(number, RingQuery()) == (number, [])
    ring.put(Entry(9.0, logging.INFO, "rdk", "", "news"))
    later, news = ring.read_after(number, RingQuery())
    assert [entry.message for entry in news] == ["news"]
    assert later == number + 1
    assert RingBuffer().read_after(7, RingQuery()) == (7, [])


def test_read_after_limits_the_number_of_lines() -> None:
    ring = RingBuffer(lines=10)
    for number in range(25):
        ring.put(Entry(float(number), logging.INFO, "rdk", "", str(number)))
    position, seen = 0, list[str]()
    for _ in range(4):
        position, entries = ring.read_after(position, RingQuery(), limit=4)
        seen += [entry.message for entry in entries]
    assert seen == [str(number) for number in range(15, 25)]
    assert position == 25
    assert ring.read_after(15, RingQuery(text="nothing"), limit=4) == (19, [])
