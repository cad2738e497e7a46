"""A machine with modules, for tests: short configurations, and clients of its resources."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest
from grpclib.client import Channel
from tests.modules import make
from tests.modules.node.install import NoNode
from tests.support.machine.running import DEADLINE, Config, Server, run_server, with_free_port
from tests.support.waiting import poll as poll
from tests.support.waiting import run_others

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.motor.client import MotorClient  # noqa: E402
from viam.components.sensor.client import SensorClient  # noqa: E402
from viam.gen.robot.v1.robot_grpc import RobotServiceStub  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    GetMachineStatusRequest,
    ModuleStatus,
    RestartModuleRequest,
)

T = TypeVar("T")
HOST = "127.0.0.1"
READY = ModuleStatus.STATE_READY
UNHEALTHY = ModuleStatus.STATE_UNHEALTHY


def module(name: str, executable: Path, **settings: Any) -> dict[str, Any]:
    return {"name": name, "executable_path": str(executable), **settings}


def component(name: str, subtype: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": f"rdk:component:{subtype}",
        "model": model,
        "attributes": attributes,
    }


def service(name: str, api: str, model: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "api": api, "model": model, "attributes": attributes}


def motor(name: str, **attributes: Any) -> dict[str, Any]:
    return component(name, "motor", "acme:test:motor", **attributes)


def sensor(name: str, **readings: Any) -> dict[str, Any]:
    return component(name, "sensor", "acme:test:sensor", readings=readings)


def board(name: str = "board") -> dict[str, Any]:
    return component(name, "board", "fake")


def node_module(directory: Path) -> Path:
    try:
        return make.node_module(directory)
    except NoNode as error:
        pytest.skip(str(error))


@dataclass
class RunningMachine:
    """The machine as its clients see it."""

    server: Server
    channel: Channel
    config: dict[str, Any]
    """As it was last saved."""

    @property
    def robot(self) -> Any:
        return RobotServiceStub(self.channel)

    def motor(self, name: str) -> Any:
        """Return an untyped client: commands are any JSON."""
        return MotorClient(name, self.channel)

    def sensor(self, name: str) -> Any:
        return SensorClient(name, self.channel)

    async def command(self, name: str, verb: str, value: Any = True) -> Any:
        """Send one of the commands of a motor in a module."""
        return (await self.motor(name).do_command({verb: value}))[verb]

    async def pid_of(self, name: str) -> int:
        """Return the id of the process that provides the motor."""
        return int((await self.command(name, "about"))["pid"])

    async def modules(self) -> dict[str, ModuleStatus]:
        status = await self.robot.GetMachineStatus(GetMachineStatusRequest(), timeout=DEADLINE)
        return {each.module_name: each for each in status.modules}

    async def wait_for_module(self, name: str, state: int = READY) -> ModuleStatus:
        found = await poll(
            lambda: self._module(name), lambda found: found is not None and found.state == state
        )
        assert found is not None
        return found

    async def restart(self, name: str = "", module_id: str = "") -> None:
        request = (
            RestartModuleRequest(module_id=module_id)
            if module_id
            else RestartModuleRequest(module_name=name)
        )
        await self.robot.RestartModule(request)

    async def resources(self) -> dict[str, Any]:
        """Return the resources by their short names."""
        return {each["name"].rpartition("/")[2]: each for each in (await self.view())["resources"]}

    async def view(self) -> Any:
        """Return `/status.json`, by a numeric address, which takes no thread to resolve."""
        return json.loads((await self.server.get("/status.json", HOST))[1])

    async def wait_for(self, name: str, when: Callable[[Any], bool]) -> Any:
        """Wait until the condition holds for the resource, and return it."""
        try:
            return await poll(
                lambda: self._resource(name), lambda found: found is not None and when(found)
            )
        except pytest.fail.Exception as error:
            pytest.fail(f"{name}: {error}\n{self.server.output}")

    async def wait_until_ready(self, *names: str) -> None:
        """Wait for the named resources, or for all of them."""
        await poll(self.view, lambda view: view["state"] == "running")
        for name in names or await self.resources():
            await self.wait_for(name, lambda found: found["state"] == "ready")

    async def wait_until_unhealthy(self, name: str, words: str = "") -> str:
        """Return the reason."""
        found = await self.wait_for(
            name, lambda found: found["state"] == "unhealthy" and words in (found["reason"] or "")
        )
        return str(found["reason"])

    async def wait_until_gone(self, name: str) -> None:
        await poll(self.resources, lambda found: name not in found)

    def save(self, config: Mapping[str, Any]) -> None:
        """Save the configuration without waiting."""
        self.config = dict(config)
        self.server.save(with_free_port(config))

    async def apply(self, config: Mapping[str, Any]) -> None:
        """Save the configuration and wait until it is applied completely."""
        since = len(self.server.out.lines)
        self.save(config)
        await self.server.out.wait_for("configuration .* applied in", since=since)

    async def cli(self, *arguments: str) -> tuple[int, str]:
        """Run `cogwork` in a child process and return its exit code and output."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "cogwork.cli.main", *arguments),
            *("--address", f"localhost:{self.server.port}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            env={**os.environ, "NO_COLOR": "1"},
        )
        async with asyncio.timeout(DEADLINE):
            said, _ = await process.communicate()
        # Its transport closes its pipes one iteration of the loop later.
        await run_others()
        return process.returncode or 0, said.decode()

    async def _module(self, name: str) -> ModuleStatus | None:
        return (await self.modules()).get(name)

    async def _resource(self, name: str) -> Any:
        return (await self.resources()).get(name)


@contextlib.asynccontextmanager
async def run_machine(
    config: Config, directory: Path, environment: Mapping[str, str] | None = None
) -> AsyncIterator[RunningMachine]:
    async with run_server(config, directory, environment=environment) as server:
        channel = Channel(HOST, server.port)
        try:
            yield RunningMachine(server, channel, dict(config))
        finally:
            channel.close()


def resident_mb(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
