from __future__ import annotations

from typing import NoReturn

import pytest
from grpclib.const import Cardinality

from cogwork.wire.handlers import Handler, HandlerTable, Method, Stream

SERVICE = "test.Service"


async def nothing(_: Stream) -> None:
    return


def method(name: str) -> Method:
    return Method(f"/{SERVICE}/{name}", Cardinality.UNARY_UNARY, nothing)


def test_a_service_is_loaded_once_whatever_is_asked_of_it() -> None:
    loads = 0

    def load() -> list[Method]:
        nonlocal loads
        loads += 1
        return [method("A"), method("B")]

    table = HandlerTable()
    table.add(SERVICE, load)
    assert loads == 0
    for path in ("A", "Nope", "B", "", "A", "Nope/A", "Nope"):
        found = table.find(f"/{SERVICE}/{path}")
        assert (found is not None) == (path in ("A", "B"))
    table.load(SERVICE)
    assert loads == 1


def test_a_service_that_could_not_be_loaded_is_tried_again() -> None:
    failures = 2

    def load() -> list[Method]:
        nonlocal failures
        if failures:
            failures -= 1
            raise ImportError("not yet")
        return [method("A")]

    table = HandlerTable()
    table.add(SERVICE, load)
    for _ in range(2):
        with pytest.raises(ImportError):
            table.find(f"/{SERVICE}/A")
    assert table.find(f"/{SERVICE}/A") is not None


def test_paths_that_clients_make_up_are_not_kept() -> None:
    wrapped: list[str] = []

    def around(method: Method, handle: Handler) -> Handler:
        wrapped.append(method.path)
        return handle

    async def unknown(_: str, __: Stream) -> NoReturn:
        raise NotImplementedError

    table = HandlerTable(middleware=[around], fallback=unknown)
    for number in range(3):
        found = table.find(f"/made.up/{number}")
        assert found is not None
        assert found.is_unregistered
    assert len(wrapped) == 3
    assert not table._methods


@pytest.mark.parametrize("path", ["", "/", "//", "x", "/x", "/x/", "///x/y", "/x/y/z"])
def test_any_path_at_all(path: str) -> None:
    table = HandlerTable()
    table.add(SERVICE, lambda: [method("A")])
    assert table.find(path) is None
