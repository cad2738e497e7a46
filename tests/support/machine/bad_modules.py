r"""A machine with misbehaving modules, in this process, to set its deadlines and find leftovers.

It is assembled as in server/serve.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import json
import os
import secrets
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import grpc.aio
import psutil
from tests.modules import make
from tests.support.machine import rogue
from tests.support.sizes import limit
from tests.support.waiting import poll

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import load
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import SystemClock
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.provider import Providers
from cogwork.logs.rules import LevelRules
from cogwork.modules.context import Deadlines, ModuleContext
from cogwork.modules.manager import ModuleManager
from cogwork.modules.parent_server import ParentServer
from cogwork.resource.machine_access import MachineAccess
from cogwork.resource.registry import Registry
from cogwork.resource.sdk import clean_import as sdk
from cogwork.robot.handler_table import build_handler_table
from cogwork.robot.machine import Machine
from cogwork.serving.socket_directory import private_directory
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.orphans import adopt_orphans, list_children
from cogwork.subprocesses.reaper import Reaper
from cogwork.wire.clients.channel import SdkChannel

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.generic.client import GenericClient  # noqa: E402
from viam.gen.robot.v1.robot_grpc import RobotServiceStub  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    GetMachineStatusRequest,
    GetMachineStatusResponse,
    ModuleStatus,
    ResourceStatus,
)

Config = dict[str, Any]

DEADLINE = 60.0
SOON = limit(1.0)
"""Seconds within which the end of a process is to be noticed."""
MIB = 1 << 20
MARK = "COGWORK_TEST_HOUSE"

SHORT = Deadlines(start=3.0, validate=1.5, add=1.5, remove=1.5, probe=0.2)
NO_PAUSE = RetryPolicy(0.0, 0.0)
READY, UNHEALTHY = 3, 4
"""As ModuleStatus numbers them."""


def rogue_module(
    directory: Path, name: str, words: str = "", model: str | None = None, **env: str
) -> Config:
    """Return an entry for `modules`; its model is `acme:<name>:thing`."""
    file = make.executable(directory, Path(rogue.__file__), "rogue", options=("-I", "-S", "-E"))
    env = {"ROGUE": words, "MODEL": model or f"acme:{name}:thing", **env}
    return {"name": name, "type": "local", "executable_path": str(file), "env": env}


def bad_module(directory: Path, name: str, mode: str, **env: str) -> Config:
    """Return an entry for a module that uses the SDK; its model is `acme:bad:thing`."""
    file = make.sdk_module(directory, "bad")
    return {
        "name": name,
        "type": "local",
        "executable_path": str(file),
        "env": {"MODE": mode, **env},
    }


def thing(name: str, model: str, *needs: str, **attributes: Any) -> Config:
    return {
        "name": name,
        "api": "rdk:component:generic",
        "model": model,
        "attributes": attributes,
        "depends_on": list(needs),
    }


def config(modules: Sequence[Config], components: Sequence[Config]) -> Config:
    return {"modules": list(modules), "components": list(components)}


class ModuleMachine:
    """The machine as its clients and modules see it, over the socket for modules."""

    def __init__(self, directory: Path, deadlines: Deadlines, pauses: RetryPolicy, sockets: Path):
        self.events: deque[Mapping[str, Any]] = deque(maxlen=100)
        self.mark = secrets.token_hex(8)
        self._home = directory / "home"
        machine_access = MachineAccess()
        self._registry = Registry(builtin_models(machine_access))
        providers = Providers({"built in": self._registry})
        clock = SystemClock()
        self._sockets = sockets
        self._parent = ParentServer(sockets)
        self._programs = ProgramHost(clock, Reaper())
        self.modules = ModuleManager(
            ModuleContext(
                self._programs,
                sockets,
                self._parent.open_socket,
                self._home,
                {**os.environ, MARK: self.mark},
                LevelRules,
                providers.notify_changed,
                lambda event, details: self.events.append({"event": event, **details}),
                self._registry.has,
                deadlines=deadlines,
                retry=pauses,
            )
        )
        providers.add("modules", self.modules)
        self.machine = Machine(providers, clock, observe=lambda _: None, modules=self.modules)
        self.machine.bind(machine_access)
        self._table = build_handler_table(self.machine, clock, lambda _: None)
        self._carrier: grpc.aio.Channel | None = None
        self._open = contextlib.ExitStack()

    async def start(self) -> None:
        await self._parent.start(self._table)
        address = self._open.enter_context(self._parent.open_socket("visitor", self._sockets))
        self._carrier = grpc.aio.insecure_channel(f"unix:{address}")

    async def aclose(self) -> list[Any]:
        unfinished = await self.machine.aclose(DEADLINE)
        await self.modules.aclose()
        await self._programs.aclose()
        if self._carrier is not None:
            await self._carrier.close()
        self._open.close()
        await self._parent.aclose()
        return unfinished

    def apply(self, wanted: Config) -> asyncio.Future[Any]:
        loaded = load(json.dumps(wanted), LoadContext(self._registry, self._home, os.environ))
        assert not loaded.has_errors, loaded.diagnostics
        self.modules.apply(loaded.result.config.modules)
        return self.machine.apply(loaded)

    @property
    def channel(self) -> Any:
        return SdkChannel(self._carrier)  # type: ignore[arg-type]

    def thing(self, name: str) -> GenericClient:
        return GenericClient(name, self.channel)

    async def status(self) -> GetMachineStatusResponse:
        return await machine_status(self.channel)

    async def module(self, name: str) -> ModuleStatus:
        return module_in(await self.status(), name)

    async def resource(self, name: str) -> ResourceStatus:
        return resource_in(await self.status(), name)

    async def wait_until(
        self, wanted: Callable[[GetMachineStatusResponse], bool], within: float = DEADLINE
    ) -> float:
        """Return the seconds until the status is as wanted."""
        return await wait_until(self.channel, wanted, within)


async def machine_status(channel: Any) -> GetMachineStatusResponse:
    answer: GetMachineStatusResponse = await RobotServiceStub(channel).GetMachineStatus(
        GetMachineStatusRequest(), timeout=DEADLINE
    )
    return answer


async def wait_until(
    channel: Any, wanted: Callable[[GetMachineStatusResponse], bool], within: float = DEADLINE
) -> float:
    """Return the seconds until the status is as wanted."""
    began = time.monotonic()
    await poll(partial(machine_status, channel), wanted, within)
    return time.monotonic() - began


def module_in(status: GetMachineStatusResponse, name: str) -> ModuleStatus:
    return next(each for each in status.modules if each.module_name == name)


def resource_in(status: GetMachineStatusResponse, name: str) -> ResourceStatus:
    return next(each for each in status.resources if each.name.name == name)


def ready(*names: str) -> Callable[[GetMachineStatusResponse], bool]:
    """Return a condition: these resources, or all of them, are ready."""

    def are_ready(status: GetMachineStatusResponse) -> bool:
        wanted = names or [each.name.name for each in status.resources]
        states = {each.name.name: each.state for each in status.resources}
        return all(states.get(name) == ResourceStatus.STATE_READY for name in wanted)

    return are_ready


def unhealthy(name: str, words: str = "") -> Callable[[GetMachineStatusResponse], bool]:
    """Return a condition: the module or resource is unhealthy for a reason with these words."""

    def is_unhealthy(status: GetMachineStatusResponse) -> bool:
        module = [
            each.state == ModuleStatus.STATE_UNHEALTHY and words in each.error
            for each in status.modules
            if each.module_name == name
        ]
        resource = [
            each.state == ResourceStatus.STATE_UNHEALTHY and words in each.error
            for each in status.resources
            if each.name.name == name
        ]
        return any(module + resource)

    return is_unhealthy


@contextlib.asynccontextmanager
async def run_module_machine(
    directory: Path, deadlines: Deadlines = SHORT, pauses: RetryPolicy = NO_PAUSE
) -> AsyncIterator[ModuleMachine]:
    """Run a machine, and check that nothing of its modules is left when it is closed."""
    assert adopt_orphans()
    try:
        with private_directory() as sockets:
            house = ModuleMachine(directory, deadlines, pauses, sockets)
            await house.start()
            try:
                yield house
            finally:
                await house.aclose()
                assert_nothing_is_left(house.mark)
            assert not list(sockets.glob("*-*.sock")), "a socket is left"
    finally:
        adopt_orphans(False)


def find_marked(mark: str) -> list[int]:
    """Return the ids of all descendants of its modules, whatever process has adopted them."""
    numbers = [int(each.name) for each in Path("/proc").glob("[0-9]*")]
    return [pid for pid in numbers if mark.encode() in environment_of(pid)]


def environment_of(pid: int) -> bytes:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def zombies(pid: int) -> list[int]:
    with contextlib.suppress(psutil.NoSuchProcess):
        return [
            each.pid
            for each in psutil.Process(pid).children(recursive=True)
            if each.status() == psutil.STATUS_ZOMBIE
        ]
    return []


def assert_nothing_is_left(mark: str) -> None:
    assert not find_marked(mark), f"strays: {find_marked(mark)}"
    assert not set(list_children()), f"children: {set(list_children())}"


@dataclass(frozen=True)
class Size:
    """Resources that a process uses."""

    mib: float
    descriptors: int
    threads: int
    tasks: int

    def is_flat_since(self, before: Size) -> bool:
        """Compare, with an allowance for a start in progress."""
        return (
            self.mib - before.mib < 5
            and self.descriptors <= before.descriptors + 8
            and self.threads <= before.threads + 2
            and self.tasks <= before.tasks + 6
        )

    def __str__(self) -> str:
        return (
            f"{self.mib:.1f} MiB, {self.descriptors} descriptors, {self.threads} threads, "
            f"{self.tasks} tasks"
        )


def own_size() -> Size:
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    me = psutil.Process()
    return Size(
        me.memory_info().rss / MIB, me.num_fds(), me.num_threads(), len(asyncio.all_tasks())
    )
