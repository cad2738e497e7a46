"""Middleware that makes calls wait for resources that are being changed.

Most clients do not retry, so a call that arrives during a reconfiguration would fail unnecessarily.
The middleware catches the error that the handler raises for such a resource, waits until the
resource is ready, and calls the handler again. Calls to ready resources are not delayed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from grpclib.const import Cardinality

from cogwork.core.clock import Clock
from cogwork.graph.name import ResourceName
from cogwork.robot.machine import Machine
from cogwork.robot.middleware.operations import Operation, current_operation
from cogwork.robot.unavailable import BeingChanged
from cogwork.wire.table.concurrency_limit import STOP_METHODS
from cogwork.wire.table.handlers import Handler, Method, ProxyRouteFactory, Stream

CHANGE_TIMEOUT = 5.0
"""Maximum seconds that a call waits for resources that are being changed."""
_DEADLINE_SHARE = 0.9
"""Share of the time until the client's deadline that a call may wait. The rest is for the call
itself."""
_READ_PREFIXES = ("Get", "Is", "List", "CaptureAll", "Transform")
"""Prefixes of read-only methods, which can safely be repeated."""


class ChangeWait:
    def __init__(
        self,
        machine: Machine,
        clock: Clock,
        make_proxy_route: ProxyRouteFactory,
        timeout: float = CHANGE_TIMEOUT,
    ) -> None:
        self._machine = machine
        self._make_proxy_route = make_proxy_route
        self._clock = clock
        self._timeout = timeout

    def wrap(self, method: Method, handle: Handler) -> Handler:
        if method.path.endswith(STOP_METHODS):
            return handle
        client_streaming = method.cardinality.client_streaming
        route = self._make_proxy_route(method)

        async def repeat(stream: _RepeatableStream) -> None:
            # Choose the handler again: during the wait, the resource may have moved to another
            # process.
            if route is not None and route.accepts(_encode(stream.first)):
                await route.handle(_RawStream(stream))
            else:
                await handle(stream)

        async def wrapper(stream: Stream) -> None:
            if client_streaming:
                stream = _RepeatableStream(stream)
            try:
                await handle(stream)
            except BeingChanged as error:
                if not isinstance(stream, _RepeatableStream):
                    stream = _RepeatableStream(stream)
                await self._repeat(method, repeat, stream, error)

        return wrapper

    async def _repeat(
        self,
        method: Method,
        repeat: Callable[[_RepeatableStream], Awaitable[None]],
        stream: _RepeatableStream,
        error: BeingChanged,
    ) -> None:
        """Repeat a call until all resources that it looks up are ready, or the time is up."""
        deadline = self._clock.monotonic() + self._time_limit(stream)
        operation = current_operation()
        while operation is not None and stream.can_rewind and _can_repeat(method, operation):
            # Release the resources: while this call holds them, they cannot be replaced.
            operation.held_resources.clear()
            operation.awaited = error.name
            try:
                is_settled = await self._wait_until_settled(error.name, deadline)
            finally:
                operation.awaited = None
            if not is_settled:
                raise self._machine.unavailable_error(error.name)
            stream.rewind()
            try:
                await repeat(stream)
            except BeingChanged as again:
                error = again
            else:
                return
        raise error

    def _time_limit(self, stream: _RepeatableStream) -> float:
        deadline = stream.deadline
        if deadline is None:
            return self._timeout
        return min(self._timeout, float(deadline.time_remaining()) * _DEADLINE_SHARE)

    async def _wait_until_settled(self, name: ResourceName, deadline: float) -> bool:
        """Wait until the resource is ready, unhealthy or removed. Return False if the deadline
        passes."""
        while (node := self._machine.nodes.get(name)) is not None and node.is_changing:
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            await self._clock.wait({node.next_state_change()}, left)
        return True


def _can_repeat(method: Method, operation: Operation) -> bool:
    """Return whether a call can be repeated: it holds no resource, or only reads."""
    return not operation.held_resources or (
        method.cardinality is Cardinality.UNARY_UNARY
        and method.path.rpartition("/")[2].startswith(_READ_PREFIXES)
    )


class _RepeatableStream:
    """A stream whose first message can be received twice."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.first: Any = stream.request
        """The first message; None until it is received."""
        self._is_rewound = False
        self.can_rewind = True
        """Whether only the first message has been received."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def rewind(self) -> None:
        self._is_rewound = self.first is not None

    async def recv_message(self) -> Any:
        if self._is_rewound:
            self._is_rewound = False
            return self.first
        message = await self._stream.recv_message()
        if self.first is None:
            self.first = message
        elif message is not self.first:
            self.can_rewind = False
        return message

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


class _RawStream:
    """A stream that encodes its requests again, to forward them to another process."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.request = _encode(stream.request) if stream.request is not None else None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def recv_message(self) -> Any:
        message = await self._stream.recv_message()
        return _encode(message) if message is not None else None

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (message := await self.recv_message()) is not None:
            yield message


def _encode(message: Any) -> bytes:
    encoded: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return encoded
