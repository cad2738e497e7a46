"""Event loops of the tests: process tests run on asyncio and uvloop, like the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop
from tests.support.waiting import run_others

_ON_BOTH_LOOPS = ("test_process.py", "test_orphans.py")


@pytest.fixture(scope="session", autouse=True)
def start_uvloop_once() -> None:
    """Start uvloop once, because its first loop keeps a signal pipe open for the process."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_others())


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    both = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
    return both if item.path.name in _ON_BOTH_LOOPS else {"asyncio": both["asyncio"]}
