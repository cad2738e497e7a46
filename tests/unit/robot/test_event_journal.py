"""The event journal: persistent, bounded and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock
from cogwork.graph.events import CallFailed, CallSlow, StateChanged
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Activity, NodeState
from cogwork.robot.event_journal import MAX_CLIENTS_PER_MINUTE, EventJournal

BELT = ResourceName.parse("rdk:component:motor/belt")
GUARD = ResourceName.parse("rdk:component:sensor/guard")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def open_journal(directory: Path, clock: ManualClock) -> EventJournal:
    return EventJournal(
        directory / "journal" / "m.jsonl", clock, lambda text: text.replace("hunter2", "***")
    )


def test_events_persist_across_runs(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.record("started", {"version": "1"})
    journal.record_graph_event(
        StateChanged(BELT, NodeState.CONFIGURING, NodeState.UNHEALTHY, "the cable was pulled")
    )
    journal.close()
    again = open_journal(tmp_path, clock)
    again.record("started", {"version": "2"})
    again.close()
    events = again.read()
    assert [line["event"] for line in events] == ["started", "resource", "started"]
    assert events[1] == {
        "time": "1970-01-12T13:46:40.000Z",
        "event": "resource",
        "resource": "rdk:component:motor/belt",
        "state": "unhealthy",
        "reason": "the cable was pulled",
    }


def test_read_filters_by_resource(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.record_graph_event(StateChanged(BELT, NodeState.CONFIGURING, NodeState.READY, None))
    journal.record_graph_event(CallSlow(GUARD, Activity.BUILDING, 2.0))
    journal.record_graph_event(CallFailed(BELT, Activity.CLOSING, "stuck"))
    journal.close()
    assert [line["state"] for line in journal.read("belt")] == ["ready", "closing failed"]
    assert [line["state"] for line in journal.read(str(GUARD))] == ["still building"]
    assert journal.read("nobody") == []


def test_secrets_are_masked(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.record_graph_event(
        StateChanged(BELT, NodeState.READY, NodeState.UNHEALTHY, "login hunter2 failed")
    )
    journal.close()
    assert journal.read()[0]["reason"] == "login *** failed"


async def test_client_events_per_minute_are_limited(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    for _ in range(1000):
        journal.record_client("ipv4:127.0.0.1:50112", True)
    await clock.advance(60)
    journal.record_client("ipv4:127.0.0.1:50112", False)
    journal.close()
    events = journal.read()
    assert len(events) == MAX_CLIENTS_PER_MINUTE + 1
    assert events[-1]["untold"] == 1000 - MAX_CLIENTS_PER_MINUTE
    assert events[-1]["state"] == "disconnected"


def test_journal_is_bounded_and_keeps_the_newest(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    for number in range(20_000):
        journal.record("resource", {"resource": str(BELT), "number": number, "reason": "x" * 300})
    journal.close()
    files = list((tmp_path / "journal").iterdir())
    assert sum(file.stat().st_size for file in files) <= 4 << 20
    numbers = [line["number"] for line in journal.read()]
    assert numbers == list(range(numbers[0], 20_000))
    assert len(numbers) > 5000


def test_torn_line_is_skipped(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.record("started", {})
    journal.close()
    file = tmp_path / "journal" / "m.jsonl"
    file.write_bytes(file.read_bytes() + b'{"time": "1970')
    again = open_journal(tmp_path, clock)
    again.record("stopping", {})
    again.close()
    assert [line["event"] for line in again.read()] == ["started", "stopping"]


def test_invalid_lines_are_skipped(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.record("started", {})
    journal.close()
    with (tmp_path / "journal" / "m.jsonl").open("a") as file:
        file.write("[" * 100_000 + "\n5\nnull\n")
    assert [line["event"] for line in journal.read()] == ["started"]


def test_read_is_limited_in_bytes(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.robot.event_journal._MAX_READ_BYTES", 10_000)
    journal = open_journal(tmp_path, clock)
    journal.record("started", {})
    journal.close()
    file = tmp_path / "journal" / "m.jsonl"
    with file.open("a") as stream:
        for number in range(1000):
            stream.write(f'{{"event": "resource", "number": {number}}}\n')
    numbers = [line["number"] for line in journal.read()]
    assert numbers == list(range(1000 - len(numbers), 1000))
    assert 200 < len(numbers) < 300


def test_latest_records_are_all_records_backwards(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "journal" / "m.jsonl"
    journal = open_journal(tmp_path, clock)
    for number in range(9000):  # more than one file, and many blocks of each
        journal.record("resource", {"resource": f"rdk:component:motor/{number}", "n": "é" * 90})
    journal.close()
    with file.open("ab") as stream:
        stream.write(b'{"cut off": \nnothing\n[1]\n\xff\n{"event": "last"}')
    records = list(journal.iter_records())
    assert len(list(file.parent.iterdir())) > 1
    assert records[-1][1] == {"event": "last"}
    assert list(journal.iter_latest_records()) == records[::-1]


def test_latest_records_read_only_the_end(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    for number in range(5000):
        journal.record("resource", {"n": number})
    journal.close()
    latest = journal.iter_latest_records()
    assert next(latest)[1]["n"] == 4999
    # Most of the file may disappear now without changing what was read.
    file = tmp_path / "journal" / "m.jsonl"
    file.write_bytes(b"")
    assert 0 < len(list(latest)) < 2000


def test_empty_journal_has_no_latest_records(tmp_path: Path, clock: ManualClock) -> None:
    journal = open_journal(tmp_path, clock)
    journal.close()
    assert list(journal.iter_latest_records()) == []
