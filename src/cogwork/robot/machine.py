"""One running machine: what is configured, what state it is in, and who may be called."""

from __future__ import annotations

import asyncio
import enum
import hashlib
from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from cogwork.config.diagnose import Diagnostic, did_you_mean
from cogwork.config.load import Loaded
from cogwork.config.schema import MachineConfig
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.events import Observer, log_event
from cogwork.graph.limits import Limits
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node, State
from cogwork.graph.provider import Providers
from cogwork.graph.reconcile import Applied, Outcome, Reconciler
from cogwork.robot.operations import Cancelled, Operations, current_operation

GRACE = 1.0
"""Seconds that calls under way get before a resource is closed."""


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
        self._applying: asyncio.Future[Outcome] | None = None
        self._reconciler = Reconciler(
            providers, clock, limits=limits, observe=observe, before_close=self._quiesce
        )

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return self._reconciler.nodes

    @property
    def revision(self) -> str:
        """The last one that was applied to the end."""
        return self._reconciler.revision

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
        """Stop everything that moves, and end the calls that move it."""
        # Also what nobody else may be given, because it is broken or being changed.
        moving = {
            name: node.live.resource
            for name, node in self.nodes.items()
            if node.live is not None and isinstance(node.live.resource, Stoppable)
        }
        for operation in self.operations.using(moving.values()):
            operation.end(Cancelled("cancelled, because everything was told to stop"))
        results = await asyncio.gather(
            *(_stop(resource, extra.get(name, {})) for name, resource in moving.items()),
            return_exceptions=True,
        )
        failed = [
            f"failed to stop component named {name.short} with error {result}"
            for name, result in zip(moving, results, strict=True)
            if isinstance(result, BaseException)
        ]
        if failed:
            raise NotStopped("; ".join(failed))

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Close everything, dependents first. Returns what did not close within the budget."""
        return await self._reconciler.aclose(budget)

    async def _quiesce(self, name: ResourceName, resource: object) -> None:
        await self.operations.quiesce(resource, name, GRACE)

    def _applied(self, outcome: asyncio.Future[Outcome]) -> None:
        if outcome.cancelled() or outcome.exception() is not None:
            return
        if isinstance(outcome.result(), Applied):
            self.state = MachineState.RUNNING
            self.applied_at = self._clock.time()

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


async def _stop(resource: Stoppable, extra: dict[str, Any]) -> None:
    """Whatever is wrong with one, the others are stopped."""
    try:
        await resource.stop(extra=extra)
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from None


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
