"""The listeners of the server while the configuration changes."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from typing import Any

import psutil
import pytest
from tests.contract.conftest import grpc_core
from tests.support.machine.running import http_get

from cogwork.net.address import Address
from cogwork.net.listen_sockets import CannotListen
from cogwork.serving.listen_addresses import ListenAddresses
from cogwork.serving.listeners import Listeners
from cogwork.serving.socket_directory import private_directory
from cogwork.wire.table.handlers import HandlerTable

__all__ = ["grpc_core"]

LENGTH = (b"content-length", b"5")


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
    await send({"type": "http.response.body", "body": b"hello"})


@pytest.fixture
async def listeners() -> AsyncIterator[Listeners]:
    with private_directory() as directory:
        listeners = Listeners(HandlerTable(), lambda: hello, directory)
        try:
            yield listeners
        finally:
            await listeners.stop_accepting()
            await listeners.aclose()


@pytest.fixture
def used_port() -> Any:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def listen_on(host: str, port: int, *warnings: str, grpc: Address | None = None) -> ListenAddresses:
    return ListenAddresses(Address(host, port), grpc, warnings)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def all_answer(listeners: Listeners) -> bool:
    results = [await http_get(host, port, "/") for host, port in listeners.addresses]
    return bool(results) and all(result == (200, "hello") for result in results)


async def test_start_on_a_used_port_raises(listeners: Listeners, used_port: int) -> None:
    with pytest.raises(CannotListen, match="the port is in use by another program"):
        await listeners.start(listen_on("127.0.0.1", used_port))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 64, "xn--a", "192.0.2.1"])
async def test_start_on_an_invalid_address_raises(listeners: Listeners, host: str) -> None:
    with pytest.raises(CannotListen, match=r"check network\.bind_address"):
        await listeners.start(listen_on(host, 0))


@pytest.mark.parametrize("host", ["nowhere.invalid", "a..b", "x" * 64, "192.0.2.1"])
async def test_change_to_an_invalid_address_keeps_the_old_one(
    listeners: Listeners, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    await listeners.start(listen_on("127.0.0.1", 0))
    before = listeners.addresses
    with caplog.at_level(logging.ERROR, "rdk.networking"):
        await listeners.change(listen_on(host, 0))
    assert listeners.addresses == before
    assert await all_answer(listeners)
    (record,) = caplog.records
    assert "; still listening on 127.0.0.1:0" in record.getMessage()


async def test_change_to_a_used_port_keeps_the_old_one(
    listeners: Listeners, used_port: int
) -> None:
    await listeners.start(listen_on("127.0.0.1", 0))
    before = listeners.addresses
    await listeners.change(listen_on("127.0.0.1", used_port))
    assert listeners.addresses == before
    assert await all_answer(listeners)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("localhost", "127.0.0.1"),
        ("127.0.0.1", "localhost"),
        ("127.0.0.1", "127.0.0.2"),
        ("", "localhost"),
        ("", "127.0.0.1"),
        ("127.0.0.1", ""),
    ],
)
async def test_change_of_the_host_on_the_same_port(
    listeners: Listeners, before: str, after: str
) -> None:
    port = free_port()
    await listeners.start(listen_on(before, port))
    await listeners.change(listen_on(after, port))
    hosts = {host for host, _ in listeners.addresses}
    assert hosts <= {"127.0.0.1", "127.0.0.2", "::1"} if after else "0.0.0.0" in hosts
    assert after not in ("127.0.0.1", "127.0.0.2") or hosts == {after}
    assert await all_answer(listeners)


async def test_change_to_an_unavailable_host_keeps_the_old_one(listeners: Listeners) -> None:
    port = free_port()
    await listeners.start(listen_on("127.0.0.1", port))
    await listeners.change(listen_on("192.0.2.1", port))
    assert listeners.addresses == [("127.0.0.1", port)]
    assert await all_answer(listeners)


@pytest.mark.parametrize("order", ["ba", "bc", "cab", "bcbcba", "abab"])
async def test_last_of_several_changes_counts(listeners: Listeners, order: str) -> None:
    wanted = {letter: listen_on("127.0.0.1", free_port()) for letter in "abc"}
    await listeners.start(wanted["a"])
    await asyncio.gather(*(listeners.change(wanted[letter]) for letter in order))
    assert listeners.addresses == [tuple(wanted[order[-1]].public)]
    assert await all_answer(listeners)


async def test_change_logs_the_bound_port(
    listeners: Listeners, caplog: pytest.LogCaptureFixture
) -> None:
    await listeners.start(listen_on("127.0.0.1", 0))
    with caplog.at_level(logging.INFO, "rdk.networking"):
        await listeners.change(listen_on("127.0.0.2", 0))
    ((host, port),) = listeners.addresses
    assert [record.getMessage() for record in caplog.records] == [f"listening on {host}:{port}"]


async def test_warnings_are_logged_once(
    listeners: Listeners, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "rdk.networking"):
        await listeners.start(listen_on("127.0.0.1", 0, "it is open"))
        await listeners.change(listen_on("127.0.0.1", 0, "it is open"))
        await listeners.change(listen_on("localhost", 0, "so is this"))
    assert [record.getMessage() for record in caplog.records] == ["it is open", "so is this"]


async def test_change_of_the_grpc_address_needs_a_restart(
    listeners: Listeners, caplog: pytest.LogCaptureFixture
) -> None:
    await listeners.start(listen_on("127.0.0.1", 0, grpc=Address("127.0.0.1", 0)))
    with caplog.at_level(logging.WARNING, "rdk.networking"):
        for _ in range(3):
            await listeners.change(listen_on("127.0.0.1", 0))
    assert [record.getMessage() for record in caplog.records] == [
        "the change of network.grpc_address takes effect after a restart; "
        "until then, the address is 127.0.0.1:0"
    ]


@pytest.mark.parametrize(("front", "processes"), [("process", 1), ("in_process", 0)])
async def test_front_runs_where_it_is_configured(
    listeners: Listeners, front: Any, processes: int, caplog: pytest.LogCaptureFixture
) -> None:
    before = len(psutil.Process().children())
    await listeners.start(ListenAddresses(Address("127.0.0.1", 0), None, (), front))
    assert await all_answer(listeners)
    assert len(psutil.Process().children()) - before == processes
    other: Any = "process" if front == "in_process" else "in_process"
    await listeners.change(ListenAddresses(Address("127.0.0.1", 0), None, (), other))
    assert "the change of network.front takes effect after a restart" in caplog.text
