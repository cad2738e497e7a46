"""The public port with a front process: the same service, and a front that may end at any time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncIterator, Mapping

import psutil
import pytest
from tests.contract.conftest import grpc_core
from tests.contract.test_listener import (
    MIB,
    Site,
    call_echo,
    cancel_calls,
    connect,
    connect_grpc,
    http_get,
    peer_of,
)
from tests.support.waiting import wait_until

from cogwork.serving.front import FrontProcess, ServerSockets
from cogwork.serving.public_port import PublicPort
from cogwork.serving.socket_directory import private_directory
from cogwork.wire.transports.grpc import grpc_server
from cogwork.wire.transports.http1 import Http1Server

__all__ = ["grpc_core"]

DEADLINE = 30.0


class ProcessSite(Site):
    process: FrontProcess
    clients: list[tuple[str, bool]]

    @property
    def process_id(self) -> int:
        assert self.process.process_id is not None
        return self.process.process_id


@pytest.fixture
async def site() -> AsyncIterator[ProcessSite]:
    site = ProcessSite()
    site.clients = []
    with private_directory() as directory:
        http = Http1Server(lambda: site.application)
        http.listen(directory / "http")
        site.process = FrontProcess(
            lambda *client: site.clients.append(client), site.running.count_cancelled
        )
        site.process.use_sockets(ServerSockets(directory / "grpc", directory / "http"))
        site.public = PublicPort(site.process)
        server = grpc_server(site.table(), peer_of, running=site.running)
        server.add_insecure_port(f"unix:{directory / 'grpc'}")
        await server.start()
        await site.public.listen("localhost", 0)
        try:
            async with asyncio.timeout(2 * DEADLINE):
                yield site
        finally:
            await site.public.aclose()
            await http.aclose()
            await server.stop(None)


async def test_grpc_and_http_are_served_with_the_addresses_of_clients(site: ProcessSite) -> None:
    async with connect_grpc(site.port) as channel:
        assert await call_echo(channel, b"x" * MIB) == b"x" * MIB
        peer = await call_echo(channel, b"", method="Peer")
        assert b"ipv4:127.0.0.1:" in peer or b"ipv6:[::1]:" in peer
        await wait_until(lambda: len(site.clients) == 1)
        assert site.clients[0][0].encode() in peer
    status, body = await asyncio.to_thread(http_get, site.port, "/a")
    assert (status, body.split()[:2]) == (200, ["GET", "/a"])
    await wait_until(lambda: [connected for _, connected in site.clients] == [True, False])


async def test_front_asks_which_cancelled_calls_have_ended(
    site: ProcessSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Mapping[int, int]] = []

    def count() -> Mapping[int, int]:
        answers.append(counted())
        return answers[-1]

    counted = site.running.count_cancelled
    monkeypatch.setattr(site.process, "_count_cancelled", count)
    async with connect_grpc(site.port) as channel:
        await cancel_calls(site, channel, "Work", 3)
        await wait_until(lambda: answers[-1:] == [{1: 3}])
        site.work.set()
        await wait_until(lambda: answers[-1:] == [{}])


async def test_new_front_process_serves_clients_that_waited(
    site: ProcessSite, caplog: pytest.LogCaptureFixture
) -> None:
    async with connect_grpc(site.port) as channel:
        assert await call_echo(channel, b"1") == b"1"
        await wait_until(lambda: len(site.clients) == 1)
        before = site.process_id
        with caplog.at_level(logging.ERROR):
            os.kill(before, signal.SIGKILL)
            # Nothing is refused meanwhile: the listening sockets stay open in the server.
            statuses = [(await asyncio.to_thread(http_get, site.port, "/a"))[0] for _ in range(5)]
        assert statuses == [200] * 5
        assert site.process_id != before
        assert "the front process ended" in caplog.text
        assert site.clients[1] == (site.clients[0][0], False)
        async with asyncio.timeout(DEADLINE):
            assert await call_echo(channel, b"2") == b"2"


async def test_hung_front_process_is_replaced(
    site: ProcessSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.helpers.process._MAX_MISSED_HEARTBEATS", 1)
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
    before = site.process_id
    os.kill(before, signal.SIGSTOP)
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
    assert site.process_id != before


async def test_hung_front_process_does_not_keep_its_address(site: ProcessSite) -> None:
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
    os.kill(site.process_id, signal.SIGSTOP)
    await site.public.listen("", site.port)  # which includes the current address
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200


async def test_signals_do_not_end_the_front_process(
    site: ProcessSite,
) -> None:
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        os.kill(site.process_id, number)
    before = site.process_id
    assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
    assert site.process_id == before


async def test_another_port_keeps_connections(site: ProcessSite) -> None:
    async with connect_grpc(site.port) as channel:
        old = site.port
        assert await call_echo(channel, b"1") == b"1"
        await site.public.listen("127.0.0.1", 0)
        assert site.port != old
        assert await call_echo(channel, b"2") == b"2"
        assert (await asyncio.to_thread(http_get, site.port, "/a"))[0] == 200
        await site.public.listen("127.0.0.1", site.port)
        await site.public.stop_listening()
        with pytest.raises(ConnectionRefusedError), connect(old):
            pass
        assert await call_echo(channel, b"3") == b"3"


async def test_front_process_ends_with_the_port_and_is_small(site: ProcessSite) -> None:
    async with connect_grpc(site.port) as channel:
        await call_echo(channel, b"x" * MIB)
    process = psutil.Process(site.process_id)
    assert process.memory_info().rss < 40e6
    await site.public.aclose()
    with contextlib.suppress(psutil.NoSuchProcess):
        process.wait(DEADLINE)
    assert not process.is_running()
