"""One pass: a plan carried out, every node as soon as its own dependencies are ready.

A pass can be interrupted at any moment. What it had started goes on in its node; the next pass
takes it over or abandons it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, MutableMapping

from cogwork.core.clock import Clock
from cogwork.graph.calls import Calls
from cogwork.graph.limits import Limits
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Doing, Held, Node, Reason, State
from cogwork.graph.plan import Action, Plan, Step, build_inputs, still_wanted


class Pass:
    def __init__(
        self,
        plan: Plan,
        nodes: MutableMapping[ResourceName, Node],
        calls: Calls,
        clock: Clock,
        limits: Limits,
        replan: Callable[[], None],
    ) -> None:
        self.plan = plan
        self.planned_at = clock.monotonic()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Every node is ready or unhealthy; what failed before may be under way again."""
        self._nodes = nodes
        self._calls = calls
        self._clock = clock
        self._limits = limits
        self._replan = replan
        self._freed = {name: asyncio.Event() for name in plan.steps}
        self._settled = {name: asyncio.Event() for name in plan.steps}
        self._drivers: set[asyncio.Task[None]] = set()
        self._awaited: set[asyncio.Task[None]] = set()
        self._holders = self._who_holds()
        self._reverse: dict[ResourceName, list[ResourceName]] | None = None
        self._going_on: set[ResourceName] = set()
        """Whose call was under way when the plan was made, and serves it."""

    def start(self) -> None:
        steps = self.plan.steps.values()
        retries = self._retries()
        for step in steps:
            self._announce(step, again=step.name in retries)
            node = self._nodes[step.name]
            if node.call is not None and not node.is_doing(Doing.CLOSING):
                self._going_on.add(step.name)
        for name, node in list(self._nodes.items()):
            if name not in self.plan.steps and node.usable is not None:
                self._leave(node)
        for step in steps:
            if step.action is Action.WAIT and self._nodes[step.name].call is None:
                self._freed[step.name].set()
                self._settled[step.name].set()
                continue
            driver = asyncio.get_running_loop().create_task(self._drive(step))
            driver.add_done_callback(self._driver_ended)
            self._drivers.add(driver)
            if step.name not in retries:
                self._awaited.add(driver)
        if not self._awaited:
            self.done.set_result(None)

    async def interrupt(self) -> None:
        drivers = list(self._drivers)
        for driver in drivers:
            driver.cancel()
        await asyncio.gather(*drivers, return_exceptions=True)
        self.done.cancel()

    def overlooks(self, name: ResourceName) -> bool:
        """Whether somebody could use this node now, or it somebody, and the pass will not see."""
        node = self._nodes.get(name)
        usable = node.usable if node is not None else None
        if usable is None:
            return False
        wants = self.plan.edges.wants.get(name, ())
        return any(
            self._offered(want) is not None and want not in usable.holds for want in wants
        ) or any(self._lacks(dependent, name) for dependent in self._dependents().get(name, ()))

    def _lacks(self, dependent: ResourceName, name: ResourceName) -> bool:
        node = self._nodes[dependent]
        if node.call is not None or self._will_build(dependent):
            return False
        return node.live is None or name not in node.live.holds

    def _will_build(self, name: ResourceName) -> bool:
        step = self.plan.steps.get(name)
        return step is not None and step.action.builds and not self._settled[name].is_set()

    def _dependents(self) -> dict[ResourceName, list[ResourceName]]:
        if self._reverse is None:
            self._reverse = {}
            for edges in (self.plan.edges.needs, self.plan.edges.wants):
                for name, dependencies in edges.items():
                    for dependency in dependencies:
                        self._reverse.setdefault(dependency, []).append(name)
        return self._reverse

    def _driver_ended(self, driver: asyncio.Task[None]) -> None:
        self._drivers.discard(driver)
        self._awaited.discard(driver)
        if not driver.cancelled() and (error := driver.exception()) is not None:
            driver.get_loop().call_exception_handler(
                {"message": "a step of a pass failed", "exception": error, "task": driver}
            )
        if not self._awaited and not self.done.done():
            self.done.set_result(None)

    def _announce(self, step: Step, *, again: bool) -> None:
        """Let the state say at once what the plan decided, and stop what it has no use for."""
        node = self._nodes[step.name]
        if not node.is_doing(Doing.CLOSING) and not still_wanted(self.plan, node, self._nodes):
            self._calls.abandon(node)
        if not step.action.builds:
            node.patient_until = None
        if step.reason is not None:
            state = State.CONFIGURING if step.reason.soon else State.UNHEALTHY
            self._calls.set_state(node, state, step.reason)
        elif step.action is Action.REMOVE:
            self._calls.set_state(node, State.REMOVING)
        elif not again:
            # One that is tried again keeps its reason until it is ready.
            self._calls.set_state(node, State.CONFIGURING)

    def _leave(self, node: Node) -> None:
        """A plan may have announced another end for it that did not come about."""
        node.patient_until = None
        self._calls.set_state(node, State.READY)

    def _retries(self) -> set[ResourceName]:
        """What failed before from the same inputs, and what only waits for such a one."""
        retries: set[ResourceName] = set()
        for name, step in self.plan.steps.items():
            node = self._nodes[name]
            if step.action is Action.BUILD and node.state is State.UNHEALTHY:
                needs = self.plan.edges.needs[name]
                if self._failed_likewise(node, needs) or not retries.isdisjoint(needs):
                    retries.add(name)
        return retries

    def _failed_likewise(self, node: Node, needs: Iterable[ResourceName]) -> bool:
        offer = self.plan.offers[node.spec.name]
        return node.failure is not None and node.failure.inputs == build_inputs(
            node.spec, needs, self._nodes, offer
        )

    async def _drive(self, step: Step) -> None:
        node = self._nodes[step.name]
        if node.is_doing(Doing.CLOSING):
            await self._calls.finished(node)
        if step.action.closes and node.live is not None:
            await self._close(step.name, node)
        self._freed[step.name].set()
        if step.action.builds:
            await self._build(step, node)
        elif step.action is Action.REMOVE:
            await self._calls.let_late_ones_return(node)
            del self._nodes[step.name]
            self._calls.forget(step.name)
        self._settled[step.name].set()

    async def _close(self, name: ResourceName, node: Node) -> None:
        for holder in self._holders.get(name, ()):
            await self._freed[holder].wait()
        await self._calls.let_late_ones_return(node)
        if node.live is not None:
            self._calls.close(node, node.live)
            await self._calls.finished(node)

    async def _build(self, step: Step, node: Node) -> None:
        # One that was under way may be over by now: it is not done twice.
        if step.name not in self._going_on:
            needs, wants = self.plan.edges.needs[step.name], self.plan.edges.wants[step.name]
            for need in needs:
                if need in self._settled:
                    await self._settled[need].wait()
            if step.action is not Action.RECONFIGURE:
                await self._wait_patiently(node, wants)
                await self._calls.let_late_ones_return(node)
            self._start(step, node, needs, wants)
        await self._calls.finished(node)

    async def _wait_patiently(self, node: Node, wants: Iterable[ResourceName]) -> None:
        if node.patient_until is None:
            node.patient_until = self._clock.monotonic() + self._limits.patience
        for want in wants:
            settled = self._settled.get(want)
            left = node.patient_until - self._clock.monotonic()
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
        node.patient_until = None
        # The node's own spec may already be that of the next plan.
        spec, offer = self.plan.specs[step.name], self.plan.offers[step.name]
        inputs = build_inputs(spec, needs, self._nodes, offer)
        if inputs is None:
            obstacle = self._obstacle(needs)
            self._calls.set_state(node, State.UNHEALTHY, obstacle)
            if node.live is not None:
                # Closing it takes another plan, for the sake of those that hold it.
                node.live.broken = f"it could not be changed in place: {obstacle.text}"
                self._replan()
            return
        changed = node.live if step.action is Action.RECONFIGURE else None
        given = {
            name: held
            for name in (*needs, *wants)
            if (held := self._offered(name)) is not None
            and (changed is None or held.generation < changed.generation)
        }
        resources = {name: held.resource for name, held in given.items()}
        holds = {name: held.generation for name, held in given.items()}
        if changed is not None:
            self._calls.reconfigure(node, changed, inputs, resources, holds)
        else:
            self._calls.build(node, offer, inputs, resources, holds)

    def _offered(self, name: ResourceName) -> Held | None:
        """What a dependent is given: nothing that this pass has still to deal with."""
        settled = self._settled.get(name)
        return self._nodes[name].usable if settled is None or settled.is_set() else None

    def _obstacle(self, needs: Iterable[ResourceName]) -> Reason:
        need = next(name for name in needs if self._nodes[name].usable is None)
        reason = self._nodes[need].reason or Reason("it is being changed")
        return reason.seen_from_dependent(need)

    def _who_holds(self) -> dict[ResourceName, list[ResourceName]]:
        holders: dict[ResourceName, list[ResourceName]] = {}
        for name, step in self.plan.steps.items():
            held = self._nodes[name].held
            if held is not None and (held.closing or step.action.closes):
                for dependency in held.holds:
                    holders.setdefault(dependency, []).append(name)
        return holders
