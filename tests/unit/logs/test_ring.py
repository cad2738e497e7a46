"""The last lines in memory, and who asks for which of them."""

from __future__ import annotations

import logging

from cogwork.logs.entry import Entry
from cogwork.logs.pattern import Pattern
from cogwork.logs.ring import Query, Ring


def filled() -> Ring:
    ring = Ring(lines=3)
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


def found(query: Query) -> list[str]:
    return [entry.message for entry in filled().after(0, query)[1]]


def test_the_oldest_give_way() -> None:
    assert found(Query()) == ["Read the file", "a client left", "it is wrong"]


def test_what_is_asked_for() -> None:
    assert found(Query(level=logging.WARNING)) == ["a client left", "it is wrong"]
    assert found(Query(logger=Pattern.parse("rdk.c*"))) == ["Read the file", "it is wrong"]
    assert found(Query(text="read THE")) == ["Read the file"]
    assert found(Query(since=2.0)) == ["a client left", "it is wrong"]


def test_what_came_since_the_last_look() -> None:
    ring = filled()
    number, _ = ring.after(0, Query())
    assert ring.after(number, Query()) == (number, [])
    ring.put(Entry(9.0, logging.INFO, "rdk", "", "news"))
    later, news = ring.after(number, Query())
    assert [entry.message for entry in news] == ["news"]
    assert later == number + 1
    assert Ring().after(7, Query()) == (7, [])
