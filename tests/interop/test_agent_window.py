"""An agent with a real server: updates wait for the window, and nothing else does."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.interop.test_update_window import SENSORS, machine, sensor
from tests.support.agent.agent_machine import SERVER, AgentMachine
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import start_server
from tests.support.sizes import FULL, limit
from tests.support.waiting import poll, wait_until
from viam.app.app_client import AppClient

from cogwork import __version__
from cogwork.core.files import atomic

COGWORK = (sys.executable, "-m", "cogwork.cli.main")
NEW = "99.0.0"
NETWORK = {"network": {"bind_address": "localhost:0"}}
RESTARTED = re.compile("stopping: someone asked for a restart.*is running", re.DOTALL)
NEVER = {"start": "0 0 29 2 *", "duration": "1s"}
DENIED = machine(sensor({"idle": False}))
ALLOWED = machine(sensor({"idle": True}))


class WindowMachine(AgentMachine):
    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.install_real_server()
        self.releases.make_server(NEW)
        self.offer(NEW)
        self.save(DENIED)
        # With the default of a minute, the agent asks every four seconds.
        self.settings["check_interval"] = 60.0 if FULL else 0.5

    def save(self, config: dict[str, Any]) -> None:
        atomic.write(Path(self.settings["config"]), json.dumps(config | NETWORK).encode())

    async def status(self) -> dict[str, Any]:
        """Return what `cogwork status` shows."""
        url = json.loads(self.layout.serving.read_bytes())["url"]
        arguments = ["status", "--json", "--address", url.removeprefix("http://")]
        async with start_server(arguments, program=COGWORK) as process:
            await process.exit_code()
            found: dict[str, Any] = json.loads(process.out.text)
            return found

    async def wait_for_reason(self, text: str) -> dict[str, Any]:
        return await poll(
            lambda: self.wait_for_phase("waiting", NEW),
            lambda found: text in found["detail"],
            limit(30),
        )


@pytest.fixture
async def waiting(tmp_path: Path) -> AsyncIterator[WindowMachine]:
    machine = WindowMachine(tmp_path)
    yield machine
    machine.end_server()


async def test_update_waits_for_every_kind_of_sensor(waiting: WindowMachine) -> None:
    others = [each for each in SENSORS.items() if each[0] not in ("true", "false", "a number")]
    async with waiting.run() as agent:
        since = (await waiting.wait_for_reason("is false"))["since"]
        for kind, (component, expected) in others:
            saved = time.time()
            waiting.save(machine(component))
            found = await waiting.wait_for_reason(str(expected))
            took = time.time() - saved
            view = await waiting.status()
            # The change did not wait: it was applied at once.
            applied = view["applied_at"] - saved
            print(f"{kind}: applied after {applied:.2f} s, reason after {took:.2f} s")
            assert applied < limit(3)
            assert found["since"] == since
            (update,) = view["updates"]
            assert expected in update["detail"]
            assert update["since"] == since
            await agent.err.wait_for(f"server {NEW} is waiting: .*{expected}")
            assert waiting.layout.current_version(SERVER) == __version__
        saved = time.time()
        waiting.save(ALLOWED)
        await waiting.wait_for_phase("switching", NEW)
        print(f"allowed after {time.time() - saved:.2f} s")
        await waiting.wait_for_version(NEW)


async def test_person_restarts_a_machine_whose_update_waits(
    waiting: WindowMachine, tmp_path: Path
) -> None:
    """Also, the cloud says what the update waits for."""
    cloud = CloudProcess(tmp_path / "cloud")
    await cloud.initialize()
    del waiting.settings["updates"]
    await cloud.command("release", "add", str(waiting.releases.make_server(NEW)))
    await cloud.command("release", "rollout", "stable", "server", NEW, "--stages", "100")
    async with cloud.serve():
        part, secret = await cloud.create_machine("press")
        client = await cloud.client().connect()
        app = client.app_client
        await app.update_robot_part(part, "press", DENIED | NETWORK)
        credentials = {"id": part, "secret": secret, "app_address": f"http://{cloud.address}"}
        waiting.save({"cloud": credentials})
        await restart_while_it_waits(waiting, cloud, app, part)
        client.close()


async def restart_while_it_waits(
    waiting: WindowMachine, cloud: CloudProcess, app: AppClient, part: str
) -> None:
    async with waiting.run():
        since = (await waiting.wait_for_reason("is false"))["since"]
        (rollout,) = json.loads(await cloud.command("release", "status", "--json"))
        (report,) = rollout["waiting_parts"]
        assert "is false" in report["reason"]
        await app.mark_part_for_restart(part)
        log = waiting.layout.root / "server.out"
        await wait_until(lambda: RESTARTED.search(log.read_text()), limit(30))
        assert (await waiting.wait_for_reason("is false"))["since"] == since
        assert waiting.layout.current_version(SERVER) == __version__
