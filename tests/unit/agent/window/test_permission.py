"""Whether an update may begin now: the calendar, in the time of the place, and the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import timedelta

import pytest
from tests.support.agent.scripted_server import ScriptedServer

from cogwork.agent.window.calendar import CalendarWindow
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import ManualClock

NIGHTS = CalendarWindow("0 2 * * *", timedelta(hours=1))
JANUARY_1 = 1_767_225_600.0
"""2026-01-01 00:00 in UTC."""
HOUR = 3600.0


class Machine:
    def __init__(self) -> None:
        self.clock = ManualClock(JANUARY_1)
        self.server = ScriptedServer(lambda: "1.0.0")

    async def find_denial(self, *windows: CalendarWindow) -> str | None:
        permission = UpdatePermission(self.server, self.server.probe, windows, self.clock)
        return await permission.find_denial()


@pytest.fixture
async def machine() -> Machine:
    made = Machine()
    await made.server.start()
    return made


@pytest.fixture
def set_zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "hour_in_utc"), [("UTC", 2), ("CET-1CEST", 1), ("EST5EDT", 7), ("IST-5:30", 20.5)]
)
async def test_window_is_in_local_time(
    machine: Machine, set_zone: pytest.MonkeyPatch, zone: str, hour_in_utc: float
) -> None:
    set_zone.setenv("TZ", zone)
    time.tzset()
    await machine.clock.advance(hour_in_utc * HOUR - 1)
    assert "the maintenance window opens at 2026-01-" in str(await machine.find_denial(NIGHTS))
    await machine.clock.advance(1)
    assert await machine.find_denial(NIGHTS) is None
    await machine.clock.advance(HOUR)
    assert await machine.find_denial(NIGHTS) is not None


async def test_machine_must_allow_it_too(machine: Machine) -> None:
    assert await machine.find_denial() is None
    machine.server.denial = "the arm moves"
    assert await machine.find_denial() == "the arm moves"


async def test_open_window_does_not_overrule_the_machine(machine: Machine) -> None:
    machine.server.denial = "the arm moves"
    always = CalendarWindow("* * * * *", timedelta(hours=1))
    assert await machine.find_denial(always) == "the arm moves"


async def test_machine_that_does_not_answer_is_not_interrupted(machine: Machine) -> None:
    machine.server.silent.add("1.0.0")
    assert await machine.find_denial() == "the server is not ready yet"


async def test_nothing_that_runs_needs_no_permission_but_the_window(machine: Machine) -> None:
    machine.server.denial = "the arm moves"
    await machine.server.stop()
    assert await machine.find_denial() is None
    rarely = CalendarWindow("0 0 29 2 *", timedelta(seconds=1))
    assert "opens at 2028-02-29 00:00" in str(await machine.find_denial(rarely))
