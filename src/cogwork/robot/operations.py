"""Every call under way: listed, cancelled by id, waited for, ended when its time is up.

A layer around the handler table. It costs every call, so what only few ask for (an id, the
arguments as text) is made when somebody asks.
"""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Iterable
from typing import Any

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.wire.fairness import name_reader
from cogwork.wire.handlers import Handle, Method, Stream

LONGEST = 600.0
"""Seconds a call with one reply may take, when the client set no deadline."""

ID = "opid"
"""The metadata by which a client, or a module on behalf of one, names the operation."""

_UNTRACKED = ("grpc.", "proto.rpc.webrtc.")


class Cancelled(CogworkError):
    status = "CANCELLED"


class TookTooLong(CogworkError):
    status = "DEADLINE_EXCEEDED"


class Reconfigured(CogworkError):
    status = "UNAVAILABLE"


class Operation:
    __slots__ = ("_id", "_over", "holds", "method", "since", "stream", "task", "why")

    def __init__(self, method: Method, stream: Stream, clock: Clock) -> None:
        self.method = method
        self.stream = stream
        self.since = clock.monotonic()
        self.task: asyncio.Task[Any] | None = asyncio.current_task()
        self.holds: list[object] = []
        """The resources it was given."""
        self.why: CogworkError | None = None
        """What the client is told when the call is ended from here."""
        self._id: str | None = None
        self._over: asyncio.Future[None] | None = None

    @property
    def id(self) -> str:
        if self._id is None:
            given = self.stream.metadata.get(ID)
            self._id = given if isinstance(given, str) and given else str(uuid.uuid4())
        return self._id

    @property
    def asked_for(self) -> str | None:
        """The name in its request, which it may still be waiting to use; None if there is none."""
        return name_reader(self.method)(self.stream.request) or None

    @property
    def over(self) -> asyncio.Future[None]:
        if self._over is None:
            self._over = asyncio.get_running_loop().create_future()
        return self._over

    def end(self, why: CogworkError) -> None:
        if self.why is None and self.task is not None:
            self.why = why
            self.task.cancel()

    def ended(self) -> None:
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


_current: contextvars.ContextVar[Operation | None] = contextvars.ContextVar(
    "operation", default=None
)


def current_operation() -> Operation | None:
    return _current.get()


class Operations:
    def __init__(self, clock: Clock, longest: float = LONGEST) -> None:
        self._clock = clock
        self._longest = longest
        self._running: dict[Operation, None] = {}

    def around(self, method: Method, handle: Handle) -> Handle:
        if method.service.startswith(_UNTRACKED):
            return handle
        running, clock = self._running, self._clock

        async def tracked(stream: Stream) -> None:
            operation = Operation(method, stream, clock)
            running[operation] = None
            before = _current.set(operation)
            try:
                await handle(stream)
            except (Exception, asyncio.CancelledError):
                if operation.why is None:
                    raise
                assert operation.task is not None
                operation.task.uncancel()
                raise operation.why from None
            finally:
                _current.reset(before)
                del running[operation]
                operation.ended()

        return tracked

    def others(self) -> list[Operation]:
        """All but the one that asks, the oldest first."""
        asking = _current.get()
        return [operation for operation in self._running if operation is not asking]

    def started(self, operation: Operation) -> float:
        """When it began, in seconds since 1970."""
        return self._clock.time() - (self._clock.monotonic() - operation.since)

    def find(self, operation_id: str) -> list[Operation]:
        """Several when a module calls back on behalf of one, and never the one that asks."""
        return [each for each in self.others() if each.id == operation_id]

    async def watch(self) -> None:
        """End calls that nobody set a deadline for. Runs until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            self._end_overdue()

    async def quiesce(self, resource: object, name: object, grace: float) -> None:
        """Let the calls that use a resource finish, then end them."""
        await self._let_finish(resource, grace)
        for operation in self.using([resource]):
            operation.end(Reconfigured(f"{name} is being reconfigured; try again"))
        # What they tidy up may need the resource.
        await self._let_finish(resource, grace)

    def using(self, resources: Iterable[object]) -> list[Operation]:
        """Those, other than the one that asks, that hold one of the resources."""
        wanted = {id(resource) for resource in resources}
        return [each for each in self.others() if any(id(held) in wanted for held in each.holds)]

    async def _let_finish(self, resource: object, grace: float) -> None:
        deadline = self._clock.monotonic() + grace
        while using := self.using([resource]):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.wait([operation.over for operation in using], left)

    def _end_overdue(self) -> None:
        now = self._clock.monotonic()
        for operation in tuple(self._running):
            if now - operation.since < self._longest:
                return
            if _ends_by_itself(operation):
                operation.end(
                    TookTooLong(
                        f"{operation.method.path} was ended after {self._longest:g}s; set a "
                        "deadline of your own for calls that take longer"
                    )
                )


def _ends_by_itself(operation: Operation) -> bool:
    """Streams last as long as somebody listens; a client's own deadline is the transport's."""
    cardinality = operation.method.cardinality
    streams = cardinality.client_streaming or cardinality.server_streaming
    return not streams and operation.stream.deadline is None
