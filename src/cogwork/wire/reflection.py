"""Reflection, v1 and v1alpha: clients that know no API ask here what there is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from google.protobuf import descriptor_pool
from grpclib.reflection.service import ServerReflection

from cogwork.wire.handlers import HandlerTable, Method, methods_of

_T = TypeVar("_T")


def reflection_methods(table: HandlerTable) -> list[Method]:
    """Of both versions. They describe what is in the table when they are first asked."""
    served = [_Named(name) for name in table.services()]
    versions = ServerReflection.extend(served, pool=_Pool(table))[len(served) :]
    return [method for version in versions for method in methods_of(version)]


class _Named:
    """A service of which only the name matters."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __mapping__(self) -> Mapping[str, Any]:
        return {f"/{self._name}/": None}


class _Pool:
    """The descriptors of the process. Those of a service nobody has called yet are loaded first."""

    def __init__(self, table: HandlerTable) -> None:
        self._table = table
        self._pool: Any = descriptor_pool.Default()  # type: ignore[no-untyped-call]

    def FindFileByName(self, name: str) -> Any:
        return self._pool.FindFileByName(name)

    def FindFileContainingSymbol(self, symbol: str) -> Any:
        return self._found(symbol, lambda: self._pool.FindFileContainingSymbol(symbol))

    def FindMessageTypeByName(self, name: str) -> Any:
        return self._found(name, lambda: self._pool.FindMessageTypeByName(name))

    def FindExtensionByNumber(self, message: Any, number: int) -> Any:
        return self._pool.FindExtensionByNumber(message, number)

    def FindAllExtensions(self, message: Any) -> Any:
        return self._pool.FindAllExtensions(message)

    def _found(self, symbol: str, find: Callable[[], _T]) -> _T:
        try:
            return find()
        except KeyError:
            for service in self._table.services():
                if symbol.startswith(service.rpartition(".")[0] + "."):
                    self._table.load(service)
            return find()
