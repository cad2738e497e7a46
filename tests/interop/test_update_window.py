"""Whether an update may begin, asked of a real server with every kind of maintenance sensor."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.sizes import limit

from cogwork.agent.supervision.probe import ServerProbe
from cogwork.agent.window.calendar import CalendarWindow
from cogwork.agent.window.permission import UpdatePermission
from cogwork.core.clock import SystemClock

pytestmark = pytest.mark.asyncio(loop_scope="module")

MAINTENANCE = {
    "sensor_name": "rdk:component:sensor/safe",
    "maintenance_allowed_key": "idle",
}
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


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    directory = tmp_path_factory.mktemp("server")
    environment = {"COGWORK_SERVING_FILE": str(directory / "serving.json")}
    async with run_server({}, directory, environment=environment) as running:
        await running.out.wait_for("applied in")
        yield running


@pytest.fixture
def probe(server: Server) -> ServerProbe:
    return ServerProbe(server.file.with_name("serving.json"))


async def apply(server: Server, component: dict[str, Any] | None) -> None:
    """Let the server of all tests run with this sensor, which is not the one that it has."""
    since = len(server.out.lines)
    server.save(with_free_port(machine(component)))
    await server.out.wait_for("applied in", since)


@pytest.mark.parametrize("kind", SENSORS)
async def test_only_a_fresh_true_allows_an_update(
    server: Server, probe: ServerProbe, kind: str
) -> None:
    component, expected = SENSORS[kind]
    await apply(server, component)
    permission = UpdatePermission(RunningServer(server), probe, (), SystemClock())
    began = time.monotonic()
    denial = await permission.find_denial()
    print(f"{kind}: {denial}, after {time.monotonic() - began:.2f} s")
    assert time.monotonic() - began < limit(6)
    assert (denial is None) is (expected is None)
    assert expected is None or expected in str(denial)


async def test_flapping_sensor_is_asked_each_time_and_changes_apply_at_once(
    server: Server, probe: ServerProbe
) -> None:
    permission = UpdatePermission(RunningServer(server), probe, (ALWAYS,), SystemClock())
    await apply(server, sensor({}))
    for is_idle in (True, False) * 3:
        # The window never delays a configuration change.
        await apply(server, sensor({"idle": is_idle}))
        deadline = time.monotonic() + limit(5)
        while (await permission.find_denial() is None) is not is_idle:
            assert time.monotonic() < deadline
