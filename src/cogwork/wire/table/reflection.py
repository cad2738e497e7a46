"""Server reflection, v1 and v1alpha: lists and describes services to generic clients."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.reflection.service import ServerReflection

from cogwork.wire.table.grpc_services import FindDescriptors
from cogwork.wire.table.handlers import Handler, HandlerTable, Method, Stream, methods_from_service

_T = TypeVar("_T")


ExternalDescriptors = Callable[[], Mapping[str, DescriptorPool]]
"""Returns the services that are not in the table, each with the current descriptors of its
module."""


def reflection_methods(
    table: HandlerTable, external: ExternalDescriptors, find_descriptors: FindDescriptors
) -> list[Method]:
    """Return the methods of both versions.

    A client may name a resource as the host. If `find_descriptors` returns descriptors for the
    resource, they are used for the answer.
    """
    versions: list[Any] = ServerReflection.extend([], pool=_CombinedPool(table, external))
    for version in versions:
        version._service_names = _ServiceNames(table, external)  # noqa: SLF001 - it copies the names
    return [
        replace(method, handle=_make_handler(version, find_descriptors))
        for version in versions
        for method in methods_from_service(version)
    ]


def _make_handler(service: Any, find_descriptors: FindDescriptors) -> Handler:
    async def handle(stream: Stream) -> None:
        async for request in stream:
            pool = await find_descriptors(request.host) if request.host else None
            chosen = service
            if pool is not None:
                chosen = copy.copy(service)
                chosen._pool = pool  # noqa: SLF001 - it has no other way
            await chosen.ServerReflectionInfo(_SingleRequest(stream, request))

    return handle


class _SingleRequest:
    """A stream with a single remaining request."""

    def __init__(self, stream: Stream, request: Any) -> None:
        self._stream = stream
        self._request = request

    async def send_message(self, message: Any) -> None:
        await self._stream.send_message(message)

    async def __aiter__(self) -> AsyncIterator[Any]:
        yield self._request


class _ServiceNames:
    """The names of all services at the time of iteration."""

    def __init__(self, table: HandlerTable, external: ExternalDescriptors) -> None:
        self._table = table
        self._external = external

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._table.services(), *self._external()}))


class _CombinedPool:
    """The descriptors of this process and of modules.

    A service that has not been called yet is loaded when one of its symbols is requested.
    """

    def __init__(self, table: HandlerTable, external: ExternalDescriptors) -> None:
        self._table = table
        self._external = external
        self._pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]

    def FindFileByName(self, name: str) -> Any:
        return self._find_first(lambda pool: pool.FindFileByName(name))

    def FindFileContainingSymbol(self, symbol: str) -> Any:
        return self._find_or_load(symbol, lambda pool: pool.FindFileContainingSymbol(symbol))

    def FindMessageTypeByName(self, name: str) -> Any:
        return self._find_or_load(name, lambda pool: pool.FindMessageTypeByName(name))

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Any) -> Any:
        return self._pool.FindAllExtensions(message)

    def _find_or_load(self, symbol: str, find: Callable[[Any], _T]) -> _T:
        try:
            return find(self._pool)
        except KeyError:
            for service in self._table.services():
                if symbol.startswith(service.rpartition(".")[0] + "."):
                    self._table.load(service)
            return self._find_first(find)

    def _find_first(self, find: Callable[[Any], _T]) -> _T:
        """Search the descriptors of this process, then the external ones. Raise KeyError if none
        match."""
        for pool in (self._pool, *self._external().values()):
            with contextlib.suppress(KeyError):
                return find(pool)
        raise KeyError
