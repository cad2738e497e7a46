"""Calls into drivers and modules: constructors, reconfigurations and closes.

Each call has a deadline and a supervisor, which stores the outcome in the node even if no other
task waits for it. A call that does not return is abandoned, and its late result is closed.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TypeVar

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.error_text import error_text, is_code_error
from cogwork.core.exit_trap import trap_exit
from cogwork.graph.events import CallAbandoned, CallFailed, CallSlow, Observer, StateChanged
from cogwork.graph.limits import GraphLimits, slow_warning_times
from cogwork.graph.name import ResourceName
from cogwork.graph.node import (
    Activity,
    BuildFailure,
    BuildInputs,
    LifecycleCall,
    LiveResource,
    Node,
    NodeState,
    Reason,
)
from cogwork.graph.progress import progress_listener
from cogwork.graph.provider import ConfigRejected, Dependencies, Offer

_T = TypeVar("_T")
_log = logging.getLogger("rdk.resource_manager")
_UNFINISHED = "an earlier reconfiguration was not finished"


class LifecycleCalls:
    def __init__(
        self,
        clock: Clock,
        limits: GraphLimits,
        observe: Observer,
        on_end: Callable[[Node], None],
        on_late_return: Callable[[Node], None],
        before_close: Callable[[ResourceName, object], Awaitable[None]],
        redact: Callable[[str], str],
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._on_end = on_end
        self._on_abandoned_return = on_late_return
        self._before_close = before_close
        self._redact = redact
        self._generations = itertools.count(1)
        self._tasks: dict[asyncio.Task[object], ResourceName] = {}
        self._abandoned: dict[ResourceName, dict[asyncio.Task[None], float]] = {}

    def build(
        self,
        node: Node,
        offer: Offer,
        inputs: BuildInputs,
        dependencies: Dependencies,
        holds: Mapping[ResourceName, int],
    ) -> None:
        def succeeded(resource: object) -> None:
            node.held = LiveResource(resource, inputs.spec, offer, next(self._generations), holds)
            node.failure = None
            node.ready_at = self._clock.monotonic()
            self.set_state(node, NodeState.READY)

        def failed(error: str) -> None:
            count = node.failure.count + 1 if node.failure else 1
            node.failure = self._make_failure(inputs, count, error)
            self.set_state(node, NodeState.UNHEALTHY, Reason(error))

        def show_progress(text: str) -> None:
            # No event is emitted, because constructors may report progress many times a second.
            if node.call is call and node.state is NodeState.CONFIGURING:
                node.reason = Reason(self._redact(text))

        async def construct() -> object:
            with trap_exit(), progress_listener(show_progress):
                return await offer.builder.build(inputs.spec, dependencies)

        work = self._create_task(construct(), node)
        call = LifecycleCall(Activity.BUILDING, work, inputs, holds, offer)
        self._start(node, call, self._limits.build, succeeded, failed)

    def reconfigure(
        self,
        node: Node,
        held: LiveResource,
        inputs: BuildInputs,
        dependencies: Dependencies,
        holds: Mapping[ResourceName, int],
    ) -> None:
        def succeeded(_: object) -> None:
            held.spec = inputs.spec
            held.holds = holds
            if held.broken_reason == _UNFINISHED:
                held.broken_reason = None
                self.set_state(node, NodeState.READY)

        def failed(error: str) -> None:
            held.broken_reason = f"it could not be reconfigured: {error}"
            if not _is_rejection(call.work):  # otherwise, the state of the node will show it
                self._observe(CallFailed(node.spec.name, Activity.RECONFIGURING, error))

        # Mark the resource as broken: until the call returns, it is unknown whether the change is
        # applied.
        held.broken_reason = held.broken_reason or _UNFINISHED
        held.holds = {**held.holds, **holds}

        async def change() -> object:
            with trap_exit():
                await held.offer.builder.reconfigure(held.resource, inputs.spec, dependencies)
            return None

        call = LifecycleCall(
            Activity.RECONFIGURING, self._create_task(change(), node), inputs, holds
        )
        self._start(node, call, self._limits.build, succeeded, failed)

    def close(self, node: Node, held: LiveResource) -> None:
        held.is_closing = True

        def closed(_: object) -> None:
            node.held = None

        def failed(error: str) -> None:
            node.held = None
            self._observe(CallFailed(node.spec.name, Activity.CLOSING, error))

        async def close() -> object:
            await self._before_close(node.spec.name, held.resource)
            return await _close_resource(held.offer, held.resource)

        call = LifecycleCall(Activity.CLOSING, self._create_task(close(), node))
        self._start(node, call, self._limits.close, closed, failed)

    def mark_lost(
        self, node: Node, held: LiveResource, why: str, inputs: BuildInputs | None
    ) -> None:
        """Mark a resource as lost, so that it is rebuilt: immediately or, if that repeats, with
        back-off."""
        held.broken_reason = why
        lasted = self._clock.monotonic() - node.ready_at
        node.losses = node.losses + 1 if lasted < self._limits.retry.maximum else 1
        if node.losses > 1 and inputs is not None:
            node.failure = self._make_failure(inputs, node.losses - 1, why)

    async def wait_finished(self, node: Node) -> None:
        """Wait for the running call. Cancelling the wait does not cancel the call."""
        if node.call is not None and node.call.supervisor is not None:
            await asyncio.wait({node.call.supervisor})

    async def wait_abandoned(self, node: Node) -> None:
        """Wait briefly for abandoned calls, which may hold the device that the next call needs."""
        while node.abandoned:
            deadline = max(node.abandoned.values()) + self._limits.abandon_grace
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.wait(node.abandoned, left)

    def abandon(self, node: Node) -> None:
        """Abandon the running call, because its result is obsolete."""
        call = node.call
        if call is None:
            return
        node.call = None
        if call.supervisor is not None:
            call.supervisor.cancel()
        self._abandon_call(node, call)

    def set_state(self, node: Node, state: NodeState, reason: Reason | None = None) -> None:
        before, reason_before = node.state, node.reason
        if reason is not None:
            # Remove secrets: the reason may quote a message of a driver or a module.
            reason = reason.redact_with(self._redact)
        node.state, node.reason = state, reason
        if before is not state:
            node.since = self._clock.time()
            node.is_being_replaced = state in (NodeState.CONFIGURING, NodeState.REMOVING) and (
                before is NodeState.READY or node.is_being_replaced
            )
            node.notify_state_change()
        elif reason_before == reason:
            return
        text = reason.text if reason else None
        self._observe(StateChanged(node.spec.name, before, state, text))

    async def aclose(self, timeout: float) -> set[ResourceName]:
        """Wait up to `timeout` seconds for running calls, then cancel them.

        Return the names of the resources whose calls did not end by themselves.
        """
        await self._wait_all_tasks(timeout)
        unfinished = set(self._tasks.values())
        for task in self._tasks:
            task.cancel()
        await self._wait_all_tasks(self._limits.abandon_grace)
        return unfinished

    def abandoned_calls(self, name: ResourceName) -> dict[asyncio.Task[None], float]:
        """Return the abandoned calls of a resource, even of a removed node."""
        return self._abandoned.setdefault(name, {})

    def forget_abandoned(self, name: ResourceName) -> None:
        if not self._abandoned.get(name):
            self._abandoned.pop(name, None)

    def _make_failure(self, inputs: BuildInputs, count: int, why: str) -> BuildFailure:
        delay = self._limits.retry.delay(count)
        return BuildFailure(inputs, count, self._clock.monotonic() + delay, why)

    async def _wait_all_tasks(self, timeout: float) -> None:
        deadline = self._clock.monotonic() + timeout
        while self._tasks and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.wait(self._tasks, left)

    def _start(
        self,
        node: Node,
        call: LifecycleCall,
        limit: float,
        succeeded: Callable[[object], None],
        failed: Callable[[str], None],
    ) -> None:
        node.call = call
        call.supervisor = self._create_task(
            self._supervise(node, call, limit, succeeded, failed), node
        )

    async def _supervise(
        self,
        node: Node,
        call: LifecycleCall,
        limit: float,
        succeeded: Callable[[object], None],
        failed: Callable[[str], None],
    ) -> None:
        returned = await self._wait_with_warnings(node, call, limit)
        node.call = None
        if not returned:
            self._abandon_call(node, call)
            failed(f"{call.activity} timed out after {duration.render(limit)}")
        elif (error := self._redacted_error(call.work)) is not None:
            if node.failure is None:
                _log_code_error(node.spec.name, call.work)
            failed(error)
        else:
            succeeded(call.work.result())
        self._on_end(node)

    async def _wait_with_warnings(self, node: Node, call: LifecycleCall, limit: float) -> bool:
        started = self._clock.monotonic()
        for elapsed in slow_warning_times(limit):
            left = started + elapsed - self._clock.monotonic()
            await self._clock.wait({call.work}, left)
            if call.work.done():
                return True
            if elapsed < limit:
                self._observe(CallSlow(node.spec.name, call.activity, elapsed))
        return False

    def _abandon_call(self, node: Node, call: LifecycleCall) -> None:
        call.work.cancel()
        reaper = self._create_task(self._reap(node, call), node)
        node.abandoned[reaper] = self._clock.monotonic()
        reaper.add_done_callback(lambda _: self._on_reaped(node, reaper))

    async def _reap(self, node: Node, call: LifecycleCall) -> None:
        """Wait for an abandoned call, and close the resource that it may return."""
        await self._clock.wait({call.work}, self._limits.abandon_grace)
        if not call.work.done():
            self._observe(CallAbandoned(node.spec.name, call.activity))
            await asyncio.wait({call.work})
        if self._redacted_error(call.work) is None and call.offer is not None:
            await self._close_late_result(node, call.offer, call.work.result())

    def _on_reaped(self, node: Node, reaper: asyncio.Task[None]) -> None:
        del node.abandoned[reaper]
        self._on_abandoned_return(node)

    async def _close_late_result(self, node: Node, offer: Offer, resource: object) -> None:
        closing = self._create_task(_close_resource(offer, resource), node)
        await self._clock.wait({closing}, self._limits.close)
        closing.cancel()
        await self._clock.wait({closing}, self._limits.abandon_grace)
        if not closing.done():
            self._observe(CallAbandoned(node.spec.name, Activity.CLOSING))
        elif (error := self._redacted_error(closing)) is not None:
            self._observe(CallFailed(node.spec.name, Activity.CLOSING, error))

    def _redacted_error(self, task: asyncio.Future[object]) -> str | None:
        error = _task_error(task)
        return self._redact(error) if error is not None else None

    def _create_task(self, work: Coroutine[None, None, _T], node: Node) -> asyncio.Task[_T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = node.spec.name
        task.add_done_callback(self._tasks.pop)
        return task


async def _close_resource(offer: Offer, resource: object) -> object:
    with trap_exit():
        await offer.builder.close(resource)
    return None


def _is_rejection(work: asyncio.Future[object]) -> bool:
    if not work.done() or work.cancelled():
        return False
    return isinstance(work.exception(), ConfigRejected)


def _task_error(task: asyncio.Future[object]) -> str | None:
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    if error is None:
        return None
    _log.debug("a call to a driver failed", exc_info=error)
    return error_text(error)


def _log_code_error(name: ResourceName, task: asyncio.Future[object]) -> None:
    """Log the traceback for the author of the driver: once, not at every attempt."""
    error = None if task.cancelled() else task.exception()
    if is_code_error(error):
        logging.getLogger(f"{_log.name}.{name}").error("bug in the driver", exc_info=error)
