from __future__ import annotations

from typing import NoReturn

import pytest
from grpclib.const import Cardinality

from cogwork.wire.table.handlers import Handler, HandlerTable, Method, ProxyRoute, Stream

SERVICE = "test.Service"


async def do_nothing(_: Stream) -> None:
    return


def method(name: str) -> Method:
    return Method(f"/{SERVICE}/{name}", Cardinality.UNARY_UNARY, do_nothing)


def test_service_is_loaded_once_for_any_paths() -> None:
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


def test_service_that_failed_to_load_is_retried() -> None:
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


def test_unregistered_paths_are_not_cached() -> None:
    wrapped: list[str] = []

    def record_and_pass(method: Method, handle: Handler) -> Handler:
        wrapped.append(method.path)
        return handle

    async def unknown(_: str, __: Stream) -> NoReturn:
        raise NotImplementedError

    table = HandlerTable(middleware=[record_and_pass], fallback=unknown)
    for number in range(3):
        found = table.find(f"/made.up/{number}")
        assert found is not None
        assert found.is_unregistered
    assert len(wrapped) == 3
    assert not table._methods


@pytest.mark.parametrize("path", ["", "/", "//", "x", "/x", "/x/", "///x/y", "/x/y/z"])
def test_malformed_path_is_not_found(path: str) -> None:
    table = HandlerTable()
    table.add(SERVICE, lambda: [method("A")])
    assert table.find(path) is None


@pytest.mark.parametrize(
    ("is_enabled", "first", "is_forwarded"),
    [(True, b"there", True), (True, b"here", False), (False, b"there", False)],
)
def test_first_message_selects_the_proxy(
    *, is_enabled: bool, first: bytes, is_forwarded: bool
) -> None:
    async def forward(_: Stream) -> None:
        return

    route = ProxyRoute(lambda: is_enabled, lambda first: first == b"there", forward)
    table = HandlerTable(make_proxy_route=lambda _: route)
    table.add(SERVICE, lambda: [method("A")])
    found = table.find(f"/{SERVICE}/A")
    assert found is not None
    assert found.is_routed == is_enabled
    assert found.find_proxy(first) is (forward if is_forwarded else None)


def test_method_without_a_proxy_route_is_served_here() -> None:
    assert not method("A").is_routed
    assert method("A").find_proxy(b"there") is None
