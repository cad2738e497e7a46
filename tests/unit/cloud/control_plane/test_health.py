"""What is wrong with a cloud, and tasks that go on whatever is wrong."""

from __future__ import annotations

import asyncio
import logging

import pytest

from cogwork.cloud.control_plane.health import CloudHealth, StoreState
from cogwork.cloud.control_plane.periodic_task import PeriodicTask, PeriodicTasks
from cogwork.cloud.storage.records import RecordsUnavailable
from cogwork.core.clock import ManualClock


async def test_worst_problem_decides() -> None:
    health = CloudHealth(ManualClock())
    assert (health.state, health.is_serving) == (StoreState.OK, True)
    health.report("disk", StoreState.DEGRADED, "disk low")
    assert (health.state, health.is_serving) == (StoreState.DEGRADED, True)
    health.report("records", StoreState.FAILING, "disk full")
    assert (health.state, health.is_serving) == (StoreState.FAILING, False)
    assert health.as_json() == {
        "status": "failing",
        "problems": [
            {"component": "disk", "status": "degraded", "reason": "disk low", "seconds": 0},
            {"component": "records", "status": "failing", "reason": "disk full", "seconds": 0},
        ],
    }
    health.recover("records")
    health.recover("disk")
    assert health.as_json() == {"status": "ok", "problems": []}


async def test_problem_is_logged_once_and_its_end_with_its_duration(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock = ManualClock()
    health = CloudHealth(clock)
    for _ in range(3):
        health.report("disk", StoreState.DEGRADED, "disk low")
        await clock.advance(30)
    health.report("disk", StoreState.FAILING, "disk full")
    health.recover("disk")
    health.recover("disk")
    assert [record.message for record in caplog.records] == [
        'the health of "disk" is degraded: disk low',
        'the health of "disk" is failing: disk full',
        'the health of "disk" is ok again after 1m30s',
    ]


async def test_problem_that_is_not_repeated_ends() -> None:
    clock = ManualClock()
    health = CloudHealth(clock)
    health.report("packages", StoreState.FAILING, "full", lasts=60)
    states = []
    for seconds in (59, 1):
        await clock.advance(seconds)
        states.append(health.state)
    assert states == [StoreState.FAILING, StoreState.OK]


async def test_change_wakes_those_who_wait() -> None:
    health = CloudHealth(ManualClock())
    change = health.change()
    assert health.change() is change
    health.report("disk", StoreState.DEGRADED, "disk low")
    assert change.done()
    assert not health.change().done()


async def test_task_survives_errors_and_reports_them_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock, runs = ManualClock(), 0
    health = CloudHealth(clock)

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs in (2, 3, 4):
            raise RecordsUnavailable("the disk is full")
        if runs == 6:
            raise ZeroDivisionError("a mistake")

    tasks = PeriodicTasks(clock, health)
    tasks.start(PeriodicTask("saving", work, 30.0))
    await clock.advance(61)
    assert runs == 3
    assert health.as_json()["problems"][0]["reason"] == "the disk is full; it is tried again"
    await clock.advance(60)
    assert (runs, health.state) == (5, StoreState.OK)
    await clock.advance(60)
    assert (runs, health.state) == (7, StoreState.OK)
    await tasks.aclose()
    assert len(asyncio.all_tasks()) == 1
    assert [record.message for record in caplog.records] == [
        'the health of "saving" is degraded: the disk is full; it is tried again',
        'the health of "saving" is ok again after 1m30s',
        "saving failed unexpectedly",
        'the health of "saving" is degraded: a mistake; it is tried again',
        'the health of "saving" is ok again after 30s',
    ]
