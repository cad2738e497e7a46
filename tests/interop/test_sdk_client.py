"""The SDK's own client, unmodified and in its own process, with the real executable."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.interop import sdk_client
from tests.support.machine.programs import start_program
from tests.support.machine.running import Output, Server, run_server, with_free_port
from tests.support.sizes import size

from cogwork import __version__

RECONFIGURATIONS = size(ci=15, full=100)
READY, UNHEALTHY = 3, 5
RUNNING = 2


def component(subtype: str, name: str, needs: str = "", **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": f"rdk:component:{subtype}",
        "model": "fake",
        "attributes": attributes,
        "depends_on": needs.split(),
    }


@contextlib.asynccontextmanager
async def start_client(server: Server, what: str) -> AsyncIterator[Client]:
    async with start_program(sdk_client.__file__, server.port, what, says="^ready$") as started:
        yield Client(*started)


class Client:
    def __init__(self, process: asyncio.subprocess.Process, out: Output) -> None:
        self.process = process
        self.out = out

    async def report(self) -> Any:
        found = await self.out.wait_for("^report (.*)$", within=40)
        assert await self.process.wait() == 0, self.out.text
        return json.loads(found[1])

    async def finish(self) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return await self.report()

    def connections(self, port: int) -> set[int]:
        """Return the local ports of its connections."""
        return {
            connection.laddr.port
            for connection in psutil.Process(self.process.pid).net_connections("tcp")
            if connection.status == psutil.CONN_ESTABLISHED and connection.raddr.port == port
        }


async def test_client_can_call_everything(tmp_path: Path) -> None:
    config = {
        "revision": "r1",
        "components": [
            component(
                "sensor",
                "probe",
                readings={"celsius": 21.5, "on": True},
                faults=[{"from_call": 2, "calls": 1, "error": "the cable was pulled"}],
            ),
            component("motor", "wheel", max_rpm=1000),
            component(
                "board",
                "board",
                analogs=[{"name": "dial", "value": 5}],
                digital_interrupts=[{"name": "edge", "pin": "11"}],
            ),
            component("switch", "switch", labels=["off", "on"]),
            component("generic", "echo"),
            component("sensor", "dead", start={"error": "no such device"}),
            component("sensor", "orphan", "dead"),
        ],
        "services": [{"name": "echo", "api": "rdk:service:generic", "model": "fake"}],
    }
    async with run_server(config, tmp_path) as server:
        await server.wait_for_status(state="running")
        async with start_client(server, "drive") as sdk:
            seen = await sdk.report()
        # The client requested the shutdown.
        assert await server.exit_code() == 0
    assert "stopping: requested by ipv" in server.out.text
    assert "\tWARN\tsdk.client\t\ta word from the client" in server.out.text
    assert server.err.lines == []
    reason = "resource rdk:component:sensor/{} not available; reason={}"
    orphaned = 'depends on "dead", which is not ready: no such device'
    assert seen["names"] == [
        *("sensor/probe", "motor/wheel", "board/board", "switch/switch", "generic/echo"),
        *("sensor/dead", "sensor/orphan", "generic/echo", "motion/builtin"),
    ]
    assert seen["sensor"] == {
        "readings": {"celsius": 21.5, "on": True},
        "second reading": ["INTERNAL", "the cable was pulled"],
        "third reading": {"celsius": 21.5, "on": True},
        "status": {"calls": 3},
        "geometries": [],
        "command": seen["sensor"]["command"],
    }
    assert seen["sensor"]["command"][0] == "UNIMPLEMENTED"
    assert seen["motor"] == {
        "powered": [True, 0.5],
        "moving": [True, False],
        "positions": [pytest.approx(1), pytest.approx(-0.5)],
        "too fast": [
            "INVALID_ARGUMENT",
            'motor "wheel" turns at 1000 rpm at most, not at 100000',
        ],
        "reports position": True,
    }
    assert seen["board"] == {
        "analog": [5, 7],
        "pwm": [0.25, 50],
        "ticks": [True, True, True],
        "interrupts": seen["board"]["interrupts"],
        "power mode": "POWER_MODE_OFFLINE_DEEP",
        "missing": ["NOT_FOUND", 'board "board" has no analog "diel": did you mean "dial"?'],
    }
    assert seen["board"]["interrupts"] >= 1
    assert seen["switch"] == {
        "position": 1,
        "labels": [2, "off", "on"],
        "beyond": [
            "INVALID_ARGUMENT",
            'switch "switch" has the positions 0 to 1, not 9',
        ],
    }
    assert seen["generic component"] == seen["generic service"] == {"echo": True}
    assert seen["unhealthy"] == ["UNAVAILABLE", reason.format("dead", "no such device")]
    assert seen["its dependent"] == ["UNAVAILABLE", reason.format("orphan", orphaned)]
    machine = seen["machine"]
    assert (machine["state"], machine["revision"]) == (RUNNING, "r1")
    assert machine["resources"]["probe"] == [READY, ""]
    assert machine["resources"]["dead"] == [UNHEALTHY, "no such device"]
    assert machine["resources"]["orphan"] == [UNHEALTHY, orphaned]
    assert machine["version"] == ["rdk", f"cogwork-{__version__}"]
    assert machine["cloud"][0] == "FAILED_PRECONDITION"
    assert machine["models of modules"] == ["OK", "[]"]
    assert machine["loud"][0] == "INVALID_ARGUMENT"
    assert seen["operations"] == {
        "cancelled": ["CANCELLED", "operation <id> was cancelled"],
        "still moving": False,
        "blocked until": "OK",
        "stopped": ["CANCELLED", "cancelled, because everything was told to stop"],
        "left": [],
        "moving after all": False,
        "unknown": ["OK", "None"],
    }
    assert seen["modules of ours"] == []


def config_of_turn(turn: int) -> dict[str, Any]:
    """Change something in place every time, and in turn replace, add or break something."""
    stage, phase = divmod(turn, 5)
    readings: Any = 5 if phase == 2 else {"x": 1}
    guest = [component("sensor", "guest")] if phase != 3 else []
    return {
        "revision": str(turn),
        "components": [
            component("sensor", "steady", readings={"turn": turn}),
            component("motor", "wheel", max_rpm=100 + stage),
            component("motor", "arm", max_rpm=100 + (turn + 1) // 5),
            component("generic", "echo", "wheel"),
            component("sensor", "fragile", readings=readings),
            component(
                "board",
                "board",
                analogs=[{"name": "dial", "value": (turn + 3) // 5}],
                digital_interrupts=[{"name": "edge", "pin": "11"}],
            ),
            *guest,
        ],
    }


@pytest.mark.timeout(size(ci=240, full=600))
async def test_connection_survives_live_reconfigurations(tmp_path: Path) -> None:
    async with run_server(config_of_turn(0), tmp_path) as server:
        await server.wait_for_status(state="running", revision="0")
        async with start_client(server, "call") as sdk:
            (connection,) = sdk.connections(server.port)
            heartbeats: set[int] = set()
            descriptors = count_descriptors(server.pid)
            for turn in range(1, RECONFIGURATIONS + 1):
                server.save(with_free_port(config_of_turn(turn)))
                await server.wait_for_status(revision=str(turn))
                others = sdk.connections(server.port) - {connection}
                # Its heartbeats have their own connection from the first motion on.
                heartbeats = heartbeats or others
                assert sdk.connections(server.port) == {connection, *heartbeats}, sdk.out.text
                assert len(heartbeats) <= 1
            seen = await sdk.finish()
            assert count_descriptors(server.pid) <= descriptors
    print(f"\n{RECONFIGURATIONS} reconfigurations: {json.dumps(seen, indent=1)}")
    assert seen["complaints"] == []
    assert seen["last turn"] == RECONFIGURATIONS
    busy, unready, gone = (
        "UNAVAILABLE is being reconfigured; try again",
        "UNAVAILABLE not available; reason=",
        "NOT_FOUND no node found",
    )
    allowed = {
        "changed in place": [unready],
        "replaced, short calls": [busy, unready],
        "replaced, long calls": [busy, unready],
        "depends on a replaced one": [busy, unready],
        "added and removed": [busy, unready, gone],
        "broken and mended": [busy, unready],
        "streams": [busy, unready],
        "names": [],
    }
    expected = {f"{loop}: {error}" for loop, errors in allowed.items() for error in errors}
    assert set(seen["refused"]) <= expected
    assert set(seen["answered"]) == set(allowed) - {"replaced, long calls"}
    for must in (
        f"replaced, long calls: {busy}",
        f"added and removed: {gone}",
        f"broken and mended: {unready}",
    ):
        assert seen["refused"].get(must), f"never seen: {must}"
    assert seen["slowest"]["names"] - seen["lag"] < 1
    assert server.err.lines == []
    assert "Traceback" not in server.out.text


def count_descriptors(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))  # noqa: PTH208
