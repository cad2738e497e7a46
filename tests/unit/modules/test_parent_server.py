"""The sockets of modules: whose call it is, and how many there may be."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from grpclib.const import Cardinality
from tests.contract.conftest import grpc_core as grpc_core  # what it keeps for life
from tests.unit.modules.children import DEADLINE

from cogwork.modules import parent_server as parents
from cogwork.modules.parent_server import ParentServer
from cogwork.wire.handlers import HandlerTable, Method, Stream

WHO = "/test/Who"


async def _who(stream: Stream) -> None:
    await stream.send_message(stream.peer.encode())


@pytest.fixture
async def parent(tmp_path: Path) -> AsyncIterator[ParentServer]:
    table = HandlerTable()
    table.add("test", lambda: [Method(WHO, Cardinality.UNARY_UNARY, _who)])
    made = ParentServer(tmp_path)
    await made.start(table)
    yield made
    await made.aclose()


async def ask(address: str) -> str:
    async with grpc.aio.insecure_channel(f"unix:{address}") as channel:
        call: Any = channel.unary_unary(WHO)
        return bytes(await call(b"", timeout=DEADLINE)).decode()


async def test_calls_are_known_by_their_module(parent: ParentServer) -> None:
    with parent.open_socket("one") as one, parent.open_socket("other") as other:
        assert one != other
        assert [await ask(one), await ask(other)] == ["module:one", "module:other"]


async def test_a_socket_is_gone_with_its_module(parent: ParentServer, tmp_path: Path) -> None:
    with parent.open_socket("one") as address:
        assert Path(address).is_socket()
    assert not Path(address).exists()
    assert not list(tmp_path.glob("*.sock"))


async def test_a_module_has_a_number_of_connections(
    parent: ParentServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents, "_MAX_CONNECTIONS", 2)
    loop = asyncio.get_running_loop()
    with parent.open_socket("one") as address, parent.open_socket("other") as other:
        with contextlib.ExitStack() as open_ones:
            clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
            for client in clients:
                open_ones.enter_context(client)
                client.setblocking(False)
                await loop.sock_connect(client, address)
            async with asyncio.timeout(DEADLINE):
                # The last one is closed at once.
                assert await loop.sock_recv(clients[-1], 1) == b""
            assert await ask(other) == "module:other"
        async with asyncio.timeout(DEADLINE):
            while True:  # until it is noticed that they are gone
                with contextlib.suppress(grpc.aio.AioRpcError):
                    assert await ask(address) == "module:one"
                    break
