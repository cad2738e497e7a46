"""Shells are started a few at a time, outside of the event loop."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.waiting import block

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from cogwork.core.workers import Workers  # noqa: E402
from cogwork.drivers.shell import child_process  # noqa: E402
from cogwork.drivers.shell.attributes import BuiltinShellAttributes  # noqa: E402
from cogwork.drivers.shell.builtin import BuiltinShell  # noqa: E402
from cogwork.graph.name import ResourceName  # noqa: E402

NAME = ResourceName.parse("rdk:service:shell/sh")


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers("shell")
    yield made
    made.close()


async def test_end_of_a_process_is_awaited(workers: Workers, tmp_path: Path) -> None:
    process = await child_process.start(workers, ["/bin/sh", "-c", "exit 3"], tmp_path, {})
    await asyncio.wait_for(child_process.wait(process), 10)
    assert process.returncode == 3


async def test_end_of_a_process_is_awaited_without_pidfd(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("os.pidfd_open", raising=False)
    process = await child_process.start(workers, ["/bin/sh", "-c", "exit 3"], tmp_path, {})
    await asyncio.wait_for(child_process.wait(process), 10)
    assert process.returncode == 3


async def test_process_is_killed_when_its_start_is_cancelled(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on, ended = threading.Event(), threading.Event(), threading.Event()
    start, started = child_process._spawn, []

    def slow_start(*arguments: Any) -> child_process.Process:
        begun.set()
        assert go_on.wait(10)
        started.append(start(*arguments))
        return started[0]

    monkeypatch.setattr(child_process, "_spawn", slow_start)
    starting = asyncio.ensure_future(
        child_process.start(workers, ["/bin/sleep", "60"], tmp_path, {})
    )
    await asyncio.to_thread(begun.wait, 10)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    go_on.set()
    await workers.run(ended.set)
    assert not psutil.pid_exists(started[0].pid)


async def test_number_of_concurrent_starts_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, under_way, most, threads = threading.Lock(), 0, 0, set()
    start = child_process._spawn

    def counting_start(*arguments: Any) -> child_process.Process:
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
            threads.add(threading.get_ident())
        block(0.01)
        process = start(*arguments)
        with lock:
            under_way -= 1
        return process

    monkeypatch.setattr(child_process, "_spawn", counting_start)
    attributes = BuiltinShellAttributes(shell="/bin/sh", directory=str(tmp_path))
    shell = BuiltinShell(NAME, attributes)
    began = time.monotonic()
    try:
        async with asyncio.timeout(30):
            await asyncio.gather(*(shell.open_terminal() for _ in range(12)))
    finally:
        await shell.close()
    assert most <= 2
    assert threading.get_ident() not in threads
    assert time.monotonic() - began >= 5 * 0.05
