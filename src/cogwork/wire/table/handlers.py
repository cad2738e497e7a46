"""The handler table: every method that a machine serves, independent of the transport.

A transport passes a `Stream` to the method's handler. Concerns of all methods (authentication,
deadlines, limits, operations, sessions) are middleware around the table.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from google.protobuf.message import Message
from grpclib.const import Cardinality
from grpclib.const import Handler as ServiceHandler
from grpclib.metadata import Deadline

from cogwork.core.errors import CogworkError, Unsupported
from cogwork.core.limits.byte_budget import request_budget
from cogwork.core.memory import total_memory
from cogwork.net.peer import Peer

Metadata = Mapping[str, str | bytes]
"""Metadata of a call, like grpclib's: `items()` contains a repeated name several times."""


class Stream(Protocol):
    """One call as its handler sees it. This is the part of grpclib's stream that SDK services
    use."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def deadline(self) -> Deadline | None: ...

    @property
    def peer(self) -> str:
        """The client's address: `ipv4:127.0.0.1:50112`."""

    @property
    def client(self) -> Peer:
        """The client, with the properties of its connection."""

    @property
    def request(self) -> Any:
        """The request of a method that takes exactly one message; None for client streams."""

    async def recv_message(self) -> Any:
        """Return the next message; None after the client's last message."""

    async def send_message(self, message: Any, *, end: bool = False) -> None: ...

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None: ...

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None: ...

    def __aiter__(self) -> AsyncIterator[Any]: ...


Handler = Callable[[Stream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class ProxyRoute:
    """The second handler of a method, which forwards calls to resources in other processes as raw
    bytes."""

    is_enabled: Callable[[], bool]
    """Returns whether resources may be in another process. If not, no message needs to be
    checked."""
    matches: Callable[[bytes], bool]
    """Returns whether the first message of a call names a resource in another process."""
    handle: Handler

    def accepts(self, first: bytes) -> bool:
        """Return whether a call that begins with this message must be forwarded."""
        return self.is_enabled() and self.matches(first)


@dataclass(frozen=True, slots=True)
class Method:
    path: str
    """The path: `/package.Service/Method`."""
    cardinality: Cardinality
    handle: Handler
    request: type[Message] | None = None
    """Type of the request; None if the method takes the raw bytes."""
    reply: type[Message] | None = None
    is_unregistered: bool = False
    """Whether the method is missing from the table, so that the fallback handler serves the
    call."""
    refusal: str | None = None
    """The error that the method always returns; None if it is implemented."""
    proxy_route: ProxyRoute | None = None
    """The handler for resources in other processes; None if there is none."""

    @property
    def service(self) -> str:
        return _service_of(self.path)

    @property
    def is_routed(self) -> bool:
        """Whether the first message of a call determines which process serves the call."""
        return self.proxy_route is not None and self.proxy_route.is_enabled()

    def find_proxy(self, first: bytes) -> Handler | None:
        """Return the handler that forwards a call that begins with this message.

        Return None if the resource is in this process, or does not exist.
        """
        route = self.proxy_route
        return route.handle if route is not None and route.accepts(first) else None


Middleware = Callable[[Method, Handler], Handler]
"""Returns a handler that wraps the given handler of a method."""


class Servable(Protocol):
    """A service class that grpclib's compiler generated."""

    def __mapping__(self) -> Mapping[str, ServiceHandler]: ...


MethodLoader = Callable[[], Iterable[Method]]
FallbackHandler = Callable[[str, Stream], Awaitable[None]]
"""Serves the call of an unregistered method, given its path and the call."""
ProxyRouteFactory = Callable[[Method], ProxyRoute | None]


class NotServed(Unsupported):
    """No service of this process has the method."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path[:200]} is not served here, or not in this version")


class NoReply(CogworkError):
    """A method that must reply once has ended without a reply."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} ended without a reply; this is a bug in the server")


class HandlerTable:
    def __init__(
        self,
        middleware: Iterable[Middleware] = (),
        fallback: FallbackHandler | None = None,
        make_proxy_route: ProxyRouteFactory = lambda _: None,
    ) -> None:
        """`fallback` serves unregistered methods, as raw bytes. `make_proxy_route` returns the
        proxy route of a registered method."""
        self._middleware = tuple(middleware)
        self._fallback = fallback
        self._make_proxy_route = make_proxy_route
        self._loaders: dict[str, MethodLoader] = {}
        self._loaded: set[str] = set()
        self._methods: dict[str, Method] = {}
        self.requests = request_budget(total_memory())
        """The memory budget of requests, on all transports that serve this table."""

    def add(self, service: str, load: MethodLoader) -> None:
        """Register a service. `load` runs when one of its methods is first called."""
        self._loaders[service] = load

    def find(self, path: str) -> Method | None:
        method = self._methods.get(path)
        if method is None:
            service = _service_of(path)
            if service not in self._loaders:
                return self._fallback_method(path)
            self.load(service)
            method = self._methods.get(path)
        # If the service lacks the method, fall back: a module may have another version of the
        # service.
        return method or self._fallback_method(path)

    def services(self) -> list[str]:
        return sorted(self._loaders)

    def methods(self, service: str) -> list[Method]:
        self.load(service)
        return [method for method in self._methods.values() if method.service == service]

    def load(self, service: str) -> None:
        """Load a service's methods and its message types. Reflection needs the message types."""
        if service not in self._loaded:
            for method in self._loaders[service]():
                self._methods.setdefault(method.path, self._wrap_method(method))
            self._loaded.add(service)

    def _fallback_method(self, path: str) -> Method | None:
        fallback = self._fallback
        if fallback is None:
            return None
        # Do not cache the method, because a client may invent any number of paths.
        return self._wrap_method(
            Method(
                path,
                Cardinality.STREAM_STREAM,
                lambda stream: fallback(path, stream),
                is_unregistered=True,
            )
        )

    def _wrap_method(self, method: Method) -> Method:
        route = None if method.is_unregistered else self._make_proxy_route(method)
        if route is not None:
            raw = replace(method, request=None, reply=None)
            route = replace(route, handle=self._apply_middleware(raw, route.handle))
        return replace(
            method, handle=self._apply_middleware(method, method.handle), proxy_route=route
        )

    def _apply_middleware(self, method: Method, handle: Handler) -> Handler:
        for wrap in reversed(self._middleware):
            handle = wrap(method, handle)
        return handle


def methods_from_service(service: Servable) -> list[Method]:
    return [
        Method(
            path,
            handler.cardinality,
            handler.func,
            handler.request_type,
            handler.reply_type,
            refusal=_refusal_of(path, handler),
        )
        for path, handler in service.__mapping__().items()
    ]


def _refusal_of(path: str, handler: ServiceHandler) -> str | None:
    """Return the error text for a method that is only inherited from an `Unimplemented…` base
    class; None for all other methods."""
    owner = getattr(handler.func, "__qualname__", "")
    return f"{path} is not implemented here" if owner.startswith("Unimplemented") else None


def _service_of(path: str) -> str:
    return path.rpartition("/")[0].lstrip("/")
