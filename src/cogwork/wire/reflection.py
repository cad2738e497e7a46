"""Server reflection, v1 and v1alpha: lists and describes services to generic clients."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.reflection.service import ServerReflection

from cogwork.wire.handlers import HandlerTable, Method, methods_from_service

_T = TypeVar("_T")


ExternalDescriptors = Callable[[], Mapping[str, DescriptorPool]]
"""Returns the services that are not in the table, with their modules' current descriptors."""


def reflection_methods(table: HandlerTable, external: ExternalDescriptors) -> list[Method]:
    """Return the methods of both versions."""
    versions: list[Any] = ServerReflection.extend([], pool=_CombinedPool(table, external))
    for version in versions:
        version._service_names = _ServiceNames(table, external)  # noqa: SLF001 - it copies the names
    return [method for version in versions for method in methods_from_service(version)]


class _ServiceNames:
    """The names of all services at the time of iteration."""

    def __init__(self, table: HandlerTable, external: ExternalDescriptors) -> None:
        self._table = table
        self._external = external

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._table.services(), *self._external()}))


class _CombinedPool:
    """The descriptors of this process and of modules.

    Services that were not called yet are loaded when a symbol of theirs is requested.
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
        """Search our own descriptors, then the external ones. Raise KeyError if none match."""
        for pool in (self._pool, *self._external().values()):
            with contextlib.suppress(KeyError):
                return find(pool)
        raise KeyError
