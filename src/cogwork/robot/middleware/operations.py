"""Operations: the active calls. They can be listed, cancelled and awaited, and they time out.

This middleware adds a cost to every call, so rarely used values (an id, the arguments as text) are
computed on demand.
"""

from __future__ import annotations

import asyncio
import contextvars
import uuid
from collections.abc import Iterable
from typing import Any

from cogwork.auth.identity import Identity
from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError
from cogwork.graph.name import ResourceName
from cogwork.wire.table.concurrency_limit import resource_name_reader
from cogwork.wire.table.handlers import Handler, Method, Stream

MAX_CALL_SECONDS = 600.0
"""Timeout in seconds of unary calls without a deadline."""

OPERATION_ID_KEY = "opid"
"""Metadata key of the operation's id. The id is set by a client, or by a module that calls on
behalf of a client."""

_UNLISTED_PREFIXES = ("grpc.", "proto.rpc.")
"""Prefixes of services whose calls are not listed: they use no resource, and may stay open
forever."""


class Cancelled(CogworkError):
    status = "CANCELLED"


class TookTooLong(CogworkError):
    status = "DEADLINE_EXCEEDED"


class Reconfigured(CogworkError):
    status = "UNAVAILABLE"


class Operation:
    __slots__ = (
        "_finished",
        "_id",
        "awaited",
        "end_error",
        "held_resources",
        "identity",
        "method",
        "module",
        "since",
        "stream",
        "task",
    )

    def __init__(self, method: Method, stream: Stream, clock: Clock) -> None:
        self.method = method
        self.stream = stream
        self.since = clock.monotonic()
        self.task: asyncio.Task[Any] | None = asyncio.current_task()
        self.held_resources: list[object] = []
        """Resources that the call has looked up."""
        self.awaited: ResourceName | None = None
        """The resource whose change the call waits for."""
        self.identity: Identity | None = None
        """The identity of the caller; None if no login was required."""
        self.module: str | None = None
        """The calling module, if its access is restricted."""
        self.end_error: CogworkError | None = None
        """The error that the client receives if the machine ends the call."""
        self._id: str | None = None
        self._finished: asyncio.Future[None] | None = None

    @property
    def id(self) -> str:
        if self._id is None:
            given = self.stream.metadata.get(OPERATION_ID_KEY)
            self._id = given if isinstance(given, str) and given else str(uuid.uuid4())
        return self._id

    @property
    def requested_name(self) -> str | None:
        """The resource name in the request, even before the lookup; None if the request has no
        name."""
        return resource_name_reader(self.method)(self.stream.request) or None

    @property
    def finished(self) -> asyncio.Future[None]:
        if self._finished is None:
            self._finished = asyncio.get_running_loop().create_future()
        return self._finished

    def end(self, error: CogworkError) -> None:
        if self.end_error is None and self.task is not None:
            self.end_error = error
            self.task.cancel()

    def mark_finished(self) -> None:
        if self._finished is not None and not self._finished.done():
            self._finished.set_result(None)


_current: contextvars.ContextVar[Operation | None] = contextvars.ContextVar(
    "operation", default=None
)


def current_operation() -> Operation | None:
    return _current.get()


def current_identity() -> Identity | None:
    """Return the identity of the current call's caller; None if no login was required."""
    operation = _current.get()
    return operation.identity if operation is not None else None


class Operations:
    def __init__(self, clock: Clock, max_seconds: float = MAX_CALL_SECONDS) -> None:
        self._clock = clock
        self._max_seconds = max_seconds
        self._running: dict[Operation, None] = {}
        self._unlisted: dict[Operation, None] = {}
        self.started_count = 0
        """Number of listed calls since the server started."""

    @property
    def running_count(self) -> int:
        return len(self._running)

    def wrap(self, method: Method, handle: Handler) -> Handler:
        is_listed = not _is_unlisted(method)
        running = self._running if is_listed else self._unlisted
        clock = self._clock

        async def wrapper(stream: Stream) -> None:
            operation = Operation(method, stream, clock)
            running[operation] = None
            self.started_count += is_listed
            before = _current.set(operation)
            try:
                await handle(stream)
            except (Exception, asyncio.CancelledError):
                if operation.end_error is None:
                    raise
                assert operation.task is not None
                operation.task.uncancel()
                raise operation.end_error from None
            finally:
                _current.reset(before)
                del running[operation]
                operation.mark_finished()

        return wrapper

    def all(self) -> list[Operation]:
        """Return all operations, including unlisted ones."""
        return [*self._running, *self._unlisted]

    def others(self) -> list[Operation]:
        """Return all operations except the caller's own, oldest first."""
        current = _current.get()
        return [operation for operation in self._running if operation is not current]

    def start_time(self, operation: Operation) -> float:
        """Return the start time of an operation in seconds since 1970."""
        return self._clock.time() - (self._clock.monotonic() - operation.since)

    def find(self, operation_id: str) -> list[Operation]:
        """Return the operations with this id, except the caller's own.

        Several operations have the same id if a module calls back on behalf of a client.
        """
        return [each for each in self.others() if each.id == operation_id]

    async def watch(self) -> None:
        """End calls without a deadline when they exceed the time limit. Run until cancelled."""
        while True:
            await self._clock.sleep(1.0)
            self._end_overdue()

    async def quiesce(self, resource: object, name: object, grace: float) -> None:
        """Wait for the calls that use a resource, and end the calls that exceed the grace
        period."""
        await self._wait_until_unused(resource, grace)
        for operation in self.find_using([resource]):
            operation.end(Reconfigured(f"{name} is being reconfigured; try again"))
        # Wait once more: the cleanup of cancelled calls may need the resource.
        await self._wait_until_unused(resource, grace)

    def find_using(self, resources: Iterable[object]) -> list[Operation]:
        """Return the operations that hold one of the resources, except the caller's own."""
        wanted = {id(resource) for resource in resources}
        return [
            each
            for each in self.others()
            if any(id(held) in wanted for held in each.held_resources)
        ]

    async def _wait_until_unused(self, resource: object, grace: float) -> None:
        deadline = self._clock.monotonic() + grace
        while using := self.find_using([resource]):
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return
            await self._clock.wait([operation.finished for operation in using], left)

    def _end_overdue(self) -> None:
        now = self._clock.monotonic()
        for operation in tuple(self._running):
            if now - operation.since < self._max_seconds:
                return
            if _has_time_limit(operation):
                operation.end(
                    TookTooLong(
                        f"{operation.method.path} was cancelled after {self._max_seconds:g}s; "
                        "set a deadline for calls that take longer"
                    )
                )


def _is_unlisted(method: Method) -> bool:
    return method.service.startswith(_UNLISTED_PREFIXES)


def _has_time_limit(operation: Operation) -> bool:
    """Return whether the time limit applies to an operation.

    It does not apply to streams, which may run indefinitely, or to calls with a deadline, which the
    transport enforces.
    """
    cardinality = operation.method.cardinality
    streams = cardinality.client_streaming or cardinality.server_streaming
    return not streams and operation.stream.deadline is None
