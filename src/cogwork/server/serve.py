"""From a configuration file to a machine that serves, and back."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from cogwork import __version__
from cogwork.config.follow import Follower
from cogwork.config.last_good import last_good_for
from cogwork.config.load import Loaded
from cogwork.config.schema import MachineConfig
from cogwork.config.sources import FileSource
from cogwork.config.surroundings import Surroundings
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.core.home import cogwork_home
from cogwork.drivers.table import builtin_models
from cogwork.graph.provider import Providers
from cogwork.graph.reconcile import Outcome
from cogwork.resource.registry import Registry, plugged_in
from cogwork.robot.machine import Machine
from cogwork.robot.table import handler_table
from cogwork.server.address import listen_on, serving_line
from cogwork.server.listeners import Listeners
from cogwork.server.process import show_stacks_on_signal
from cogwork.server.sockets import private_directory
from cogwork.server.stop import Stop
from cogwork.wire.http1 import Application

BUDGET = 45.0
"""Seconds that all resources together get to close."""

FINE = 0
FAILURE = 1

_log = logging.getLogger("rdk")


class NothingToRun(CogworkError):
    """There is no configuration at all."""


async def serve(config_file: Path, clock: Clock, say: Callable[[str], None]) -> int:
    """Until somebody asks it to stop. Returns the exit code."""
    stop = Stop()
    stop.on_signals()
    show_stacks_on_signal()
    with private_directory() as directory:
        server = _Server(config_file, clock, directory, stop, say)
        try:
            await server.start()
        except CogworkError as error:
            _log.error("%s", error)
            stop.fail("it could not start")
        _log.info("stopping: %s", await stop.asked)
        unfinished = await server.aclose()
    stop.over()
    for name in unfinished:
        _log.error("%s did not close in time", name)
    return FAILURE if stop.failed or unfinished else FINE


class _Server:
    def __init__(
        self,
        config_file: Path,
        clock: Clock,
        directory: Path,
        stop: Stop,
        say: Callable[[str], None],
    ) -> None:
        registry = Registry([*builtin_models(), *plugged_in()])
        home = cogwork_home(os.environ)
        self._file = config_file
        self._stop = stop
        self._say = say
        self._machine = machine = Machine(Providers({"built in": registry}), clock)
        self._listeners = Listeners(
            handler_table(machine, clock, stop.ask), lambda: _application(machine, clock), directory
        )
        self._follower = Follower(
            FileSource(config_file, clock),
            Surroundings(registry, home, os.environ),
            self._apply,
            last_good_for(home, config_file),
        )
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """It answers before anything is built: clients see a machine that is initializing."""
        first = await self._follower.first()
        if first is None and not self._file.exists():
            raise NothingToRun(f"there is no {self._file}; check the path given by -config")
        listen = listen_on(
            first.checked.config if first is not None else MachineConfig.model_construct()
        )
        await self._listeners.start(listen)
        _log.info("cogwork-server %s runs %s", __version__, self._file)
        self._say(serving_line(self._listeners.addresses, listen.public))
        self._own(self._machine.operations.watch(), "operations")
        self._own(self._follower.run(), "configuration")

    async def aclose(self) -> list[Any]:
        """Returns what did not close in time."""
        self._listeners.refuse_newcomers()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._follower.aclose()
        unfinished = await self._machine.aclose(BUDGET)
        await self._listeners.aclose()
        return unfinished

    def _apply(self, loaded: Loaded) -> asyncio.Future[Outcome]:
        self._own(self._listeners.change(listen_on(loaded.checked.config)), "network")
        return self._machine.apply(loaded)

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("%s stopped working", task.get_name(), exc_info=error)
            self._stop.fail(f"{task.get_name()} stopped working")


def _application(machine: Machine, clock: Clock) -> Application:
    from cogwork.control.http import application

    return application(machine, clock)
