"""Daemons of a child, which leave its group and session."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.waiting import wait_until
from tests.unit.subprocesses.children import (
    DEADLINE,
    OutputRecorder,
    is_alive,
    python_program,
    shell_script,
    start_child,
    wait_until_gone,
    wait_within,
)

from cogwork.core.clock import ManualClock
from cogwork.subprocesses import orphans
from cogwork.subprocesses.orphans import MARK_VARIABLE

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
def adopt_orphans_during_test() -> Iterator[None]:
    """Adopt orphans, as the server does."""
    assert orphans.adopt_orphans()
    yield
    orphans.adopt_orphans(False)


async def test_daemon_that_holds_the_pipes_ends_with_its_child() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(DAEMON + "sys.exit(2)"), output)

    assert (await wait_within(DEADLINE, child.exited)).code == 2
    await wait_within(DEADLINE, child.stop())

    assert not is_alive(int(output.out[0]))


async def test_daemon_ends_when_its_child_is_stopped() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(DAEMON + "time.sleep(1000)"), output)
    daemon = int(await output.wait_for_line())
    assert is_alive(daemon)

    await wait_within(DEADLINE, child.stop())

    assert not is_alive(daemon)


async def test_daemon_of_a_script_ends_with_its_processes() -> None:
    output = OutputRecorder()
    child = await start_child(
        shell_script("setsid sh -c 'sleep 1000 & echo $!; echo $$; wait' & wait"), output
    )
    await output.wait_for_line(lambda _: len(output.out) == 2)

    await wait_within(DEADLINE, child.stop())

    assert not any(is_alive(int(pid)) for pid in output.out)


async def test_process_outside_the_group_without_mark_is_ended() -> None:
    output = OutputRecorder()
    source = "os.setpgid(0, 0); os.execve('/bin/sleep', ['sleep', '1000'], {})"
    child = await start_child(
        python_program(
            f"import os\npid = os.fork()\nif not pid: {source}\nprint(pid)\nos._exit(1)"
        ),
        output,
    )

    await wait_within(DEADLINE, child.exited)
    await wait_within(DEADLINE, child.stop())

    assert not is_alive(int(output.out[0]))


async def test_daemons_of_other_children_are_kept() -> None:
    mine, theirs = OutputRecorder(), OutputRecorder()
    launch = python_program(DAEMON + "time.sleep(1000)")
    one, other = await start_child(launch, mine), await start_child(launch, theirs)
    await mine.wait_for_line()
    daemon = int(await theirs.wait_for_line())

    await wait_within(DEADLINE, one.stop())

    assert is_alive(daemon)
    assert not other.exited.done()
    await wait_within(DEADLINE, other.stop())
    assert not is_alive(daemon)


async def test_mark_of_an_outer_server_is_kept() -> None:
    output = OutputRecorder()
    child = await start_child(
        shell_script(f'echo "${MARK_VARIABLE}"', None, **{MARK_VARIABLE: "above"}), output
    )
    await wait_within(DEADLINE, child.exited)
    await child.stop()

    assert output.out[0].startswith("above ")


async def test_orphans_that_end_during_the_run_are_reaped() -> None:
    clock, output = ManualClock(), OutputRecorder()
    script = "sh -c 'sleep 0.01 & echo $!'; sh -c 'setsid sleep 0.01 & echo $!'; exec sleep 1000"
    child = await start_child(shell_script(script), output, clock)
    await output.wait_for_line(lambda _: len(output.out) == 2)
    pids = [int(pid) for pid in output.out]
    await wait_until(lambda: not any(_state(pid) != "Z" for pid in pids))

    await clock.advance(31)

    await wait_until_gone(*pids)
    assert not child.exited.done()
    await wait_within(DEADLINE, child.kill())


async def test_many_daemons_are_ended() -> None:
    source = """
import os, time
for _ in range(5):
    os.fork()
    os.setsid() if os.getpid() != os.getsid(0) else None
os.write(1, b'%d\\n' % os.getpid())
time.sleep(1000)
"""
    output = OutputRecorder()
    child = await start_child(python_program(source), output)
    await output.wait_for_line(lambda _: len(output.out) == 32)

    os.kill(child.pid, signal.SIGKILL)
    await wait_within(DEADLINE, child.exited)
    await wait_within(DEADLINE, child.stop())

    assert not any(is_alive(int(pid)) for pid in output.out)


async def test_daemon_is_not_found_without_adoption() -> None:
    """This shows why orphans are adopted."""
    orphans.adopt_orphans(False)
    output = OutputRecorder()
    child = await start_child(python_program(DAEMON + "sys.exit(2)"), output)
    await wait_within(DEADLINE, child.exited)
    await wait_within(DEADLINE, child.stop())
    daemon = int(output.out[0])

    assert is_alive(daemon)
    os.kill(daemon, signal.SIGKILL)
    await wait_until_gone(daemon)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
