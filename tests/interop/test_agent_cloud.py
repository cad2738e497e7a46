"""An agent whose updates come from a real cloud."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent.agent_machine import SERVER, AgentMachine, install_first_version
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.sizes import limit
from tests.support.waiting import poll

from cogwork.agent.slots.state import load_state
from cogwork.cloud.control_plane.cloud_directory import CloudDirectory
from cogwork.cloud.storage.sqlite_records import read_records
from cogwork.cloud.updates.rollout_status import read_status


class UpdatingCloud(CloudProcess):
    async def roll_out(self, version: str, *options: str) -> None:
        arguments = ("release", "rollout", "stable", "server", version, "--stages", "100")
        await self.command(*arguments, *options)

    async def wait_for_count(self, key: str, count: int) -> Any:
        """Return the state of the newest rollout once it counts so many machines."""

        # As `release status` does, which takes half a second to start.
        async def ask() -> Any:
            return read_records(CloudDirectory(self.directory).records, read_status)[0].as_json()

        return await poll(ask, lambda found: found[key] == count, limit(30))


@pytest.fixture(scope="module")
def first_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_first_version(tmp_path_factory.mktemp("first"))


@pytest.fixture
async def machine(first_version: Path, tmp_path: Path) -> AsyncIterator[AgentMachine]:
    machine = AgentMachine(tmp_path)
    machine.install(first_version)
    del machine.settings["updates"]
    yield machine
    machine.end_server()


async def test_machine_follows_a_rollout_and_reports(machine: AgentMachine, tmp_path: Path) -> None:
    cloud = UpdatingCloud(tmp_path / "cloud")
    await cloud.initialize()
    for version, start in (("2.0.0", ""), ("3.0.0", "raise SystemExit(7)")):
        archive = machine.releases.make_server(version, at_start=start)
        await cloud.command("release", "add", str(archive))
    await cloud.roll_out("2.0.0")
    async with cloud.serve(), machine.run() as agent:
        # A machine that has not joined yet runs what it has.
        await agent.err.wait_for("names no cloud|cannot be read")
        await machine.wait_for_version("1.0.0")
        await cloud.join(Path(machine.settings["config"]))
        await machine.wait_for_version("2.0.0")
        await machine.wait_for_phase("current", "2.0.0")
        await cloud.wait_for_count("updated", 1)
        await cloud.command("release", "rollout", "stable", "server", "3.0.0", "--stages", "100")
        await machine.wait_for_phase("failed", "3.0.0", 60)
        await machine.wait_for_version("2.0.0")
        status = await cloud.wait_for_count("failed", 1)
        assert "exit code 7" in json.dumps(status)
    assert load_state(machine.layout.state)[SERVER].last_good == "2.0.0"


async def test_version_on_trial_does_not_count_as_updated(
    machine: AgentMachine, tmp_path: Path
) -> None:
    cloud = UpdatingCloud(tmp_path / "cloud")
    await cloud.initialize()
    await cloud.command("release", "add", str(machine.releases.make_server("2.0.0")))
    await cloud.roll_out("2.0.0")
    machine.settings["probe_interval"] = 5
    async with cloud.serve():
        await cloud.join(Path(machine.settings["config"]))
        async with machine.run() as agent:
            await machine.wait_for_version("2.0.0")
            agent.signal(signal.SIGKILL)
            await agent.exit_code()
        machine.layout.progress.unlink()
        async with machine.run():
            # Written after the agent has told the cloud what it has.
            await machine.wait_for_phase("switching", "2.0.0")
            assert (await cloud.wait_for_count("waiting", 1))["updated"] == 0
            await machine.wait_for_phase("current", "2.0.0")
            await cloud.wait_for_count("updated", 1)
