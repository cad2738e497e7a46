"""Starts what grpc's C core keeps for the life of a process, so that no test is blamed for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import grpc
import grpc.aio
import pytest


@pytest.fixture(scope="session", autouse=True)
def grpc_core() -> Iterator[None]:
    asyncio.run(_used())
    yield
    grpc.aio.shutdown_grpc_aio()


async def _used() -> None:
    # Inside a loop, because it asks for the current one.
    grpc.aio.init_grpc_aio()
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for _ in range(3):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary("/nobody/knows")
            await asyncio.gather(*(call(b"", timeout=5) for _ in range(8)), return_exceptions=True)
    await server.stop(None)
