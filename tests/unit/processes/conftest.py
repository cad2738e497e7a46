"""Runs processes as the server does: as the adopter of orphans, on both event loops."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping

import pytest
import uvloop
from tests.support.waiting import run_others

from cogwork.subprocesses.orphans import adopt_orphans


@pytest.fixture(scope="session", autouse=True)
def start_uvloop_once() -> None:
    """Start uvloop once, because its first loop keeps a signal pipe open for the process."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_others())


@pytest.fixture(autouse=True)
def adopt_orphans_during_test() -> Iterator[None]:
    assert adopt_orphans()
    yield
    adopt_orphans(False)


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
