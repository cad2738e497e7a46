"""The reconciler: makes the current state equal to the desired state.

Every trigger (a new configuration, a provider that appears or fails, a retry that is due, a lost
resource) only marks the plan as stale. One loop then makes a new plan from the current state and
executes it. Nothing else changes the graph. Discovered resources without dependencies are planned
separately (`standalone_nodes.py`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from cogwork.core.clock import Clock
from cogwork.graph.desired_specs import DefaultSpecs, DesiredSpecs
from cogwork.graph.edges import MissingDependency
from cogwork.graph.events import Observer, guard_observer, log_event
from cogwork.graph.executor import PlanExecution
from cogwork.graph.lifecycle_calls import LifecycleCalls
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.node import Node, NodeState
from cogwork.graph.plan import Plan, build_inputs, plan
from cogwork.graph.provider import Offer, Providers, Unavailable
from cogwork.graph.spec import Spec
from cogwork.graph.standalone_nodes import StandaloneNodes

_log = logging.getLogger("rdk.resource_manager")


@dataclass(frozen=True, slots=True)
class Applied:
    """The configuration is applied: every node is either ready, or unhealthy with a reason."""

    revision: str
    seconds: float
    ready: int
    unhealthy: int


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another configuration arrived before this one was applied."""

    revision: str


Outcome = Applied | Superseded


BeforeClose = Callable[[ResourceName, object], Awaitable[None]]
"""A function that waits for calls that still use a resource, before it is closed."""


class Reconciler:
    def __init__(
        self,
        providers: Providers,
        clock: Clock,
        *,
        limits: GraphLimits | None = None,
        observe: Observer = log_event,
        before_close: BeforeClose | None = None,
        redact: Callable[[str], str] = str,
        defaults: DefaultSpecs = MappingProxyType({}),
    ) -> None:
        """Create a reconciler with an empty graph.

        `redact` removes the secrets of the configuration from a text. `defaults` are resources that
        are built when something refers to them, or when `start_default` is called.
        """
        self._providers = providers
        self._clock = clock
        self._limits = limits or GraphLimits()
        self._calls = LifecycleCalls(
            clock,
            self._limits,
            guard_observer(observe),
            self._on_call_end,
            self._on_abandoned_return,
            before_close or _noop,
            redact,
        )
        self._specs = DesiredSpecs(defaults)
        self._desired: dict[ResourceName, Spec] = {}
        """The specs of configured resources, and of discovered ones that are connected to
        others."""
        self._nodes: dict[ResourceName, Node] = {}
        self._standalone = StandaloneNodes(
            self._nodes, self._calls, clock, self._limits, providers.offer, self._adopt_spec
        )
        self._execution: PlanExecution | None = None
        self._stale = False
        self._wakeup: asyncio.Future[None] | None = None
        self._pending: _Pending | None = None
        self._revision = ""
        self._loop_task: asyncio.Task[None] | None = None
        self._standalone_task: asyncio.Task[None] | None = None
        self._close_outcome: asyncio.Future[Outcome] | None = None
        self._unsubscribe = providers.subscribe(self._replan_all)

    @property
    def nodes(self) -> Mapping[ResourceName, Node]:
        return MappingProxyType(self._nodes)

    @property
    def revision(self) -> str:
        """The last revision that was fully applied."""
        return self._revision

    @property
    def is_replacing(self) -> bool:
        """Whether a running resource is being changed, replaced or removed.

        Also true until a new configuration is planned, because the plan decides which resources it
        replaces. Standalone resources do not count: another machine may change them all the time.
        """
        if self._stale and self._pending is not None:
            return True
        return any(
            node.is_being_replaced and name not in self._standalone
            for name, node in self._nodes.items()
        )

    def dependencies(self, name: ResourceName) -> tuple[ResourceName, ...]:
        """Return the known resources that a resource depends on."""
        if self._execution is None:
            return ()
        edges = self._execution.plan.edges
        return (*edges.needs.get(name, ()), *edges.wants.get(name, ()))

    def missing_dependencies(self, name: ResourceName) -> tuple[Reference, ...]:
        """Return the references of a resource to dependencies that are unknown."""
        if self._execution is None:
            return ()
        faults = self._execution.plan.edges.faults.get(name, ())
        return tuple(fault.reference for fault in faults if isinstance(fault, MissingDependency))

    def dropped_dependencies(self, name: ResourceName) -> tuple[ResourceName, ...]:
        """Return the optional dependencies of a resource that are omitted to avoid a cycle."""
        if self._execution is None:
            return ()
        left_out = self._execution.plan.edges.dropped_dependencies
        return tuple(wanted for wanting, wanted in left_out if wanting == name)

    def apply(self, specs: Iterable[Spec], revision: str = "") -> asyncio.Future[Outcome]:
        """Set the desired state. The returned future is done when it is applied or superseded."""
        if self._close_outcome is not None:
            raise RuntimeError("the graph is being closed and accepts no new configuration")
        if self._loop_task is not None and self._loop_task.done():
            raise RuntimeError("the graph stopped working; restart the server")
        return self._set_desired(specs, revision)

    def set_discovered(self, specs: Iterable[Spec]) -> None:
        """Set the discovered resources, such as the resources of remotes.

        A configured resource with the same name takes precedence.
        """
        if self._close_outcome is not None:
            return
        changed = self._specs.discover(specs)
        self._start_loop()
        for name in changed:
            if name in self._specs.configured:
                continue
            spec = self._specs.discovered.get(name)
            is_planned = name in self._nodes and name not in self._standalone
            is_connected = spec is not None and self._specs.is_connected(spec)
            if is_planned or is_connected or self._specs.is_hint(name):
                self._replan()
            elif spec is not None:
                self._standalone.put(spec)
            else:
                self._standalone.remove(name)

    def start_default(self, name: ResourceName) -> None:
        """Build a default resource, unless a resource with this name exists."""
        if self._close_outcome is None and name not in self._nodes:
            self._adopt_spec(self._specs.start_default(name))
            self._start_loop()
            self._replan()

    def report_lost(self, name: ResourceName, resource: object, why: str) -> None:
        """Report that a resource no longer works, so that it is closed and rebuilt.

        A report about an object that was already replaced has no effect.
        """
        node = self._nodes.get(name)
        if node is None or node.live is None or self._execution is None:
            return
        if node.live.resource is resource:
            needs = self._execution.plan.edges.needs.get(name, ())
            inputs = build_inputs(node.spec, needs, self._nodes, node.live.offer)
            self._calls.mark_lost(node, node.live, why, inputs)
            self._replan_node(name)

    async def aclose(self, budget: float = 20.0) -> list[ResourceName]:
        """Close all resources, dependents first. Return those that did not close within the
        budget."""
        started = self._clock.monotonic()
        if self._close_outcome is None:
            self._specs.drop_all()
            self._close_outcome = self._set_desired((), self._revision)
        waitables: set[asyncio.Future[Any]] = {self._close_outcome}
        if self._loop_task is not None:
            waitables.add(self._loop_task)
        await self._clock.wait(waitables, budget)
        self._close_outcome.cancel()
        for task in (self._loop_task, self._standalone_task):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        self._unsubscribe()
        left = max(0.0, budget - (self._clock.monotonic() - started))
        unfinished = await self._calls.aclose(left)
        return sorted(unfinished | self._nodes.keys())

    def _set_desired(self, specs: Iterable[Spec], revision: str) -> asyncio.Future[Outcome]:
        self._specs.configure(specs)
        self._standalone.release(self._specs.configured)
        self._desired = self._adopt_specs(self._specs.configured)
        if self._pending is not None:
            self._pending.resolve(Superseded(self._pending.revision))
        self._pending = _Pending(revision, self._clock.monotonic())
        self._start_loop()
        self._replan()
        return self._pending.future

    def _start_loop(self) -> None:
        if self._loop_task is None:
            loop = asyncio.get_running_loop()
            self._loop_task = loop.create_task(self._run(), name="reconciler")
            self._standalone_task = loop.create_task(self._standalone.run(), name="standalone")
            self._loop_task.add_done_callback(self._on_loop_done)
            self._standalone_task.add_done_callback(self._on_loop_done)

    def _adopt_specs(self, specs: Mapping[ResourceName, Spec]) -> dict[ResourceName, Spec]:
        return {name: self._adopt_spec(spec) for name, spec in specs.items()}

    def _adopt_spec(self, spec: Spec) -> Spec:
        """Give a spec to its node, which is created if necessary. Return the node's spec.

        If the specs are equal, the node keeps its own, so that plans can compare by identity.
        """
        node = self._nodes.get(spec.name)
        if node is None:
            self._nodes[spec.name] = self._make_node(spec)
            return spec
        if node.spec is spec or node.spec == spec:
            return node.spec
        node.spec = spec
        node.failure = None
        if node.state is NodeState.UNHEALTHY:
            self._calls.set_state(node, NodeState.CONFIGURING)
        return spec

    def _make_node(self, spec: Spec) -> Node:
        return Node(
            spec, since=self._clock.time(), abandoned=self._calls.abandoned_calls(spec.name)
        )

    async def _run(self) -> None:
        while True:
            self._stale = False
            self._divide()
            while self._standalone.has_released_steps:
                await self._standalone.interrupt_released()
                self._divide()
            self._execution = PlanExecution(
                self._make_plan(), self._nodes, self._calls, self._clock, self._limits, self._replan
            )
            self._execution.start()
            try:
                await self._wait_until_stale(self._execution)
            finally:
                await self._execution.interrupt()

    def _on_loop_done(self, loop: asyncio.Task[None]) -> None:
        """Log an unexpected end of the loop, which is an internal error of the server."""
        if not loop.cancelled() and (error := loop.exception()) is not None:
            _log.critical("the resource graph stopped working; restart the server", exc_info=error)
            if self._pending is not None:
                self._pending.fail(error)

    def _divide(self) -> None:
        """Decide which discovered resources are planned with the configured ones."""
        if self._close_outcome is not None:
            self._standalone.release_all()
        connected, standalone = self._specs.divide(self._providers.offer, self._nodes)
        for spec in standalone:
            self._standalone.put(spec)
        self._standalone.release(connected)
        # This also restores desired nodes that the previous plan has removed.
        self._desired = self._adopt_specs({**self._specs.configured, **connected})

    def _make_plan(self) -> Plan:
        nodes = {name: node for name, node in self._nodes.items() if name not in self._standalone}
        return plan(self._desired, nodes, self._find_offer, self._clock.monotonic())

    def _find_offer(self, spec: Spec) -> Offer | Unavailable:
        offer = self._specs.offers.get(spec.name)
        return offer if offer is not None else self._providers.offer(spec)

    async def _wait_until_stale(self, current: PlanExecution) -> None:
        """Wait until the plan is stale or a retry is due."""
        while not self._stale:
            self._wakeup = asyncio.get_running_loop().create_future()
            waitables: set[asyncio.Future[None]] = {self._wakeup}
            if current.done.done():
                self._resolve_pending()
            else:
                waitables.add(current.done)
            left = self._seconds_to_retry(current)
            if left is not None and left <= 0:
                return
            await self._clock.wait(waitables, left)

    def _seconds_to_retry(self, current: PlanExecution) -> float | None:
        due = [
            node.failure.retry_at
            for name, node in self._nodes.items()
            if node.failure is not None
            and node.failure.retry_at > current.planned_at
            and name not in self._standalone
        ]
        return min(due) - self._clock.monotonic() if due else None

    def _resolve_pending(self) -> None:
        pending, self._pending = self._pending, None
        if pending is None:
            return
        self._revision = pending.revision
        ready = unhealthy = 0
        for node in self._nodes.values():
            is_ready = node.state is NodeState.READY
            if is_ready:
                node.revision = pending.revision
            if not node.spec.is_default:
                ready, unhealthy = ready + is_ready, unhealthy + (not is_ready)
        seconds = self._clock.monotonic() - pending.since
        pending.resolve(Applied(pending.revision, seconds, ready, unhealthy))

    def _on_call_end(self, node: Node) -> None:
        """Replan unless the running execution takes the result into account."""
        if node.spec.name in self._standalone:
            self._standalone.on_call_end(node)
            return
        lost = node.live is not None and node.usable is None
        if lost or (self._execution is not None and self._execution.needs_replan(node.spec.name)):
            self._replan()
        self._wake_loop()

    def _on_abandoned_return(self, node: Node) -> None:
        if node.live is None and node.call is None:
            self._replan_node(node.spec.name)

    def _replan_all(self) -> None:
        self._standalone.mark_all_stale()
        self._replan()

    def _replan_node(self, name: ResourceName) -> None:
        if name in self._standalone:
            self._standalone.mark_stale([name])
        else:
            self._replan()

    def _replan(self) -> None:
        self._stale = True
        self._wake_loop()

    def _wake_loop(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)


class _Pending:
    """The configuration that is being applied, and the future of its outcome."""

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


async def _noop(name: ResourceName, resource: object) -> None:
    del name, resource
