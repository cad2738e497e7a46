"""One running machine: what is configured, what state it is in, and who may be called."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import logging
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from cogwork.config.diagnose import Diagnostic, did_you_mean
from cogwork.config.load import Loaded
from cogwork.config.schema import JobConfig, MachineConfig
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.graph.events import Observer, log_event
from cogwork.graph.limits import Limits
from cogwork.graph.name import Api, Reference, ResourceName
from cogwork.graph.node import Node, State
from cogwork.graph.provider import Providers
from cogwork.graph.reconcile import Applied, Outcome, Reconciler
from cogwork.logs.rules import MODULES, RESOURCES
from cogwork.resource.clients import Elsewhere
from cogwork.resource.neighbours import Neighbours
from cogwork.resource.services import public_services
from cogwork.robot.frames import FrameSystem
from cogwork.robot.guests import Guests, NoGuests
from cogwork.robot.jobs import Call, Jobs
from cogwork.robot.operations import Cancelled, Operation, Operations, current_operation
from cogwork.robot.sessions import Sessions, sets_in_motion
from cogwork.wire.handlers import Method

_log = logging.getLogger("rdk")

GRACE = 1.0
"""Seconds that calls under way get before a resource is closed."""
STOP = 10.0
"""Seconds that something gets to stop moving."""
HALT = 2.0
"""Seconds that everything gets to stop moving before a machine begins to close."""
_HARMLESS = ("Get", "Is", "List", "Stop")
"""How the methods begin that move nothing."""
_STEERING = (Api.parse("rdk:service:motion"), Api.parse("rdk:service:navigation"))
"""Services that move other resources, as soon as their turn comes."""


class NotConfigured(CogworkError):
    status = "NOT_FOUND"


class NotAvailable(CogworkError):
    status = "UNAVAILABLE"


class NotStopped(CogworkError):
    """Something that moves could not be stopped."""


class MachineState(enum.IntEnum):
    """The numbers are those of the public API."""

    INITIALIZING = 1
    RUNNING = 2


@runtime_checkable
class Stoppable(Protocol):
    async def stop(self, *, extra: dict[str, Any] | None = None) -> None: ...


class Machine:
    def __init__(
        self,
        providers: Providers,
        clock: Clock,
        *,
        limits: Limits | None = None,
        observe: Observer = log_event,
    ) -> None:
        self.operations = Operations(clock)
        self.config = MachineConfig.model_construct()
        self.diagnostics: tuple[Diagnostic, ...] = ()
        """What was found wrong with the configuration."""
        self.state = MachineState.INITIALIZING
        self.applied_at: float | None = None
        """When the configuration that runs had been applied."""
        self._clock = clock
        self.call_for_job: Call = _not_yet
        """What a job does; whoever makes the table of methods fills it in."""
        self.jobs = Jobs(clock, self._run_job)
        self._applying: asyncio.Future[Outcome] | None = None
        self._stopping: set[asyncio.Future[list[ResourceName]]] = set()
        self._stops = Counter[ResourceName]()
        """How often each was told to stop, by a call or by the machine."""
        self._reconciler = Reconciler(
            providers, clock, limits=limits, observe=observe, before_close=self._quiesce
        )
        self.guests: Guests = NoGuests()
        """The modules, as soon as somebody runs them."""
        self.frames = FrameSystem(lambda: self.config.components, self.find)
        self._apis = {served.service: served.api for served in public_services()}
        self.sessions = Sessions(
            clock,
            lambda: self.config.network.sessions.heartbeat_window,
            self._apis,
            self.nodes,
            self.stop,
        )

    def introduce(self, neighbours: Neighbours) -> None:
        """To those of its resources that use others."""
        neighbours.find = self.find
        neighbours.names = lambda: self.nodes
        neighbours.frames = self.frames
        neighbours.stops = self._stops.__getitem__

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return self._reconciler.nodes

    @property
    def revision(self) -> str:
        """The last one that was applied to the end."""
        return self._reconciler.revision

    def logger_of(self, named: str) -> str | None:
        """The logger here of one that a module names: after a resource, as the SDK does it, or
        after itself."""
        # Older releases of the SDK write a point.
        api, _, short = named.replace("/", ".", 1).partition(".")
        try:
            full = ResourceName.of(Api.parse(api), short)
        except InvalidName:
            is_guest = any(guest.name == named for guest in self.guests.statuses())
            return f"{MODULES}{named}" if is_guest else None
        return f"{RESOURCES}{full}" if full in self.nodes else None

    def dependencies(self, name: ResourceName) -> tuple[ResourceName | Reference, ...]:
        """Those that are configured, and after them those that are not."""
        return (*self._reconciler.dependencies(name), *self._reconciler.missing(name))

    @property
    def is_reconfiguring(self) -> bool:
        """Not while a resource that failed is tried again, which may never end."""
        return self._applying is not None and not self._applying.done()

    def apply(self, loaded: Loaded) -> asyncio.Future[Outcome]:
        outcome = self._reconciler.apply(loaded.checked.specs, _revision_of(loaded))
        outcome.add_done_callback(self._applied)
        self.config = loaded.checked.config
        self.jobs.retire(self.config.jobs)
        self.diagnostics = loaded.checked.diagnostics
        self._applying = outcome
        return outcome

    def find(self, name: ResourceName) -> object:
        """The resource, which is held by the call that asks until it ends."""
        node = self.nodes.get(name)
        if node is None or node.usable is None:
            raise self.why_not(name)
        resource = node.usable.resource
        operation = current_operation()
        if operation is not None:
            operation.holds.append(resource)
            if operation.method.path.endswith("/Stop"):
                self._stops[name] += 1
        return resource

    def why_not(self, name: ResourceName) -> CogworkError:
        """Why nobody can have it."""
        node = self.nodes.get(name)
        if node is None:
            return NotConfigured(
                f"no node found with api {name.api} and name {name.short}; {self._hint(name)}"
            )
        return NotAvailable(f"resource {name} not available; reason={_reason(node)}")

    async def stop_all(self, extra: Mapping[ResourceName, dict[str, Any]]) -> None:
        """Stop everything that moves, and end the calls that move it: also a push of a button,
        which would go on although nobody can stop it in another way."""
        await self.stop(self.nodes, "cancelled, because everything was told to stop", extra)

    async def stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]] | None = None,
    ) -> list[ResourceName]:
        """Stop what moves of these, and end the calls that move it. Returns what it was."""
        # Whoever asked may be gone before everything is at rest.
        return await asyncio.shield(self._begin_to_stop(names, why, extra or {}))

    def _begin_to_stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]],
    ) -> asyncio.Future[list[ResourceName]]:
        stopping = asyncio.ensure_future(self._stop(names, why, extra))
        self._stopping.add(stopping)
        stopping.add_done_callback(self._stopping.discard)
        return stopping

    async def _stop(
        self,
        names: Collection[ResourceName],
        why: str,
        extra: Mapping[ResourceName, dict[str, Any]],
    ) -> list[ResourceName]:
        # Also what nobody else may be given, because it is broken or being changed.
        live = {
            name: node.live.resource
            for name in names
            if (node := self.nodes.get(name)) is not None and node.live is not None
        }
        moving = {name: each for name, each in live.items() if isinstance(each, Stoppable)}
        self._stops.update(moving.keys())
        moved = self._end_calls(names, live, moving, why)
        results = await asyncio.gather(
            *(self._stopped(resource, extra.get(name, {})) for name, resource in moving.items()),
            return_exceptions=True,
        )
        failed = [
            f"failed to stop component named {name.short} with error {result}"
            for name, result in zip(moving, results, strict=True)
            if isinstance(result, BaseException)
        ]
        if failed:
            raise NotStopped("; ".join(failed))
        return sorted(moved | moving.keys())

    def _end_calls(
        self,
        names: Collection[ResourceName],
        live: Mapping[ResourceName, object],
        moving: Collection[ResourceName],
        why: str,
    ) -> set[ResourceName]:
        """Those that move one of the names, also if they still wait for their turn. Returns what
        they move."""
        known = {id(resource): name for name, resource in live.items()}
        moved = set[ResourceName]()
        for operation in self.operations.others():
            used = {known[id(held)] for held in operation.holds if id(held) in known}
            asked = self._asked_for(operation)
            if asked is not None and asked in names:
                used.add(asked)
            if not used or not _may_move(operation):
                continue
            if self._is_motion(operation.method) or not used.isdisjoint(moving):
                operation.end(Cancelled(why))
                moved |= used
        return moved

    def _is_motion(self, method: Method) -> bool:
        """Whether it moves something, even if that cannot be told to stop."""
        api = self._apis.get(method.service)
        return api in _STEERING or (api is not None and sets_in_motion(method))

    def _asked_for(self, operation: Operation) -> ResourceName | None:
        api, short = self._apis.get(operation.method.service), operation.asked_for
        return ResourceName.of(api, short) if api is not None and short else None

    async def _stopped(self, resource: Stoppable, extra: dict[str, Any]) -> None:
        """Whatever is wrong with one, the others are stopped."""
        stopping = asyncio.ensure_future(_called_to_stop(resource, extra))
        try:
            await self._clock.wait([stopping], STOP)
        finally:
            stopping.cancel()
        if not stopping.done():
            raise NotStopped(f"it did not stop within {STOP:g}s")
        stopping.result()

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Stop what moves, then close everything, dependents first. Returns what did not close
        within the budget."""
        _, running = await asyncio.gather(self._halt(), self.jobs.aclose())
        for name in running:
            _log.error("a run of job %s did not end in time", name)
        unfinished = await self._reconciler.aclose(budget)
        for stopping in self._stopping:
            stopping.cancel()
        await asyncio.gather(*self._stopping, return_exceptions=True)
        return unfinished

    async def _halt(self) -> None:
        """What moves would run on for as long as what uses it takes to close."""
        why = "cancelled, because the machine is shutting down"
        stopping = self._begin_to_stop(self.nodes, why, {})
        stopping.add_done_callback(_tell_what_moves_on)
        await self._clock.wait([stopping], HALT)
        if not stopping.done():
            _log.warning("something still moves after %gs; it is closed all the same", HALT)

    async def _quiesce(self, name: ResourceName, resource: object) -> None:
        await self.operations.quiesce(resource, name, GRACE)
        # Nothing moves on that nobody can stop any more. A module sees to its own.
        if isinstance(resource, Stoppable) and not isinstance(resource, Elsewhere):
            try:
                await self._stopped(resource, {})
            except Exception as error:
                _log.warning("%s was not stopped before it is closed: %s", name, error)

    def _applied(self, outcome: asyncio.Future[Outcome]) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        if isinstance(outcome.result(), Applied):
            self.state = MachineState.RUNNING
            self.applied_at = self._clock.time()
            self.jobs.apply(self.config.jobs)

    async def _run_job(self, config: JobConfig) -> None:
        await self.call_for_job(config)

    def _hint(self, name: ResourceName) -> str:
        namesakes = [other for other in self.nodes if other.short == name.short]
        if namesakes:
            return f"{namesakes[0]} has that name"
        siblings = [other.short for other in self.nodes if other.api == name.api]
        guess = did_you_mean(name.short, siblings)
        if guess is not None:
            return guess
        listed = f"there are {', '.join(sorted(siblings))}" if siblings else "there is none"
        return f"of this API {listed}"


async def _called_to_stop(resource: Stoppable, extra: dict[str, Any]) -> None:
    try:
        await resource.stop(extra=extra)
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from None


def _tell_what_moves_on(stopping: asyncio.Future[list[ResourceName]]) -> None:
    if not stopping.cancelled() and (error := stopping.exception()) is not None:
        _log.error("the machine closes while something may still move: %s", error)


async def _not_yet(config: JobConfig) -> None:
    raise NotAvailable(f"{config.method} cannot be called: the machine serves nothing yet")


def _may_move(operation: Operation) -> bool:
    """Whoever only looks, or stops it too, goes on."""
    return not operation.method.path.rpartition("/")[2].startswith(_HARMLESS)


def _reason(node: Node) -> str:
    if node.reason is not None:
        return node.reason.text
    match node.state:
        case State.REMOVING:
            return "it is being removed"
        case State.READY | State.CONFIGURING:
            return "it is being reconfigured; try again" if node.revision else "it is being built"
        case _:
            return "it is not built yet"


def _revision_of(loaded: Loaded) -> str:
    """A file rarely says: its text identifies it then."""
    given = loaded.checked.config.revision
    return given or hashlib.sha256(loaded.text.encode()).hexdigest()[:12]
