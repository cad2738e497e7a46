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
"""As grpclib's: a name that comes several times has several pairs among the items."""


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
class Twin:
    """The same method, for resources that live in another process: it is handed the bytes."""

    is_of_use: Callable[[], bool]
    """Whether there are such resources at all."""
    takes: Callable[[bytes], bool]
    """Whether the first message of a call is for one of those."""
    handle: Handle


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
    refusal: str | None = None
    """Why it is not served, which is all that it answers; None: it is."""
    twin: Twin | None = None
    """How it is served where the resource lives in another process."""

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
TwinOf = Callable[[Method], Twin | None]


class HandlerTable:
    def __init__(
        self,
        around: Iterable[Around] = (),
        unknown: Unknown | None = None,
        twin_of: TwinOf = lambda _: None,
    ) -> None:
        """`unknown` serves what nobody registered, as bytes. `twin_of` makes the twin of a method
        that is registered."""
        self._layers = tuple(around)
        self._unknown = unknown
        self._twin_of = twin_of
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

    def methods(self, service: str) -> list[Method]:
        self.load(service)
        return [method for method in self._methods.values() if method.service == service]

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
        twin = None if method.foreign else self._twin_of(method)
        if twin is not None:
            raw = replace(method, request=None, reply=None)
            twin = replace(twin, handle=self._within(raw, twin.handle))
        return replace(method, handle=self._within(method, method.handle), twin=twin)

    def _within(self, method: Method, handle: Handle) -> Handle:
        for layer in reversed(self._layers):
            handle = layer(method, handle)
        return handle


def methods_of(service: Servable) -> list[Method]:
    return [
        Method(
            path,
            handler.cardinality,
            handler.func,
            handler.request_type,
            handler.reply_type,
            refusal=_refusal(path, handler),
        )
        for path, handler in service.__mapping__().items()
    ]


def _refusal(path: str, handler: ServiceHandler) -> str | None:
    """What a class does not override, it has from one that refuses everything."""
    owner = getattr(handler.func, "__qualname__", "")
    return f"{path} is not implemented here" if owner.startswith("Unimplemented") else None


def _service_of(path: str) -> str:
    return path.rpartition("/")[0].lstrip("/")
