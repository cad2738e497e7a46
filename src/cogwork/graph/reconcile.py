"""The reconciler: keeps what is equal to what is wanted.

Whatever happens (a new configuration, a provider that comes or goes, a retry that is due, a
resource that was lost) only marks the plan stale. The one loop below makes a new plan from what
is there and carries it out; there is no second way to change the graph.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cogwork.core.clock import Clock
from cogwork.graph.calls import Calls
from cogwork.graph.drive import Pass
from cogwork.graph.edges import Missing
from cogwork.graph.events import Event, Observer, log_event
from cogwork.graph.limits import Limits
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node, State
from cogwork.graph.plan import Plan, build_inputs, plan
from cogwork.graph.provider import Providers
from cogwork.graph.spec import Spec

_log = logging.getLogger("rdk.resource_manager")


@dataclass(frozen=True, slots=True)
class Applied:
    """The pass is over: every node is ready, or unhealthy with a reason."""

    revision: str
    seconds: float
    ready: int
    unhealthy: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another configuration came before the pass was over."""

    revision: str


Outcome = Applied | Superseded


BeforeClose = Callable[[ResourceName, object], Awaitable[None]]
"""Lets whoever still uses a resource finish, before it is closed."""


class Reconciler:
    def __init__(
        self,
        providers: Providers,
        clock: Clock,
        *,
        limits: Limits | None = None,
        observe: Observer = log_event,
        rng: random.Random | None = None,
        before_close: BeforeClose | None = None,
    ) -> None:
        self._providers = providers
        self._clock = clock
        self._limits = limits or Limits()
        rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self._calls = Calls(
            clock,
            self._limits,
            _safely(observe),
            rng,
            self._call_ended,
            self._late_one_returned,
            before_close or _nothing,
        )
        self._desired: dict[ResourceName, Spec] = {}
        self._nodes: dict[ResourceName, Node] = {}
        self._pass: Pass | None = None
        self._stale = False
        self._poke: asyncio.Future[None] | None = None
        self._pending: _Pending | None = None
        self._revision = ""
        self._loop: asyncio.Task[None] | None = None
        self._emptied: asyncio.Future[Outcome] | None = None
        self._stop_listening = providers.on_change(self._replan)

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return MappingProxyType(self._nodes)

    @property
    def revision(self) -> str:
        """The last revision that was applied to the end."""
        return self._revision

    def dependencies(self, name: ResourceName) -> tuple[ResourceName, ...]:
        """What it depends on, as far as that is configured."""
        if self._pass is None:
            return ()
        edges = self._pass.plan.edges
        return (*edges.needs.get(name, ()), *edges.wants.get(name, ()))

    def missing(self, name: ResourceName) -> tuple[Reference, ...]:
        """What it depends on and is not configured."""
        if self._pass is None:
            return ()
        faults = self._pass.plan.edges.faults.get(name, ())
        return tuple(fault.reference for fault in faults if isinstance(fault, Missing))

    def apply(self, specs: Iterable[Spec], revision: str = "") -> asyncio.Future[Outcome]:
        """Want this from now on. The future ends with the pass, or when another one replaces it."""
        if self._emptied is not None:
            raise RuntimeError("the graph is being closed; it takes no other configuration")
        if self._loop is not None and self._loop.done():
            raise RuntimeError("the graph stopped working; restart the server")
        return self._want(specs, revision)

    def lost(self, name: ResourceName, resource: object, why: str) -> None:
        """A resource says that it no longer works: it is closed and built anew.

        A late word about an object that was replaced meanwhile changes nothing.
        """
        node = self._nodes.get(name)
        if node is None or node.live is None or self._pass is None:
            return
        if node.live.resource is resource:
            needs = self._pass.plan.edges.needs.get(name, ())
            inputs = build_inputs(node.spec, needs, self._nodes, node.live.offer)
            self._calls.lose(node, node.live, why, inputs)
            self._replan()

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Close everything, dependents first. Returns what did not close within the budget."""
        started = self._clock.monotonic()
        if self._emptied is None:
            self._emptied = self._want((), self._revision)
        waitables: set[asyncio.Future[Any]] = {self._emptied}
        if self._loop is not None:
            waitables.add(self._loop)
        await self._clock.wait(waitables, budget)
        self._emptied.cancel()
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)
        self._stop_listening()
        left = max(0.0, budget - (self._clock.monotonic() - started))
        unfinished = await self._calls.aclose(left)
        return sorted(unfinished | self._nodes.keys())

    def _want(self, specs: Iterable[Spec], revision: str) -> asyncio.Future[Outcome]:
        self._desired = {}
        for spec in specs:
            if spec.name not in self._desired:
                self._desired[spec.name] = self._adopt(spec)
        if self._pending is not None:
            self._pending.resolve(Superseded(self._pending.revision))
        self._pending = _Pending(revision, self._clock.monotonic())
        if self._loop is None:
            self._loop = asyncio.get_running_loop().create_task(self._run(), name="reconciler")
            self._loop.add_done_callback(self._loop_ended)
        self._replan()
        return self._pending.future

    def _adopt(self, spec: Spec) -> Spec:
        """The node's own spec where it is equal, so that a plan sees at a glance what is new."""
        node = self._nodes.get(spec.name)
        if node is None:
            self._nodes[spec.name] = self._node(spec)
            return spec
        if node.spec == spec:
            return node.spec
        node.spec = spec
        node.failure = None
        if node.state is State.UNHEALTHY:
            self._calls.set_state(node, State.CONFIGURING)
        return spec

    def _node(self, spec: Spec) -> Node:
        return Node(spec, since=self._clock.time(), late=self._calls.late_of(spec.name))

    async def _run(self) -> None:
        while True:
            self._stale = False
            self._pass = Pass(
                self._plan(), self._nodes, self._calls, self._clock, self._limits, self._replan
            )
            self._pass.start()
            try:
                await self._attend(self._pass)
            finally:
                await self._pass.interrupt()

    def _loop_ended(self, loop: asyncio.Task[None]) -> None:
        """It ends when it is cancelled; anything else is a fault of ours that must be seen."""
        if not loop.cancelled() and (error := loop.exception()) is not None:
            _log.critical("the resource graph stopped working; restart the server", exc_info=error)
            if self._pending is not None:
                self._pending.fail(error)

    def _plan(self) -> Plan:
        for name, spec in self._desired.items():
            # One that was wanted again may have been removed by the pass before.
            if name not in self._nodes:
                self._nodes[name] = self._node(spec)
        return plan(self._desired, self._nodes, self._providers.offer, self._clock.monotonic())

    async def _attend(self, current: Pass) -> None:
        """Wait until the plan is stale or a retry is due."""
        while not self._stale:
            self._poke = asyncio.get_running_loop().create_future()
            waitables: set[asyncio.Future[None]] = {self._poke}
            if current.done.done():
                self._finish()
            else:
                waitables.add(current.done)
            left = self._until_next_retry(current)
            if left is not None and left <= 0:
                return
            await self._clock.wait(waitables, left)

    def _until_next_retry(self, current: Pass) -> float | None:
        due = [
            node.failure.retry_at
            for node in self._nodes.values()
            if node.failure is not None and node.failure.retry_at > current.planned_at
        ]
        return min(due) - self._clock.monotonic() if due else None

    def _finish(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        self._revision = pending.revision
        ready = 0
        for node in self._nodes.values():
            if node.state is State.READY:
                node.revision = pending.revision
                ready += 1
        seconds = self._clock.monotonic() - pending.since
        pending.resolve(Applied(pending.revision, seconds, ready, len(self._nodes) - ready))

    def _call_ended(self, node: Node) -> None:
        """Replan if the pass under way will not take the result into account."""
        lost = node.live is not None and node.usable is None
        if lost or (self._pass is not None and self._pass.overlooks(node.spec.name)):
            self._replan()
        self._look_again()

    def _late_one_returned(self, node: Node) -> None:
        if node.live is None and node.call is None:
            self._replan()

    def _replan(self) -> None:
        self._stale = True
        self._look_again()

    def _look_again(self) -> None:
        if self._poke is not None and not self._poke.done():
            self._poke.set_result(None)


class _Pending:
    """The configuration that is being applied, and who waits for it."""

    def __init__(self, revision: str, since: float) -> None:
        self.revision = revision
        self.since = since
        self.future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

    def resolve(self, outcome: Outcome) -> None:
        if not self.future.done():
            self.future.set_result(outcome)

    def fail(self, error: BaseException) -> None:
        if not self.future.done():
            self.future.set_exception(error)


async def _nothing(name: ResourceName, resource: object) -> None:
    del name, resource


def _safely(observe: Observer) -> Observer:
    """Whoever listens must not be able to stop the graph."""

    def tell(event: Event) -> None:
        try:
            observe(event)
        except Exception:
            _log.exception("an observer of the resource graph failed on %s", event)

    return tell
