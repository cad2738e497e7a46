"""The event loops of tests, and the C core of grpc initialized once per process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import grpc.aio
import pytest
import uvloop


@pytest.fixture(scope="session", autouse=True)
def grpc_core() -> Iterator[None]:
    """Initialize it, so that its permanent resources do not count as leaks of a test."""
    asyncio.run(_use_grpc())
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_use_grpc())
    # Without any connection it frees its poller, and creates another for the next one.
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
        yield
    server.stop(None).wait(10)
    grpc.aio.shutdown_grpc_aio()


async def _use_grpc() -> None:
    # Inside a loop, because it asks for the current one.
    grpc.aio.init_grpc_aio()
    server = grpc.aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    for _ in range(3):
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call: Any = channel.unary_unary("/nobody/knows")
            await asyncio.gather(*(call(b"", timeout=60) for _ in range(8)), return_exceptions=True)
    await server.stop(None)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests of the loop itself on uvloop too, as the server does."""
    both = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    is_on_both = item.get_closest_marker("both_loops") is not None
    return both if is_on_both else {"asyncio": both["asyncio"]}
