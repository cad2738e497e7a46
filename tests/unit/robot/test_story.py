"""The machine's story: on disk from one run to the next, bounded, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock
from cogwork.graph.events import Slow, StateChanged, Trouble
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Doing, State
from cogwork.robot.story import CLIENTS_A_MINUTE, Story

BELT = ResourceName.parse("rdk:component:motor/belt")
GUARD = ResourceName.parse("rdk:component:sensor/guard")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def story_in(directory: Path, clock: ManualClock) -> Story:
    return Story(
        directory / "story" / "m.jsonl", clock, lambda text: text.replace("hunter2", "***")
    )


def test_it_is_kept_from_one_run_to_the_next(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.tell("started", {"version": "1"})
    story.observe(StateChanged(BELT, State.CONFIGURING, State.UNHEALTHY, "the cable was pulled"))
    story.close()
    again = story_in(tmp_path, clock)
    again.tell("started", {"version": "2"})
    again.close()
    told = again.read()
    assert [line["event"] for line in told] == ["started", "resource", "started"]
    assert told[1] == {
        "time": "1970-01-12T13:46:40.000Z",
        "event": "resource",
        "resource": "rdk:component:motor/belt",
        "state": "unhealthy",
        "reason": "the cable was pulled",
    }


def test_of_one_resource(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.observe(StateChanged(BELT, State.CONFIGURING, State.READY, None))
    story.observe(Slow(GUARD, Doing.BUILDING, 2.0))
    story.observe(Trouble(BELT, Doing.CLOSING, "stuck"))
    story.close()
    assert [line["state"] for line in story.read("belt")] == ["ready", "closing failed"]
    assert [line["state"] for line in story.read(str(GUARD))] == ["still building"]
    assert story.read("nobody") == []


def test_secrets_are_masked(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.observe(StateChanged(BELT, State.READY, State.UNHEALTHY, "login hunter2 failed"))
    story.close()
    assert story.read()[0]["reason"] == "login *** failed"


async def test_a_flood_of_clients_does_not_wash_the_rest_away(
    tmp_path: Path, clock: ManualClock
) -> None:
    story = story_in(tmp_path, clock)
    for _ in range(1000):
        story.client("ipv4:127.0.0.1:50112", True)
    await clock.advance(60)
    story.client("ipv4:127.0.0.1:50112", False)
    story.close()
    told = story.read()
    assert len(told) == CLIENTS_A_MINUTE + 1
    assert told[-1]["untold"] == 1000 - CLIENTS_A_MINUTE
    assert told[-1]["state"] == "disconnected"


def test_it_is_bounded_and_the_newest_stays(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    for number in range(20_000):
        story.tell("resource", {"resource": str(BELT), "number": number, "reason": "x" * 300})
    story.close()
    files = list((tmp_path / "story").iterdir())
    assert sum(file.stat().st_size for file in files) <= 4 << 20
    numbers = [line["number"] for line in story.read()]
    assert numbers == list(range(numbers[0], 20_000))
    assert len(numbers) > 5000


def test_a_torn_line_is_passed_over(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.tell("started", {})
    story.close()
    file = tmp_path / "story" / "m.jsonl"
    file.write_bytes(file.read_bytes() + b'{"time": "1970')
    again = story_in(tmp_path, clock)
    again.tell("stopping", {})
    again.close()
    assert [line["event"] for line in again.read()] == ["started", "stopping"]
