"""What a child starts and sends away, into a session of its own."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.modules.children import DEADLINE, Said, alive, gone, python, sh, started, within

from cogwork.core.clock import ManualClock
from cogwork.modules import orphans
from cogwork.modules.orphans import MARK_VARIABLE

DAEMON = """
import os, sys, time
read, write = os.pipe()
if os.fork():
    os.close(write)
    os.read(read, 1)
else:
    os.setsid()
    if os.fork():
        os._exit(0)
    print(os.getpid(), flush=True)
    os.close(write)
    time.sleep(1000)
"""


@pytest.fixture(autouse=True)
def adopting() -> Iterator[None]:
    """As the server does."""
    assert orphans.adopt_orphans()
    yield
    orphans.adopt_orphans(False)


async def test_a_daemon_that_holds_the_pipes_is_ended_with_the_process() -> None:
    said = Said()
    child = await started(python(DAEMON + "sys.exit(2)"), said)

    assert (await within(DEADLINE, child.exited)).code == 2
    await within(DEADLINE, child.stop())

    assert not alive(int(said.out[0]))


async def test_a_daemon_is_ended_when_its_process_is_stopped() -> None:
    said = Said()
    child = await started(python(DAEMON + "time.sleep(1000)"), said)
    daemon = int(await said.line())
    assert alive(daemon)

    await within(DEADLINE, child.stop())

    assert not alive(daemon)


async def test_a_daemon_of_another_program_is_ended_with_what_it_started() -> None:
    said = Said()
    child = await started(sh("setsid sh -c 'sleep 1000 & echo $!; echo $$; wait' & wait"), said)
    await said.line(lambda _: len(said.out) == 2)

    await within(DEADLINE, child.stop())

    assert not any(alive(int(pid)) for pid in said.out)


async def test_one_that_only_left_the_group_is_ended_even_without_the_mark() -> None:
    said = Said()
    source = "os.setpgid(0, 0); os.execve('/bin/sleep', ['sleep', '1000'], {})"
    child = await started(
        python(f"import os\npid = os.fork()\nif not pid: {source}\nprint(pid)\nos._exit(1)"), said
    )

    await within(DEADLINE, child.exited)
    await within(DEADLINE, child.stop())

    assert not alive(int(said.out[0]))


async def test_the_daemons_of_others_are_left_alone() -> None:
    mine, theirs = Said(), Said()
    launch = python(DAEMON + "time.sleep(1000)")
    one, other = await started(launch, mine), await started(launch, theirs)
    await mine.line()
    daemon = int(await theirs.line())

    await within(DEADLINE, one.stop())

    assert alive(daemon)
    assert not other.exited.done()
    await within(DEADLINE, other.stop())
    assert not alive(daemon)


async def test_the_mark_of_whoever_is_above_stays() -> None:
    said = Said()
    child = await started(sh(f'echo "${MARK_VARIABLE}"', None, **{MARK_VARIABLE: "above"}), said)
    await within(DEADLINE, child.exited)
    await child.stop()

    assert said.out[0].startswith("above ")


async def test_orphans_that_end_while_the_process_runs_are_reaped() -> None:
    clock, said = ManualClock(), Said()
    script = "sh -c 'sleep 0.01 & echo $!'; sh -c 'setsid sleep 0.01 & echo $!'; exec sleep 1000"
    child = await started(sh(script), said, clock)
    await said.line(lambda _: len(said.out) == 2)
    pids = [int(pid) for pid in said.out]
    async with asyncio.timeout(DEADLINE):
        while any(_state(pid) != "Z" for pid in pids):  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    await clock.advance(31)

    await gone(*pids)
    assert not child.exited.done()
    await within(DEADLINE, child.kill())


async def test_a_bomb_of_daemons_is_ended() -> None:
    source = """
import os, time
for _ in range(5):
    os.fork()
    os.setsid() if os.getpid() != os.getsid(0) else None
os.write(1, b'%d\\n' % os.getpid())
time.sleep(1000)
"""
    said = Said()
    child = await started(python(source), said)
    await said.line(lambda _: len(said.out) == 32)

    os.kill(child.pid, signal.SIGKILL)
    await within(DEADLINE, child.exited)
    await within(DEADLINE, child.stop())

    assert not any(alive(int(pid)) for pid in said.out)


async def test_without_adoption_a_daemon_is_not_found() -> None:
    """What adoption is for."""
    orphans.adopt_orphans(False)
    said = Said()
    child = await started(python(DAEMON + "sys.exit(2)"), said)
    await within(DEADLINE, child.exited)
    await within(DEADLINE, child.stop())
    daemon = int(said.out[0])

    assert alive(daemon)
    os.kill(daemon, signal.SIGKILL)
    await gone(daemon)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
