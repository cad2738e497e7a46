"""Items that are started, replaced and stopped as their configurations say."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from tests.support.waiting import run_others

from cogwork.core.supervised_set import SupervisedSet


@dataclass(frozen=True)
class Config:
    speed: int
    label: str = ""


class Item:
    def __init__(self, config: Config, events: list[str]) -> None:
        self.config = config
        self.may_stop = asyncio.Event()
        self.error: Exception | None = None
        self._events = events

    def start(self) -> None:
        self._events.append(f"start {self.config.speed}")

    async def stop(self) -> None:
        self._events.append(f"stop {self.config.speed}")
        await self.may_stop.wait()
        if self.error is not None:
            raise self.error


class Line:
    """A set of items, and what has happened to them."""

    def __init__(self, *, one_at_a_time: bool = True) -> None:
        self.events: list[str] = []
        self.made: list[Item] = []
        self.items: SupervisedSet[Config, Item] = SupervisedSet(
            "motor",
            self._make,
            lambda config: config.speed,
            logging.getLogger("test"),
            one_at_a_time=one_at_a_time,
        )

    def _make(self, config: Config) -> Item:
        item = Item(config, self.events)
        self.made.append(item)
        return item

    async def apply(self, **speeds: int) -> None:
        self.items.apply({name: Config(speed) for name, speed in speeds.items()})
        await run_others(5)

    async def let_stop(self, number: int, error: Exception | None = None) -> None:
        self.made[number].error = error
        self.made[number].may_stop.set()
        await run_others(5)

    async def aclose(self) -> None:
        self.items.stop_all()
        for item in self.made:
            item.may_stop.set()
        await asyncio.gather(*self.items.stopping, return_exceptions=True)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    line = Line()
    yield line
    await line.aclose()


async def test_items_follow_the_configuration(line: Line) -> None:
    await line.apply(a=1, b=2)
    await line.apply(c=3, b=2)
    assert line.events == ["start 1", "start 2", "start 3", "stop 1"]
    assert list(line.items.by_name) == ["c", "b"]
    assert list(line.items.stopping.values()) == [line.made[0]]
    await line.let_stop(0)
    assert not line.items.stopping


async def test_item_keeps_running_with_settings_that_need_no_other(line: Line) -> None:
    await line.apply(a=1)
    line.items.apply({"a": Config(1, "left")})
    assert line.items.by_name["a"].config.label == "left"
    assert line.events == ["start 1"]


async def test_changed_item_starts_when_the_former_has_stopped(line: Line) -> None:
    await line.apply(a=1)
    await line.apply(a=2)
    assert line.events == ["start 1", "stop 1"]
    await line.let_stop(0)
    assert line.events == ["start 1", "stop 1", "start 2"]


async def test_item_that_is_replaced_before_its_start_never_starts(line: Line) -> None:
    await line.apply(a=1)
    await line.apply(a=2)
    await line.apply(a=3)
    assert len(line.items.stopping) == 2
    await line.let_stop(1)
    await line.let_stop(0)
    assert line.events == ["start 1", "stop 1", "stop 2", "start 3"]


async def test_items_may_overlap() -> None:
    line = Line(one_at_a_time=False)
    await line.apply(a=1)
    await line.apply(a=2)
    await line.apply()
    assert line.events == ["start 1", "start 2", "stop 1", "stop 2"]
    await line.aclose()


async def test_item_that_cannot_be_stopped_is_logged(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    await line.apply(a=1)
    await line.apply(a=2)
    await line.let_stop(0, ValueError("it is stuck"))
    assert caplog.messages == ["motor a could not be stopped: it is stuck"]
    assert line.events[-1] == "start 2"


async def test_all_may_be_stopped_in_another_way(line: Line) -> None:
    async def kill(item: Item) -> None:
        line.events.append(f"kill {item.config.speed}")

    await line.apply(a=1, b=2)
    line.items.stop_all(kill)
    await asyncio.gather(*line.items.stopping)
    assert line.events[-2:] == ["kill 1", "kill 2"]
    assert not line.items.by_name
