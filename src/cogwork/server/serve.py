"""From a configuration file to a machine that serves, and back."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
from collections.abc import Collection, Coroutine
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
from cogwork.graph.events import Event, Observer, log_event
from cogwork.graph.limits import Limits
from cogwork.graph.provider import Providers
from cogwork.graph.reconcile import Applied, Outcome
from cogwork.logs.ring import Ring
from cogwork.modules.ground import Deadlines, Ground, deadlines_in
from cogwork.modules.modules import Modules, trusted_namespaces
from cogwork.modules.orphans import end_children
from cogwork.modules.parent import Parent
from cogwork.resource.neighbours import Neighbours
from cogwork.resource.registry import Registry, plugged_in
from cogwork.robot.changes import Changes, changed
from cogwork.robot.machine import Machine
from cogwork.robot.story import Story
from cogwork.robot.table import handler_table
from cogwork.server.address import listen_on, serving_line
from cogwork.server.listeners import Listeners
from cogwork.server.log import ServerLog
from cogwork.server.process import show_stacks_on_signal
from cogwork.server.sockets import private_directory, remove
from cogwork.server.stop import Stop
from cogwork.wire.http1 import Application

BUDGET = 45.0
"""Seconds that all resources together get to close."""
_SLACK = 5.0
"""Seconds that the graph waits longer for a resource than for the module that makes it."""

FINE = 0
FAILURE = 1

_log = logging.getLogger("rdk")


class NothingToRun(CogworkError):
    """There is no configuration at all."""


async def serve(config_file: Path, clock: Clock, log: ServerLog, *, untrusted: bool = False) -> int:
    """Until somebody asks it to stop. Returns the exit code. `untrusted`: whoever configures the
    machine may not run programs of theirs here."""
    stop = Stop()
    stop.on_signals()
    show_stacks_on_signal()
    with private_directory() as directory:
        stop.even_at_once(lambda: remove(directory))
        stop.even_at_once(end_children)
        server = _Server(config_file, clock, directory, stop, log, untrusted=untrusted)
        try:
            await server.start()
        except CogworkError as error:
            _log.error("%s", error)
            stop.fail("it could not start")
        reason = await stop.asked
        _log.info("stopping: %s", reason)
        unfinished = await server.aclose(reason)
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
        log: ServerLog,
        *,
        untrusted: bool,
    ) -> None:
        neighbours = Neighbours()
        registry = Registry([*builtin_models(neighbours, untrusted=untrusted), *plugged_in()])
        home = cogwork_home(os.environ)
        self._file = config_file
        self._stop = stop
        self._server_log = log
        self._story = story = Story(_story_file(home, config_file), clock, log.pipeline.masked)
        providers = Providers({"built in": registry})
        deadlines = deadlines_in(os.environ)
        self._machine = machine = Machine(
            providers,
            clock,
            limits=_limits(deadlines),
            observe=_both(log_event, story.observe),
        )
        machine.introduce(neighbours)
        table = handler_table(machine, clock, stop.ask)
        self._parent = Parent(table, directory)
        self._modules = Modules(
            Ground(
                clock,
                directory,
                self._parent.address,
                home,
                os.environ,
                log.rules,
                providers.changed,
                story.tell,
                registry.has,
                log.provided,
                deadlines=deadlines,
            ),
            trusted_namespaces(os.environ) if untrusted else None,
        )
        providers.add("modules", self._modules)
        machine.guests = self._modules
        self._listeners = Listeners(
            table,
            lambda: _application(machine, clock, log.ring, story),
            directory,
            story.client,
        )
        self._follower = Follower(
            FileSource(config_file, clock),
            Surroundings(registry, home, os.environ),
            self._apply,
            last_good_for(home, config_file),
        )
        self._running: Loaded | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """It answers before anything is built: clients see a machine that is initializing."""
        first = await self._follower.first()
        if first is None and not self._file.exists():
            raise NothingToRun(f"there is no {self._file}; check the path given by -config")
        listen = listen_on(
            first.checked.config if first is not None else MachineConfig.model_construct()
        )
        await self._parent.start()
        await self._listeners.start(listen)
        _log.info("cogwork-server %s runs %s", __version__, self._file)
        self._story.tell("started", {"version": __version__, "file": str(self._file)})
        self._server_log.say(serving_line(self._listeners.addresses, listen.public))
        self._own(self._machine.operations.watch(), "operations")
        self._own(self._machine.sessions.watch(), "sessions")
        self._own(self._server_log.pipeline.watch(), "log")
        self._own(self._follower.run(), "configuration")
        # What is there by now stays: no collection of garbage needs to look through it.
        gc.collect()
        gc.freeze()

    async def aclose(self, reason: str) -> list[Any]:
        """Returns what did not close in time."""
        self._story.tell("stopping", {"reason": reason})
        self._listeners.refuse_newcomers()
        # A client may fall silent while the machine closes: whoever watches for that goes last.
        watching = {task for task in self._tasks if task.get_name() == "sessions"}
        await _cancelled(self._tasks - watching)
        await self._follower.aclose()
        unfinished: list[Any] = await self._machine.aclose(BUDGET)
        await _cancelled(watching)
        unfinished += await self._modules.aclose()
        await self._parent.aclose()
        await self._listeners.aclose()
        self._story.tell("stopped", {"unfinished": [str(name) for name in unfinished]})
        self._story.close()
        return unfinished

    def _apply(self, loaded: Loaded) -> asyncio.Future[Outcome]:
        changes = changed(self._running, loaded)
        self._running = loaded
        self._server_log.apply(loaded)
        self._own(self._listeners.change(listen_on(loaded.checked.config)), "network")
        self._modules.apply(loaded.checked.config.modules)
        outcome = self._machine.apply(loaded)
        outcome.add_done_callback(lambda done: self._tell_applied(done, changes))
        return outcome

    def _tell_applied(self, outcome: asyncio.Future[Outcome], changes: Changes) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        applied = outcome.result()
        if isinstance(applied, Applied):
            seconds = round(applied.seconds, 3)
            _log.info(
                "configuration %s applied in %gs: %d ready, %d not",
                applied.revision,
                seconds,
                applied.ready,
                applied.unhealthy,
            )
            self._story.tell(
                "configuration",
                {
                    "revision": applied.revision,
                    "seconds": seconds,
                    "ready": applied.ready,
                    "unhealthy": applied.unhealthy,
                    **changes,
                },
            )

    def _own(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("%s stopped working", task.get_name(), exc_info=error)
            self._stop.fail(f"{task.get_name()} stopped working")


def _limits(deadlines: Deadlines) -> Limits:
    """A module that takes too long is given up first, which says more than that building did."""
    asked = deadlines.validate + deadlines.remove + deadlines.add
    return Limits(build=max(Limits().build, asked + _SLACK))


async def _cancelled(tasks: Collection[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _both(first: Observer, second: Observer) -> Observer:
    def observe(event: Event) -> None:
        first(event)
        second(event)

    return observe


def _story_file(home: Path, config_file: Path) -> Path:
    """Beside the last good configuration of the same file, and named like it."""
    return home / "story" / last_good_for(home, config_file).path.with_suffix(".jsonl").name


def _application(machine: Machine, clock: Clock, ring: Ring, story: Story) -> Application:
    from cogwork.control.http import application

    return application(machine, clock, ring, story)
