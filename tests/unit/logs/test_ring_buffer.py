"""The last lines in memory, and who asks for which of them."""

from __future__ import annotations

import logging

from cogwork.logs.entry import Entry
from cogwork.logs.pattern import Pattern
from cogwork.logs.ring_buffer import LogQuery, RingBuffer, estimate_size


def filled() -> RingBuffer:
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


def found(query: LogQuery) -> list[str]:
    return [entry.message for entry in filled().read_after(0, query)[1]]


def test_the_oldest_give_way() -> None:
    assert found(LogQuery()) == ["Read the file", "a client left", "it is wrong"]


def test_bytes_are_bounded_whatever_the_lines_hold() -> None:
    ring = RingBuffer(size=1 << 20)
    wide = "\N{PILE OF POO}" * 8000
    for number in range(200):
        entry = Entry(float(number), logging.INFO, "rdk", "", f"{number}{wide}", {"a": [wide]})
        ring.put(entry)
    kept = ring.read_after(0, LogQuery())[1]
    assert 1 <= len(kept) <= 16
    assert kept[-1].time == 199.0
    assert sum(map(estimate_size, kept)) == ring._size <= 1 << 20


def test_what_is_asked_for() -> None:
    assert found(LogQuery(level=logging.WARNING)) == ["a client left", "it is wrong"]
    assert found(LogQuery(logger=Pattern.parse("rdk.c*"))) == ["Read the file", "it is wrong"]
    assert found(LogQuery(text="read THE")) == ["Read the file"]
    assert found(LogQuery(since=2.0)) == ["a client left", "it is wrong"]


def test_what_came_since_the_last_look() -> None:
    ring = filled()
    number, _ = ring.read_after(0, LogQuery())
    assert ring.read_after(number, LogQuery()) == (number, [])
    ring.put(Entry(9.0, logging.INFO, "rdk", "", "news"))
    later, news = ring.read_after(number, LogQuery())
    assert [entry.message for entry in news] == ["news"]
    assert later == number + 1
    assert RingBuffer().read_after(7, LogQuery()) == (7, [])


def test_a_few_lines_at_a_time() -> None:
    ring = RingBuffer(lines=10)
    for number in range(25):
        ring.put(Entry(float(number), logging.INFO, "rdk", "", str(number)))
    looked, seen = 0, list[str]()
    for _ in range(4):
        looked, entries = ring.read_after(looked, LogQuery(), limit=4)
        seen += [entry.message for entry in entries]
    assert seen == [str(number) for number in range(15, 25)]
    assert looked == 25
    assert ring.read_after(15, LogQuery(text="nothing"), limit=4) == (19, [])
