"""Reflection, v1 and v1alpha: clients that know no API ask here what there is."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from google.protobuf import descriptor_pool
from google.protobuf.descriptor_pool import DescriptorPool
from grpclib.reflection.service import ServerReflection

from cogwork.wire.handlers import HandlerTable, Method, methods_of

_T = TypeVar("_T")


Brought = Callable[[], Mapping[str, DescriptorPool]]
"""Services that are not in the table, as whoever brings them describes them; at this moment."""


def reflection_methods(table: HandlerTable, brought: Brought) -> list[Method]:
    """Of both versions."""
    versions: list[Any] = ServerReflection.extend([], pool=_Pool(table, brought))
    for version in versions:
        version._service_names = _Names(table, brought)  # noqa: SLF001 - it takes them but once
    return [method for version in versions for method in methods_of(version)]


class _Names:
    """Of all services that there are, whenever somebody asks."""

    def __init__(self, table: HandlerTable, brought: Brought) -> None:
        self._table = table
        self._brought = brought

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._table.services(), *self._brought()}))


class _Pool:
    """The descriptors of the process. Those of a service nobody has called yet are loaded first."""

    def __init__(self, table: HandlerTable, brought: Brought) -> None:
        self._table = table
        self._brought = brought
        self._pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]

    def FindFileByName(self, name: str) -> Any:
        return self._first(lambda pool: pool.FindFileByName(name))

    def FindFileContainingSymbol(self, symbol: str) -> Any:
        return self._found(symbol, lambda pool: pool.FindFileContainingSymbol(symbol))

    def FindMessageTypeByName(self, name: str) -> Any:
        return self._found(name, lambda pool: pool.FindMessageTypeByName(name))

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Any) -> Any:
        return self._pool.FindAllExtensions(message)

    def _found(self, symbol: str, find: Callable[[Any], _T]) -> _T:
        try:
            return find(self._pool)
        except KeyError:
            for service in self._table.services():
                if symbol.startswith(service.rpartition(".")[0] + "."):
                    self._table.load(service)
            return self._first(find)

    def _first(self, find: Callable[[Any], _T]) -> _T:
        """In our own descriptors, or else in those that others brought."""
        for pool in (self._pool, *self._brought().values()):
            with contextlib.suppress(KeyError):
                return find(pool)
        raise KeyError
