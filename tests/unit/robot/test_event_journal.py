"""The machine's story: on disk from one run to the next, bounded, without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock
from cogwork.graph.events import CallFailed, CallSlow, StateChanged
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Activity, State
from cogwork.robot.event_journal import MAX_CLIENTS_PER_MINUTE, EventJournal

BELT = ResourceName.parse("rdk:component:motor/belt")
GUARD = ResourceName.parse("rdk:component:sensor/guard")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def story_in(directory: Path, clock: ManualClock) -> EventJournal:
    return EventJournal(
        directory / "story" / "m.jsonl", clock, lambda text: text.replace("hunter2", "***")
    )


def test_it_is_kept_from_one_run_to_the_next(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.record("started", {"version": "1"})
    story.record_graph_event(
        StateChanged(BELT, State.CONFIGURING, State.UNHEALTHY, "the cable was pulled")
    )
    story.close()
    again = story_in(tmp_path, clock)
    again.record("started", {"version": "2"})
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
    story.record_graph_event(StateChanged(BELT, State.CONFIGURING, State.READY, None))
    story.record_graph_event(CallSlow(GUARD, Activity.BUILDING, 2.0))
    story.record_graph_event(CallFailed(BELT, Activity.CLOSING, "stuck"))
    story.close()
    assert [line["state"] for line in story.read("belt")] == ["ready", "closing failed"]
    assert [line["state"] for line in story.read(str(GUARD))] == ["still building"]
    assert story.read("nobody") == []


def test_secrets_are_masked(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.record_graph_event(
        StateChanged(BELT, State.READY, State.UNHEALTHY, "login hunter2 failed")
    )
    story.close()
    assert story.read()[0]["reason"] == "login *** failed"


async def test_a_flood_of_clients_does_not_wash_the_rest_away(
    tmp_path: Path, clock: ManualClock
) -> None:
    story = story_in(tmp_path, clock)
    for _ in range(1000):
        story.record_client("ipv4:127.0.0.1:50112", True)
    await clock.advance(60)
    story.record_client("ipv4:127.0.0.1:50112", False)
    story.close()
    told = story.read()
    assert len(told) == MAX_CLIENTS_PER_MINUTE + 1
    assert told[-1]["untold"] == 1000 - MAX_CLIENTS_PER_MINUTE
    assert told[-1]["state"] == "disconnected"


def test_it_is_bounded_and_the_newest_stays(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    for number in range(20_000):
        story.record("resource", {"resource": str(BELT), "number": number, "reason": "x" * 300})
    story.close()
    files = list((tmp_path / "story").iterdir())
    assert sum(file.stat().st_size for file in files) <= 4 << 20
    numbers = [line["number"] for line in story.read()]
    assert numbers == list(range(numbers[0], 20_000))
    assert len(numbers) > 5000


def test_a_torn_line_is_passed_over(tmp_path: Path, clock: ManualClock) -> None:
    story = story_in(tmp_path, clock)
    story.record("started", {})
    story.close()
    file = tmp_path / "story" / "m.jsonl"
    file.write_bytes(file.read_bytes() + b'{"time": "1970')
    again = story_in(tmp_path, clock)
    again.record("stopping", {})
    again.close()
    assert [line["event"] for line in again.read()] == ["started", "stopping"]


def test_a_line_that_another_program_wrote_is_passed_over(
    tmp_path: Path, clock: ManualClock
) -> None:
    story = story_in(tmp_path, clock)
    story.record("started", {})
    story.close()
    with (tmp_path / "story" / "m.jsonl").open("a") as file:
        file.write("[" * 100_000 + "\n5\nnull\n")
    assert [line["event"] for line in story.read()] == ["started"]


def test_no_more_is_read_than_fits(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.robot.event_journal._MAX_READ_BYTES", 10_000)
    story = story_in(tmp_path, clock)
    story.record("started", {})
    story.close()
    file = tmp_path / "story" / "m.jsonl"
    with file.open("a") as stream:
        for number in range(1000):
            stream.write(f'{{"event": "resource", "number": {number}}}\n')
    numbers = [line["number"] for line in story.read()]
    assert numbers == list(range(1000 - len(numbers), 1000))
    assert 200 < len(numbers) < 300
