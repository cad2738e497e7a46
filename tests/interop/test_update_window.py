"""Whether an update may begin, asked of a real server with every kind of maintenance sensor."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.running import Server, run_server
from tests.support.sizes import limit

from cogwork.agent.supervision.probe import ServerProbe
from cogwork.agent.window.calendar import CalendarWindow
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import SystemClock

MAINTENANCE = {
    "sensor_name": "rdk:component:sensor/safe",
    "maintenance_allowed_key": "idle",
}
RARELY = CalendarWindow("0 0 29 2 *", timedelta(seconds=1))
ALWAYS = CalendarWindow("* * * * *", timedelta(hours=1))


class RunningServer:
    """The part of a server process that a permission needs."""

    def __init__(self, server: Server) -> None:
        self.process_id = server.pid

    async def start(self) -> None: ...

    async def stop(self, timeout: float | None = None) -> None: ...

    async def wait(self) -> str:
        raise AssertionError


def machine(sensor: dict[str, Any] | None) -> dict[str, Any]:
    components = [] if sensor is None else [sensor]
    return {"components": components, "maintenance": MAINTENANCE}


def sensor(readings: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    return {
        "name": "safe",
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": {"readings": readings, **attributes},
    }


SENSORS: dict[str, tuple[dict[str, Any] | None, str | None]] = {
    "true": (sensor({"idle": True}), None),
    "false": (sensor({"idle": False}), "is false"),
    "missing": (None, "no node found"),
    "no such reading": (sensor({"busy": True}), 'has no reading "idle"'),
    "wrong type": (sensor({"idle": "yes"}), "must be true or false"),
    "a number": (sensor({"idle": 1}), "must be true or false"),
    "failing": (sensor({"idle": True}, faults=[{"error": "no contact"}]), "no contact"),
    "hanging": (sensor({"idle": True}, faults=[{"delay": "10m"}]), "did not answer within 5s"),
}


@pytest.mark.parametrize("kind", SENSORS)
async def test_only_a_fresh_true_allows_an_update(tmp_path: Path, kind: str) -> None:
    component, expected = SENSORS[kind]
    serving = tmp_path / "serving.json"
    environment = {"COGWORK_SERVING_FILE": str(serving)}
    async with run_server(machine(component), tmp_path, environment=environment) as server:
        await server.wait_for_status(state="running")
        permission = UpdatePermission(
            RunningServer(server), ServerProbe(serving), (), SystemClock()
        )
        began = time.monotonic()
        denial = await permission.find_denial()
        print(f"{kind}: {denial}, after {time.monotonic() - began:.2f} s")
        assert time.monotonic() - began < limit(6)
        assert (denial is None) is (expected is None)
        assert expected is None or expected in str(denial)


async def test_flapping_sensor_is_asked_each_time_and_changes_apply_at_once(
    tmp_path: Path,
) -> None:
    serving = tmp_path / "serving.json"
    environment = {"COGWORK_SERVING_FILE": str(serving)}
    async with run_server(
        machine(sensor({"idle": False})), tmp_path, environment=environment
    ) as server:
        await server.wait_for_status(state="running")
        permission = UpdatePermission(
            RunningServer(server), ServerProbe(serving), (ALWAYS,), SystemClock()
        )
        for is_idle in (True, False) * 3:
            # The window never delays a configuration change.
            since = len(server.out.lines)
            server.save(machine(sensor({"idle": is_idle})))
            await server.out.wait_for("applied in", since=since)
            deadline = time.monotonic() + limit(5)
            while (await permission.find_denial() is None) is not is_idle:
                assert time.monotonic() < deadline


async def test_calendar_and_sensor_must_both_allow(tmp_path: Path) -> None:
    serving = tmp_path / "serving.json"
    environment = {"COGWORK_SERVING_FILE": str(serving)}
    async with run_server(
        machine(sensor({"idle": True})), tmp_path, environment=environment
    ) as server:
        await server.wait_for_status(state="running")
        running, probe = RunningServer(server), ServerProbe(serving)
        for windows, is_allowed in (
            ((ALWAYS,), True),
            ((RARELY,), False),
            ((RARELY, ALWAYS), True),
        ):
            permission = UpdatePermission(running, probe, windows, SystemClock())
            assert (await permission.find_denial() is None) is is_allowed
