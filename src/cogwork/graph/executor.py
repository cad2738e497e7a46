"""Executes a plan: handles each node as soon as its dependencies are ready.

An execution can be interrupted at any time. Its calls continue in their nodes; the next execution
adopts or abandons them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping

from cogwork.core.clock import Clock
from cogwork.graph.lifecycle_calls import LifecycleCalls
from cogwork.graph.limits import GraphLimits
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Activity, LiveResource, Node, NodeState, Reason
from cogwork.graph.plan import Action, Plan, Step, build_inputs, call_serves_plan


class PlanExecution:
    def __init__(
        self,
        plan: Plan,
        nodes: MutableMapping[ResourceName, Node],
        calls: LifecycleCalls,
        clock: Clock,
        limits: GraphLimits,
        replan: Callable[[], None],
    ) -> None:
        self.plan = plan
        self.planned_at = clock.monotonic()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when every node is ready or unhealthy. Retries may still be running."""
        self._nodes = nodes
        self._calls = calls
        self._clock = clock
        self._limits = limits
        self._replan = replan
        self._released = {name: asyncio.Event() for name in plan.steps}
        self._settled = {name: asyncio.Event() for name in plan.steps}
        self._tasks: set[asyncio.Task[None]] = set()
        self._required_tasks: set[asyncio.Task[None]] = set()
        self._holders = self._find_holders()
        self._dependents_by_name: dict[ResourceName, list[ResourceName]] | None = None
        self._in_progress: set[ResourceName] = set()
        """Nodes with a call that the plan needs and that was running before the execution
        started."""

    def start(self) -> None:
        steps = self.plan.steps.values()
        retries = self._find_retries()
        for step in steps:
            self._announce(step, again=step.name in retries)
            node = self._nodes[step.name]
            if node.call is not None and not node.is_doing(Activity.CLOSING):
                self._in_progress.add(step.name)
        for name in self.plan.specs:
            if name not in self.plan.steps and self._nodes[name].usable is not None:
                self._mark_ready(self._nodes[name])
        for step in steps:
            if step.action is Action.WAIT and self._nodes[step.name].call is None:
                self._released[step.name].set()
                self._settled[step.name].set()
                continue
            task = asyncio.get_running_loop().create_task(self._run_step(step))
            task.add_done_callback(self._on_task_done)
            self._tasks.add(task)
            if step.name not in retries:
                self._required_tasks.add(task)
        if not self._required_tasks:
            self.done.set_result(None)

    @property
    def is_running(self) -> bool:
        """Whether some steps, including retries, have not ended."""
        return bool(self._tasks)

    async def interrupt(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.done.cancel()

    def needs_replan(self, name: ResourceName) -> bool:
        """Return whether the node or a dependent could get a dependency that this plan omits."""
        node = self._nodes.get(name)
        usable = node.usable if node is not None else None
        if usable is None:
            return False
        wants = self.plan.edges.wants.get(name, ())
        return any(
            self._usable_dependency(want) is not None and want not in usable.holds for want in wants
        ) or any(
            self._lacks_dependency(dependent, name)
            for dependent in self._find_dependents().get(name, ())
        )

    def _lacks_dependency(self, dependent: ResourceName, name: ResourceName) -> bool:
        node = self._nodes[dependent]
        if node.call is not None or self._will_build(dependent):
            return False
        return node.live is None or name not in node.live.holds

    def _will_build(self, name: ResourceName) -> bool:
        step = self.plan.steps.get(name)
        return step is not None and step.action.builds and not self._settled[name].is_set()

    def _find_dependents(self) -> dict[ResourceName, list[ResourceName]]:
        if self._dependents_by_name is None:
            self._dependents_by_name = {}
            for edges in (self.plan.edges.needs, self.plan.edges.wants):
                for name, dependencies in edges.items():
                    for dependency in dependencies:
                        self._dependents_by_name.setdefault(dependency, []).append(name)
        return self._dependents_by_name

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._required_tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            task.get_loop().call_exception_handler(
                {"message": "a step of a plan failed", "exception": error, "task": task}
            )
        if not self._required_tasks and not self.done.done():
            self.done.set_result(None)

    def _announce(self, step: Step, *, again: bool) -> None:
        """Set the planned state of the node, and abandon its call if the plan does not need it."""
        node = self._nodes[step.name]
        if not node.is_doing(Activity.CLOSING) and not call_serves_plan(
            self.plan, node, self._nodes
        ):
            self._calls.abandon(node)
        if not step.action.builds:
            node.optional_deadline = None
        if step.reason is not None:
            state = NodeState.CONFIGURING if step.reason.is_temporary else NodeState.UNHEALTHY
            self._calls.set_state(node, state, step.reason)
        elif step.action is Action.REMOVE:
            self._calls.set_state(node, NodeState.REMOVING)
        elif not again:
            # A node keeps its reason during a retry until it is ready.
            self._calls.set_state(node, NodeState.CONFIGURING)

    def _mark_ready(self, node: Node) -> None:
        """Reset the state that an earlier plan announced for the node but did not reach."""
        node.optional_deadline = None
        self._calls.set_state(node, NodeState.READY)

    def _find_retries(self) -> set[ResourceName]:
        """Return the nodes that failed with the same inputs, and nodes that only wait for such
        nodes."""
        retries: set[ResourceName] = set()
        for name, step in self.plan.steps.items():
            node = self._nodes[name]
            if step.action is Action.BUILD and node.state is NodeState.UNHEALTHY:
                needs = self.plan.edges.needs[name]
                if self._failed_with_same_inputs(node, needs) or not retries.isdisjoint(needs):
                    retries.add(name)
        return retries

    def _failed_with_same_inputs(self, node: Node, needs: Iterable[ResourceName]) -> bool:
        offer = self.plan.offers[node.spec.name]
        return node.failure is not None and node.failure.inputs == build_inputs(
            node.spec, needs, self._nodes, offer
        )

    async def _run_step(self, step: Step) -> None:
        node = self._nodes[step.name]
        if node.is_doing(Activity.CLOSING):
            await self._calls.wait_finished(node)
        if step.action.closes and node.live is not None:
            await self._close(step.name, node)
        self._released[step.name].set()
        if step.action.builds:
            await self._build(step, node)
        elif step.action is Action.REMOVE:
            await self._calls.wait_abandoned(node)
            del self._nodes[step.name]
            self._calls.forget_abandoned(step.name)
        self._settled[step.name].set()

    async def _close(self, name: ResourceName, node: Node) -> None:
        for holder in self._holders.get(name, ()):
            await self._released[holder].wait()
        await self._calls.wait_abandoned(node)
        if node.live is not None:
            self._calls.close(node, node.live)
            await self._calls.wait_finished(node)

    async def _build(self, step: Step, node: Node) -> None:
        # Do not repeat a call that was already running, even if it has ended by now.
        if step.name not in self._in_progress:
            needs, wants = self.plan.edges.needs[step.name], self.plan.edges.wants[step.name]
            for need in needs:
                if need in self._settled:
                    await self._settled[need].wait()
            if step.action is not Action.RECONFIGURE:
                await self._wait_for_optional(node, wants)
                await self._calls.wait_abandoned(node)
            self._start(step, node, needs, wants)
        await self._calls.wait_finished(node)

    async def _wait_for_optional(self, node: Node, wants: Iterable[ResourceName]) -> None:
        if node.optional_deadline is None:
            node.optional_deadline = self._clock.monotonic() + self._limits.optional_wait
        for want in wants:
            settled = self._settled.get(want)
            left = node.optional_deadline - self._clock.monotonic()
            if settled is None or settled.is_set() or left <= 0:
                continue
            waiting = asyncio.ensure_future(settled.wait())
            try:
                await self._clock.wait({waiting}, left)
            finally:
                waiting.cancel()

    def _start(
        self,
        step: Step,
        node: Node,
        needs: Iterable[ResourceName],
        wants: Iterable[ResourceName],
    ) -> None:
        node.optional_deadline = None
        # Do not use the spec of the node, which may already belong to the next plan.
        spec, offer = self.plan.specs[step.name], self.plan.offers[step.name]
        inputs = build_inputs(spec, needs, self._nodes, offer)
        if inputs is None:
            obstacle = self._find_obstacle(needs)
            self._calls.set_state(node, NodeState.UNHEALTHY, obstacle)
            if node.live is not None:
                # Closing the resource requires another plan, because its holders must be closed
                # first.
                node.live.broken_reason = f"it could not be reconfigured: {obstacle.text}"
                self._replan()
            return
        changed = node.live if step.action is Action.RECONFIGURE else None
        given = {
            name: held
            for name in (*needs, *wants)
            if (held := self._usable_dependency(name)) is not None
            and (changed is None or held.generation < changed.generation)
        }
        resources = {name: held.resource for name, held in given.items()}
        holds = {name: held.generation for name, held in given.items()}
        if changed is not None:
            self._calls.reconfigure(node, changed, inputs, resources, holds)
        else:
            self._calls.build(node, offer, inputs, resources, holds)

    def _usable_dependency(self, name: ResourceName) -> LiveResource | None:
        """Return the resource for dependents; None if this execution has not handled the node
        yet."""
        settled = self._settled.get(name)
        return self._nodes[name].usable if settled is None or settled.is_set() else None

    def _find_obstacle(self, needs: Iterable[ResourceName]) -> Reason:
        need = next(name for name in needs if self._nodes[name].usable is None)
        reason = self._nodes[need].reason or Reason("it is being reconfigured")
        return reason.for_dependent(need)

    def _find_holders(self) -> dict[ResourceName, list[ResourceName]]:
        holders: dict[ResourceName, list[ResourceName]] = {}
        for name, step in self.plan.steps.items():
            held = self._nodes[name].held
            if held is not None and (held.is_closing or step.action.closes):
                for dependency in held.holds:
                    holders.setdefault(dependency, []).append(name)
        return holders
