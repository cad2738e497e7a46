from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.support.sizes import limit
from tests.support.waiting import block, pass_time
from tests.unit.subprocesses.children import OutputRecorder, shell_script, wait_within

from cogwork.core.clock import SystemClock
from cogwork.subprocesses import host as host_module
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.process import Child


async def test_only_a_few_threads_work_at_a_time() -> None:
    host, running, most = ProgramHost(SystemClock()), 0, 0
    lock = threading.Lock()

    def work() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        block(0.005)
        with lock:
            running -= 1

    await asyncio.gather(*(host.run_in_thread("work", 60, work) for _ in range(30)))
    assert most <= 2


async def test_hanging_work_delays_others_only_for_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(host_module, "_TIMEOUT", 0.05)
    host, released = ProgramHost(SystemClock()), threading.Event()
    hanging = [
        asyncio.ensure_future(host.run_in_thread("hang", 60, released.wait)) for _ in range(5)
    ]
    assert await wait_within(limit(5), host.run_in_thread("work", 60, lambda: 7)) == 7
    released.set()
    await asyncio.gather(*hanging)


async def test_floods_of_many_children_leave_time_for_the_loop() -> None:
    host = ProgramHost(SystemClock())
    flood = shell_script("while :; do echo 0123456789; done")
    output = OutputRecorder()

    def handle(stream: object, line: str) -> None:
        output.out.append(line)
        until = time.thread_time() + 0.0005  # as long as it takes to log a line
        while time.thread_time() < until:
            pass

    children = [await Child.start(flood, handle, host) for _ in range(20)]
    busy, before = time.thread_time(), time.monotonic()
    await pass_time(2)
    share = (time.thread_time() - busy) / (time.monotonic() - before)
    await asyncio.gather(*(child.kill() for child in children))
    assert share < 0.6
    assert len(output.out) > 50
