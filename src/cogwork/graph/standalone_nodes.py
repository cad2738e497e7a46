"""Standalone nodes, which have no dependencies and no dependents. They are planned in small slices.

Most resources of other machines are standalone, and the other machine decides how many there are
and how often they change. The plans of the rest of the graph omit them, and changing them uses only
a share of the event loop's time.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, MutableMapping
from typing import Final

from cogwork.core.clock import Clock
from cogwork.graph.executor import PlanExecution
from cogwork.graph.lifecycle_calls import LifecycleCalls
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Node
from cogwork.graph.plan import FindOffer, plan
from cogwork.graph.spec import Spec

SLICE: Final = 4
"""Number of nodes that are planned together, which takes about two milliseconds."""
_SHARE: Final = 0.2
"""Maximum share of the event loop's time that slices use."""
_EXECUTION_TIMEOUT: Final = 0.05
"""Maximum seconds to wait for one slice before the next begins, because a close may wait for
calls."""
_MAX_PAUSE: Final = 0.05
"""Maximum seconds between two slices."""


class StandaloneNodes:
    def __init__(
        self,
        nodes: MutableMapping[ResourceName, Node],
        calls: LifecycleCalls,
        clock: Clock,
        limits: GraphLimits,
        offers: FindOffer,
        adopt_spec: Callable[[Spec], Spec],
    ) -> None:
        """Create an empty set. `nodes`: all nodes of the graph. `adopt_spec` gives a spec to its
        node."""
        self._nodes = nodes
        self._calls = calls
        self._clock = clock
        self._limits = limits
        self._offers = offers
        self._adopt_spec = adopt_spec
        self._specs: dict[ResourceName, Spec] = {}
        """The desired state."""
        self._names: set[ResourceName] = set()
        """The desired nodes, and removed nodes that are not closed yet."""
        self._stale: dict[ResourceName, None] = {}
        """Nodes to plan, in order."""
        self._retries: dict[ResourceName, float] = {}
        """Times at which nodes that could not be built are planned again."""
        self._executions: list[PlanExecution] = []
        """Executions with steps that have not ended."""
        self._wakeup: asyncio.Future[None] | None = None

    def __contains__(self, name: ResourceName) -> bool:
        return name in self._names

    def put(self, spec: Spec) -> None:
        """Add a node to the desired state, or change it."""
        if self._specs.get(spec.name) != spec:
            self._specs[spec.name] = spec
            self._names.add(spec.name)
            self.mark_stale([spec.name])

    def remove(self, name: ResourceName) -> None:
        """Remove a node from the desired state. The next slices close it."""
        if self._specs.pop(name, None) is not None:
            self.mark_stale([name])

    def release(self, names: Iterable[ResourceName]) -> None:
        """Move nodes to the rest of the graph, without changing their state."""
        for name in names:
            self._names.discard(name)
            self._specs.pop(name, None)
            self._stale.pop(name, None)
            self._retries.pop(name, None)

    def release_all(self) -> None:
        self.release(tuple(self._names))

    @property
    def has_released_steps(self) -> bool:
        """Whether a step still runs on a node that now belongs to the rest of the graph."""
        return any(self._find_released())

    async def interrupt_released(self) -> None:
        """End the steps on released nodes."""
        await self._interrupt(list(self._find_released()))

    def mark_stale(self, names: Iterable[ResourceName]) -> None:
        self._stale.update(dict.fromkeys(name for name in names if name in self._names))
        self._wake()

    def mark_all_stale(self) -> None:
        # Keep the order in which the nodes were added: a remote comes before its resources.
        self.mark_stale((*self._specs, *self._names))

    def on_call_end(self, node: Node) -> None:
        if node.live is not None and node.usable is None:
            self.mark_stale([node.spec.name])
        self._note_retry(node.spec.name)
        self._wake()

    async def run(self) -> None:
        """Keep the nodes in their desired state. Run until cancelled."""
        try:
            while True:
                await self._wait_until_stale()
                began = self._clock.monotonic()
                await self._run_slice()
                took = self._clock.monotonic() - began
                await self._clock.sleep(min(took / _SHARE - took, _MAX_PAUSE))
        finally:
            await self._interrupt(list(self._executions))

    async def _wait_until_stale(self) -> None:
        while not self._stale:
            now = self._clock.monotonic()
            due = [name for name, at in self._retries.items() if at <= now]
            if due:
                self.mark_stale(due)
                return
            left = min(self._retries.values()) - now if self._retries else None
            self._wakeup = asyncio.get_running_loop().create_future()
            await self._clock.wait({self._wakeup}, left)

    async def _run_slice(self) -> None:
        candidates = list(itertools.islice(self._stale, SLICE))
        await self._interrupt(self._find_executions(candidates))
        execution = self._start([name for name in candidates if name in self._stale])
        await self._clock.wait({execution.done}, _EXECUTION_TIMEOUT)
        self._forget_ended()

    def _start(self, names: list[ResourceName]) -> PlanExecution:
        desired: dict[ResourceName, Spec] = {}
        for name in names:
            del self._stale[name]
            if name in self._specs:
                desired[name] = self._adopt_spec(self._specs[name])
        nodes = {name: self._nodes[name] for name in names if name in self._nodes}
        made = plan(desired, nodes, self._offers, self._clock.monotonic())
        execution = PlanExecution(
            *(made, self._nodes, self._calls, self._clock, self._limits),
            lambda: self.mark_stale(names),
        )
        execution.start()
        self._executions.append(execution)
        for name in names:
            self._note_retry(name)
        return execution

    def _note_retry(self, name: ResourceName) -> None:
        node = self._nodes.get(name)
        failure = node.failure if node is not None else None
        if failure is not None and failure.retry_at > self._clock.monotonic():
            self._retries[name] = failure.retry_at
        else:
            self._retries.pop(name, None)

    def _forget_ended(self) -> None:
        ended = [execution for execution in self._executions if not execution.is_running]
        self._executions = [execution for execution in self._executions if execution.is_running]
        for execution in ended:
            for name in execution.plan.steps:
                if name not in self._specs and name not in self._nodes:
                    self.release([name])

    def _find_released(self) -> Iterable[PlanExecution]:
        return (
            execution
            for execution in self._executions
            if execution.is_running and not execution.plan.steps.keys() <= self._names
        )

    def _find_executions(self, names: Iterable[ResourceName]) -> list[PlanExecution]:
        wanted = set(names)
        return [
            execution
            for execution in self._executions
            if execution.is_running and not wanted.isdisjoint(execution.plan.steps)
        ]

    async def _interrupt(self, executions: list[PlanExecution]) -> None:
        """End executions, and plan their nodes again."""
        for execution in executions:
            await execution.interrupt()
            self.mark_stale(execution.plan.steps)
        self._forget_ended()

    def _wake(self) -> None:
        if self._wakeup is not None and not self._wakeup.done():
            self._wakeup.set_result(None)
