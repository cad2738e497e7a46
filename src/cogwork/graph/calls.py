"""The edge where the graph awaits other people's code: constructors, reconfigurations, closes.

Each call has a deadline and is watched; what it leads to is written to its node whether or not
somebody still waits for it. A call that does not return is abandoned: its late result is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import TypeVar

from cogwork.core import duration
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.events import Abandoned, Observer, Slow, StateChanged, Trouble
from cogwork.graph.limits import Limits, retry_delay, slow_moments
from cogwork.graph.name import ResourceName
from cogwork.graph.node import Call, Doing, Failure, Held, Inputs, Node, Reason, State
from cogwork.graph.progress import heard_by
from cogwork.graph.provider import Dependencies, Offer

_T = TypeVar("_T")
_log = logging.getLogger("rdk.resource_manager")
_UNFINISHED = "an earlier change in place was not finished"


class Calls:
    def __init__(
        self,
        clock: Clock,
        limits: Limits,
        observe: Observer,
        rng: random.Random,
        on_end: Callable[[Node], None],
        on_late_return: Callable[[Node], None],
        before_close: Callable[[ResourceName, object], Awaitable[None]],
    ) -> None:
        self._clock = clock
        self._limits = limits
        self._observe = observe
        self._rng = rng
        self._on_end = on_end
        self._on_late_return = on_late_return
        self._before_close = before_close
        self._generations = itertools.count(1)
        self._tasks: dict[asyncio.Task[object], ResourceName] = {}
        self._late: dict[ResourceName, dict[asyncio.Task[None], float]] = {}

    def build(
        self,
        node: Node,
        offer: Offer,
        inputs: Inputs,
        dependencies: Dependencies,
        holds: Mapping[ResourceName, int],
    ) -> None:
        def succeeded(resource: object) -> None:
            node.held = Held(resource, inputs.spec, offer, next(self._generations), holds)
            node.failure = None
            node.ready_at = self._clock.monotonic()
            self.set_state(node, State.READY)

        def failed(error: str) -> None:
            count = node.failure.count + 1 if node.failure else 1
            node.failure = self._pause(inputs, count, error)
            self.set_state(node, State.UNHEALTHY, Reason(error))

        def say(text: str) -> None:
            # Not an event: it may be said many times a second.
            if node.call is call and node.state is State.CONFIGURING:
                node.reason = Reason(text)

        async def construct() -> object:
            with _contained(), heard_by(say):
                return await offer.builder.build(inputs.spec, dependencies)

        work = self._own(construct(), node)
        call = Call(Doing.BUILDING, work, inputs, holds, offer)
        self._start(node, call, self._limits.build, succeeded, failed)

    def reconfigure(
        self,
        node: Node,
        held: Held,
        inputs: Inputs,
        dependencies: Dependencies,
        holds: Mapping[ResourceName, int],
    ) -> None:
        def succeeded(_: object) -> None:
            held.spec = inputs.spec
            held.holds = holds
            if held.broken == _UNFINISHED:
                held.broken = None
                self.set_state(node, State.READY)

        def failed(error: str) -> None:
            held.broken = f"it could not be changed in place: {error}"
            self._observe(Trouble(node.spec.name, Doing.RECONFIGURING, error))

        # Until it returns, nobody knows in which of two shapes the resource is.
        held.broken = held.broken or _UNFINISHED
        held.holds = {**held.holds, **holds}

        async def change() -> object:
            with _contained():
                await held.offer.builder.reconfigure(held.resource, inputs.spec, dependencies)
            return None

        call = Call(Doing.RECONFIGURING, self._own(change(), node), inputs, holds)
        self._start(node, call, self._limits.build, succeeded, failed)

    def close(self, node: Node, held: Held) -> None:
        held.closing = True

        def closed(_: object) -> None:
            node.held = None

        def failed(error: str) -> None:
            node.held = None
            self._observe(Trouble(node.spec.name, Doing.CLOSING, error))

        async def close() -> object:
            await self._before_close(node.spec.name, held.resource)
            return await _closed(held.offer, held.resource)

        call = Call(Doing.CLOSING, self._own(close(), node))
        self._start(node, call, self._limits.close, closed, failed)

    def lose(self, node: Node, held: Held, why: str, inputs: Inputs | None) -> None:
        """It no longer works: built anew at once, or after a pause if it had not lasted."""
        held.broken = why
        lasted = self._clock.monotonic() - node.ready_at
        node.losses = node.losses + 1 if lasted < self._limits.last_retry else 1
        if node.losses > 1 and inputs is not None:
            node.failure = self._pause(inputs, node.losses - 1, why)

    async def finished(self, node: Node) -> None:
        """Wait for the call under way; being cancelled here does not cancel it."""
        if node.call is not None and node.call.supervisor is not None:
            await asyncio.wait({node.call.supervisor})

    async def let_late_ones_return(self, node: Node) -> None:
        """An abandoned call may still hold the device the next one needs."""
        while node.late:
            deadline = max(node.late.values()) + self._limits.grace
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.wait(node.late, left)

    def abandon(self, node: Node) -> None:
        """Nobody wants the result any more."""
        call = node.call
        if call is None:
            return
        node.call = None
        if call.supervisor is not None:
            call.supervisor.cancel()
        self._let_go(node, call)

    def set_state(self, node: Node, state: State, reason: Reason | None = None) -> None:
        before, said = node.state, node.reason
        node.state, node.reason = state, reason
        if before is not state:
            node.since = self._clock.time()
        elif said == reason:
            return
        text = reason.text if reason else None
        self._observe(StateChanged(node.spec.name, before, state, text))

    async def aclose(self, patience: float) -> set[ResourceName]:
        """Give what is left `patience` seconds, then cancel it. Returns whose work was left."""
        await self._all_ended(patience)
        unfinished = set(self._tasks.values())
        for task in self._tasks:
            task.cancel()
        await self._all_ended(self._limits.grace)
        return unfinished

    def late_of(self, name: ResourceName) -> dict[asyncio.Task[None], float]:
        """The abandoned calls of a name, also of nodes that are gone."""
        return self._late.setdefault(name, {})

    def forget(self, name: ResourceName) -> None:
        if not self._late.get(name):
            self._late.pop(name, None)

    def _pause(self, inputs: Inputs, count: int, why: str) -> Failure:
        delay = retry_delay(count, self._limits, self._rng)
        return Failure(inputs, count, self._clock.monotonic() + delay, why)

    async def _all_ended(self, patience: float) -> None:
        deadline = self._clock.monotonic() + patience
        while self._tasks and (left := deadline - self._clock.monotonic()) > 0:
            await self._clock.wait(self._tasks, left)

    def _start(
        self,
        node: Node,
        call: Call,
        limit: float,
        succeeded: Callable[[object], None],
        failed: Callable[[str], None],
    ) -> None:
        node.call = call
        call.supervisor = self._own(self._supervise(node, call, limit, succeeded, failed), node)

    async def _supervise(
        self,
        node: Node,
        call: Call,
        limit: float,
        succeeded: Callable[[object], None],
        failed: Callable[[str], None],
    ) -> None:
        returned = await self._watch(node, call, limit)
        node.call = None
        if not returned:
            self._let_go(node, call)
            failed(f"{call.doing} timed out after {duration.render(limit)}")
        elif (error := _error_of(call.work)) is not None:
            if node.failure is None:
                _show_mistake(node.spec.name, call.work)
            failed(error)
        else:
            succeeded(call.work.result())
        self._on_end(node)

    async def _watch(self, node: Node, call: Call, limit: float) -> bool:
        started = self._clock.monotonic()
        for moment in slow_moments(limit):
            left = started + moment - self._clock.monotonic()
            await self._clock.wait({call.work}, left)
            if call.work.done():
                return True
            if moment < limit:
                self._observe(Slow(node.spec.name, call.doing, moment))
        return False

    def _let_go(self, node: Node, call: Call) -> None:
        call.work.cancel()
        burial = self._own(self._bury(node, call), node)
        node.late[burial] = self._clock.monotonic()
        burial.add_done_callback(lambda _: self._buried(node, burial))

    async def _bury(self, node: Node, call: Call) -> None:
        """Await what was abandoned, and close what it may still bring."""
        await self._clock.wait({call.work}, self._limits.grace)
        if not call.work.done():
            self._observe(Abandoned(node.spec.name, call.doing))
            await asyncio.wait({call.work})
        if _error_of(call.work) is None and call.offer is not None:
            await self._close_late(node, call.offer, call.work.result())

    def _buried(self, node: Node, burial: asyncio.Task[None]) -> None:
        del node.late[burial]
        self._on_late_return(node)

    async def _close_late(self, node: Node, offer: Offer, resource: object) -> None:
        closing = self._own(_closed(offer, resource), node)
        await self._clock.wait({closing}, self._limits.close)
        closing.cancel()
        await self._clock.wait({closing}, self._limits.grace)
        if not closing.done():
            self._observe(Abandoned(node.spec.name, Doing.CLOSING))
        elif (error := _error_of(closing)) is not None:
            self._observe(Trouble(node.spec.name, Doing.CLOSING, error))

    def _own(self, work: Coroutine[None, None, _T], node: Node) -> asyncio.Task[_T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = node.spec.name
        task.add_done_callback(self._tasks.pop)
        return task


async def _closed(offer: Offer, resource: object) -> object:
    with _contained():
        await offer.builder.close(resource)
    return None


@contextlib.contextmanager
def _contained() -> Iterator[None]:
    """A driver that exits takes the process with it, unless it is stopped here."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"it called sys.exit({error.code!r})") from None


def _error_of(task: asyncio.Future[object]) -> str | None:
    if task.cancelled():
        return "it was cancelled"
    error = task.exception()
    if error is None:
        return None
    _log.debug("a driver failed", exc_info=error)
    return _words_of(error)


def _show_mistake(name: ResourceName, task: asyncio.Future[object]) -> None:
    """Whoever wrote the driver needs to know where; once, not at every attempt."""
    error = None if task.cancelled() else task.exception()
    if _is_mistake(error):
        logging.getLogger(f"{_log.name}.{name}").error("a fault in its code", exc_info=error)


def _is_mistake(error: BaseException | None) -> bool:
    return isinstance(error, _MISTAKES) and not isinstance(error, CogworkError)


def _words_of(error: BaseException) -> str:
    kind = type(error).__name__
    try:
        # It may quote the name of a file that is no text, which nobody could be told.
        text = str(error).encode(errors="backslashreplace").decode()
    except Exception:
        return f"{kind}, which cannot be put into words"
    # Of a mistake in the code, the text alone ("'fps'") says nothing.
    return f"{kind}: {text}".removesuffix(": ") if _is_mistake(error) else text or kind


_MISTAKES = (LookupError, TypeError, AttributeError, NameError, ImportError, AssertionError)
