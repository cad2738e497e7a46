"""The handler table: every method a machine serves, whichever transport carries it.

A transport hands a `Stream` to the method's function. Whatever holds for all methods (deadlines,
limits, operations, later auth and sessions) is wrapped around the table once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from google.protobuf.message import Message
from grpclib.const import Cardinality
from grpclib.const import Handler as ServiceHandler
from grpclib.metadata import Deadline

Metadata = Mapping[str, str | bytes]


class Stream(Protocol):
    """One call, as a method sees it; the part of grpclib's stream that the SDK's services use."""

    @property
    def metadata(self) -> Metadata: ...

    @property
    def deadline(self) -> Deadline | None: ...

    @property
    def peer(self) -> str:
        """The client's own address: `ipv4:127.0.0.1:50112`."""

    @property
    def request(self) -> Any:
        """The only request, where a method takes just one; None where more may come."""

    async def recv_message(self) -> Any:
        """None when the client has sent its last one."""

    async def send_message(self, message: Any, *, end: bool = False) -> None: ...

    async def send_initial_metadata(self, *, metadata: Metadata | None = None) -> None: ...

    async def send_trailing_metadata(self, *, metadata: Metadata | None = None) -> None: ...

    def __aiter__(self) -> AsyncIterator[Any]: ...


Handle = Callable[[Stream], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Method:
    path: str
    """`/package.Service/Method`"""
    cardinality: Cardinality
    handle: Handle
    request: type[Message] | None = None
    """None: the method takes the bytes as they came."""
    reply: type[Message] | None = None
    foreign: bool = False
    """Whether nobody registered it."""

    @property
    def service(self) -> str:
        return _service_of(self.path)


Around = Callable[[Method, Handle], Handle]
"""Wraps what holds for every method around one of them."""


class Servable(Protocol):
    """A service class as grpclib's compiler makes them."""

    def __mapping__(self) -> Mapping[str, ServiceHandler]: ...


Load = Callable[[], Iterable[Method]]
Unknown = Callable[[str, Stream], Awaitable[None]]
"""Gets the path beside the call."""


class HandlerTable:
    def __init__(self, around: Iterable[Around] = (), unknown: Unknown | None = None) -> None:
        """`unknown` serves what nobody registered, as bytes."""
        self._layers = tuple(around)
        self._unknown = unknown
        self._loads: dict[str, Load] = {}
        self._loaded: set[str] = set()
        self._methods: dict[str, Method] = {}

    def add(self, service: str, load: Load) -> None:
        """The methods of a service are loaded when the first of them is called."""
        self._loads[service] = load

    def find(self, path: str) -> Method | None:
        method = self._methods.get(path)
        if method is None:
            service = _service_of(path)
            if service not in self._loads:
                return self._foreign(path)
            self.load(service)
            method = self._methods.get(path)
        return method

    def services(self) -> list[str]:
        return sorted(self._loads)

    def load(self, service: str) -> None:
        """Whoever describes a service needs its messages, which come with its methods."""
        if service not in self._loaded:
            for each in self._loads[service]():
                self._methods.setdefault(each.path, self._wrapped(each))
            self._loaded.add(service)

    def _foreign(self, path: str) -> Method | None:
        unknown = self._unknown
        if unknown is None:
            return None
        # Not kept: a client may make up as many paths as it likes.
        return self._wrapped(
            Method(
                path,
                Cardinality.STREAM_STREAM,
                lambda stream: unknown(path, stream),
                foreign=True,
            )
        )

    def _wrapped(self, method: Method) -> Method:
        handle = method.handle
        for layer in reversed(self._layers):
            handle = layer(method, handle)
        return replace(method, handle=handle)


def methods_of(service: Servable) -> list[Method]:
    return [
        Method(path, handler.cardinality, handler.func, handler.request_type, handler.reply_type)
        for path, handler in service.__mapping__().items()
    ]


def _service_of(path: str) -> str:
    return path.rpartition("/")[0].lstrip("/")
