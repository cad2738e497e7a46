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
        """As the transport names it: `ipv4:127.0.0.1:50112`."""

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

    @property
    def service(self) -> str:
        return self.path.rpartition("/")[0].lstrip("/")


Around = Callable[[Method, Handle], Handle]
"""Wraps what holds for every method around one of them."""


class Servable(Protocol):
    """A service class as grpclib's compiler makes them."""

    def __mapping__(self) -> Mapping[str, ServiceHandler]: ...


class HandlerTable:
    def __init__(self, methods: Iterable[Method], around: Iterable[Around] = ()) -> None:
        layers = tuple(around)
        self._methods = {method.path: _wrapped(method, layers) for method in methods}

    def find(self, path: str) -> Method | None:
        return self._methods.get(path)

    def services(self) -> list[str]:
        return sorted({method.service for method in self._methods.values()})


def methods_of(service: Servable) -> list[Method]:
    return [
        Method(path, handler.cardinality, handler.func, handler.request_type, handler.reply_type)
        for path, handler in service.__mapping__().items()
    ]


def _wrapped(method: Method, layers: tuple[Around, ...]) -> Method:
    handle = method.handle
    for layer in reversed(layers):
        handle = layer(method, handle)
    return replace(method, handle=handle)
