"""The sockets of modules: identity of the caller and connection limit."""

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
from tests.unit.subprocesses.children import DEADLINE

from cogwork.modules import parent_server as parents
from cogwork.modules.parent_server import ParentServer
from cogwork.wire.table.handlers import HandlerTable, Method, Stream

CALLER_PATH = "/test/Who"


async def _send_peer(stream: Stream) -> None:
    await stream.send_message(stream.peer.encode())


@pytest.fixture
async def parent(tmp_path: Path) -> AsyncIterator[ParentServer]:
    table = HandlerTable()
    table.add("test", lambda: [Method(CALLER_PATH, Cardinality.UNARY_UNARY, _send_peer)])
    server = ParentServer(tmp_path)
    await server.start(table)
    yield server
    await server.aclose()


async def ask_peer(address: str) -> str:
    async with grpc.aio.insecure_channel(f"unix:{address}") as channel:
        call: Any = channel.unary_unary(CALLER_PATH)
        return bytes(await call(b"", timeout=DEADLINE)).decode()


async def test_peer_of_a_call_is_its_module(parent: ParentServer, tmp_path: Path) -> None:
    with (
        parent.open_socket("one", tmp_path) as one,
        parent.open_socket("other", tmp_path) as other,
    ):
        assert one != other
        assert [await ask_peer(one), await ask_peer(other)] == ["module:one", "module:other"]


async def test_socket_is_removed_with_its_module(parent: ParentServer, tmp_path: Path) -> None:
    with parent.open_socket("one", tmp_path) as address:
        assert Path(address).is_socket()
    assert not Path(address).exists()
    assert not list(tmp_path.glob("*.sock"))


async def test_connections_per_module_are_limited(
    parent: ParentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parents, "_MAX_CONNECTIONS", 2)
    loop = asyncio.get_running_loop()
    with (
        parent.open_socket("one", tmp_path) as address,
        parent.open_socket("other", tmp_path) as other,
    ):
        with contextlib.ExitStack() as stack:
            clients = [socket.socket(socket.AF_UNIX) for _ in range(3)]
            for client in clients:
                stack.enter_context(client)
                client.setblocking(False)
                await loop.sock_connect(client, address)
            async with asyncio.timeout(DEADLINE):
                # The last connection is closed at once.
                assert await loop.sock_recv(clients[-1], 1) == b""
            assert await ask_peer(other) == "module:other"
        async with asyncio.timeout(DEADLINE):
            while True:  # until the server has noticed the closed connections
                with contextlib.suppress(grpc.aio.AioRpcError):
                    assert await ask_peer(address) == "module:one"
                    break
