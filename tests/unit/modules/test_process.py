from __future__ import annotations

import asyncio
import os
import signal
import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.sizes import size
from tests.unit.modules.children import DEADLINE, Said, alive, gone, python, sh, started, within

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.modules import executable_check, orphans, process
from cogwork.modules.executable_check import CannotStart
from cogwork.modules.orphans import adopt_orphans
from cogwork.modules.process import CannotStop, Child, ExitStatus, LaunchSpec, StopTimeouts

OPEN = Path("/proc/self/fd")
SHORT = StopTimeouts(process=0.3, group=0.3)
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); "
FOR_EVER = "import time; time.sleep(1000)"


@pytest.fixture(autouse=True)
def adopting() -> Iterator[None]:
    """As the server does."""
    assert adopt_orphans()
    yield
    adopt_orphans(False)


async def ended(launch: LaunchSpec, said: Said | None = None) -> ExitStatus:
    child = await started(launch, said)
    try:
        return await within(DEADLINE, child.exited)
    finally:
        await child.stop()


async def test_an_exit_code_and_the_last_line_of_stderr_are_told() -> None:
    said = Said()

    end = await ended(sh("echo hello; echo oh >&2; echo 'no numpy' >&2; exit 3"), said)

    assert end == ExitStatus(3, ("oh", "no numpy"))
    assert end.description == "exited with code 3 (last line: no numpy)"
    assert said.out == ["hello"]
    assert said.err == ["oh", "no numpy"]


async def test_stdout_is_told_when_stderr_says_nothing() -> None:
    assert (await ended(sh("echo hello; exit 1"))).last_lines == ("hello",)


async def test_a_signal_is_told_by_its_name() -> None:
    end = await ended(sh("kill -SEGV $$"))

    assert end.code == -signal.SIGSEGV
    assert end.description == "was killed by SIGSEGV"


async def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    assert (await ended(sh("kill -40 $$"))).description == "was killed by signal 40"


async def test_it_gets_its_environment_its_directory_and_no_input(tmp_path: Path) -> None:
    said = Said()
    script = 'echo "$A"; pwd; cat; echo "${HOME-none}"'
    launch = LaunchSpec(
        ("/bin/sh", "-c", script), {"A": "b c", "PATH": os.environ["PATH"]}, tmp_path
    )

    assert (await ended(launch, said)).code == 0
    assert said.out == ["b c", str(tmp_path), "none"]


async def test_it_leads_a_session_of_its_own_and_has_no_descriptor_of_ours() -> None:
    said = Said()
    numbers = "sorted(set(os.listdir('/proc/self/fd')) - {'3'})"
    source = f"import os; print(os.getsid(0) == os.getpgrp() == os.getpid(), {numbers})"

    await ended(python(source), said)

    assert said.out == ["True ['0', '1', '2']"]


async def test_the_exit_is_known_at_once_whoever_holds_the_pipes() -> None:
    said = Said()
    child = await started(sh("sleep 1000 & echo $!; exec 1>&- ; exit 4"), said)
    began = time.monotonic()

    end = await within(DEADLINE, child.exited)

    assert end.code == 4
    assert time.monotonic() - began < 1
    await child.stop()
    await gone(int(said.out[0]))


async def test_a_last_line_without_an_end_is_told() -> None:
    said = Said()

    end = await ended(sh("printf 'one\\ntwo'"), said)

    assert said.out == ["one", "two"]
    assert end.last_lines == ("one", "two")


async def test_bytes_that_are_no_text_are_told_as_far_as_they_are() -> None:
    said = Said()

    await ended(sh("printf 'a\\377b\\r\\n'"), said)

    assert said.out == ["a\N{REPLACEMENT CHARACTER}b"]


async def test_whoever_cannot_take_a_line_keeps_nothing_from_ending() -> None:
    told: list[str] = []
    faults: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))

    def on_line(_: object, line: str) -> None:
        told.append(line)
        raise ValueError(line)

    child = await Child.start(sh("echo a; echo b; exit 7"), on_line, SystemClock())

    assert (await within(DEADLINE, child.exited)).code == 7
    assert told == ["a", "b"]
    assert len(faults) == 2
    await child.stop()


async def test_a_flood_is_counted_and_its_last_words_are_kept() -> None:
    said = Said()
    megabytes = size(ci=100, full=1000)
    source = f"""
import os
for _ in range({megabytes}):
    os.write(2, b'0123456789abcde\\n' * 65536)
os.write(2, b'the reason\\n')
os._exit(9)
"""
    memory = _peak()

    end = await ended(python(source), said)

    assert end.last_lines[-1] == "the reason"
    summaries = [line for line in said.err if line.startswith("dropped ")]
    left_out = sum(int(line.split()[1]) for line in summaries)
    assert left_out + len(said.err) - len(summaries) == megabytes * 65536 + 1
    assert len(said.err) < 1010 * (2 + megabytes // 50)
    assert _peak() - memory < 8 << 10


async def test_the_loop_goes_on_during_a_flood() -> None:
    child = await started(sh("exec cat /dev/zero >&2"))
    longest = 0.0
    for _ in range(200):
        began = time.monotonic()
        await asyncio.sleep(0.001)
        longest = max(longest, time.monotonic() - began)
    await child.stop()

    assert longest < 0.25


async def test_a_flood_may_be_ended_at_any_moment() -> None:
    faults: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))

    for moment in range(20):
        child = await started(sh("cat /dev/zero & exec cat /dev/zero >&2"))
        await asyncio.sleep(moment / 200)
        await within(DEADLINE, child.kill())

    # Longer than any pause in reading.
    await asyncio.sleep(0.1)
    assert faults == []


async def test_a_line_without_end_is_cut() -> None:
    said = Said()

    await ended(sh("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo next"), said)

    assert said.out[0].startswith("xxx")
    assert said.out[0].endswith("x … (line truncated)")
    assert len(said.out[0]) < 17 << 10
    assert said.out[1:] == ["next"]


async def test_what_was_left_out_is_told_when_it_calms_down() -> None:
    said = Said()
    child = await started(sh("seq 1 5000; sleep 1000"), said)

    summary = await said.line(lambda line: "dropped" in line)

    assert summary == "dropped 4000 lines"
    assert said.out[:1000] == [str(number) for number in range(1, 1001)]
    await child.stop()


async def test_stopping_asks_first() -> None:
    said = Said()
    child = await started(
        sh("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"), said
    )
    await said.line()

    end = await within(DEADLINE, child.stop())

    assert end.code == 5
    assert said.out == ["up", "bye"]


async def test_whoever_does_not_listen_is_killed() -> None:
    said = Said()
    child = await started(python(DEAF + FOR_EVER), said)
    await said.line()
    began = time.monotonic()

    end = await within(DEADLINE, child.stop(SHORT))

    assert end.code == -signal.SIGKILL
    assert 0.5 < time.monotonic() - began < 3


async def test_the_steps_of_stopping_run_on_the_clock() -> None:
    clock, said = ManualClock(), Said()
    source = "import os; os.write(1, b'parent\\n' if os.fork() else b'child\\n'); "
    child = await started(python(DEAF + source + FOR_EVER), said, clock)
    await said.line(lambda line: line == "child")
    await said.line(lambda line: line == "parent")

    stopping = asyncio.create_task(child.stop())
    await clock.advance(5.9)
    assert not child.exited.done()
    await clock.advance(0.2)

    assert (await within(DEADLINE, stopping)).code == -signal.SIGKILL


async def test_a_script_that_just_dies_leaves_its_program_time_to_end() -> None:
    said = Said()
    inner = "trap 'sleep 0.2; echo bye >&2; exit' TERM; echo $$; while :; do sleep 0.01; done"
    child = await started(sh('/bin/sh -c "$INNER" & wait', INNER=inner), said)
    inside = int(await said.line())
    began = time.monotonic()

    end = await within(DEADLINE, child.stop())

    assert end.code == -signal.SIGTERM
    assert 0.15 < time.monotonic() - began < 2.5
    assert said.err[-1] == "bye"
    assert not alive(inside)


async def test_one_that_is_stopped_ends() -> None:
    said = Said()
    child = await started(sh("trap 'exit 6' TERM; echo up; while :; do sleep 0.01; done"), said)
    await said.line()
    os.kill(child.pid, signal.SIGSTOP)

    assert (await within(2, child.stop())).code == 6


async def test_one_that_is_stopped_and_deaf_is_killed() -> None:
    said = Said()
    child = await started(python(DEAF + FOR_EVER), said)
    await said.line()
    os.kill(child.pid, signal.SIGSTOP)

    assert (await within(DEADLINE, child.stop(SHORT))).code == -signal.SIGKILL


async def test_several_may_stop_it_and_give_up_waiting() -> None:
    child = await started(python(DEAF + FOR_EVER))
    first = asyncio.create_task(child.stop(SHORT))
    await asyncio.sleep(0)
    others = [asyncio.create_task(child.stop()) for _ in range(3)]
    await asyncio.sleep(0)
    first.cancel()

    ends = await within(DEADLINE, asyncio.gather(*others))

    assert {end.code for end in ends} <= {-signal.SIGKILL, -signal.SIGTERM}
    assert await child.stop() == ends[0]
    await child.kill()


async def test_killing_does_not_ask() -> None:
    said = Said()
    child = await started(python(DEAF + FOR_EVER), said)
    await said.line()

    await within(2, child.kill())

    assert child.exited.result().code == -signal.SIGKILL


async def test_killing_ends_a_stop_that_is_patient() -> None:
    said = Said()
    child = await started(python(DEAF + FOR_EVER), said)
    await said.line()
    stopping = asyncio.create_task(child.stop(StopTimeouts(100, 100)))
    await asyncio.sleep(0)

    await within(2, child.kill())

    assert (await within(2, stopping)).code == -signal.SIGKILL


async def test_what_a_crash_leaves_in_the_group_is_killed() -> None:
    said = Said()
    deaf = "trap '' TERM; sleep 1000 & sleep 1000"
    child = await started(sh('/bin/sh -c "$DEAF" & echo $!; exit 1', DEAF=deaf), said)

    assert (await within(DEADLINE, child.exited)).code == 1
    await child.stop()

    await gone(int(said.out[0]))
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


async def test_what_is_left_is_killed_also_where_nobody_adopts_it() -> None:
    adopt_orphans(False)
    said = Said()
    child = await started(sh("sleep 1000 & echo $!; exit 1"), said)

    assert (await within(DEADLINE, child.exited)).code == 1
    await child.stop()

    await gone(int(said.out[0]))


async def test_a_fork_bomb_is_ended() -> None:
    source = (
        DEAF
        + """
import os, time
for _ in range(5):
    os.fork()
os.write(1, b'forked\\n')
while True:
    if os.fork() == 0:
        time.sleep(0.02)
        os._exit(0)
    time.sleep(0.01)
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        pass
"""
    )
    said = Said()
    child = await started(python(source), said)
    await said.line(lambda _: said.out.count("forked") == 32)
    began = time.monotonic()

    await within(DEADLINE, child.kill())

    assert time.monotonic() - began < 3
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


async def test_two_hundred_starts_leave_nothing_behind() -> None:
    await ended(sh("exit 1"))
    before = len([*OPEN.iterdir()]), threading.active_count(), len(asyncio.all_tasks())

    for _ in range(20):
        ends = await asyncio.gather(*(ended(sh("echo a; exit 1")) for _ in range(10)))
        assert {end.code for end in ends} == {1}

    async with asyncio.timeout(DEADLINE):
        while threading.active_count() > before[1]:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    assert (len([*OPEN.iterdir()]), len(asyncio.all_tasks())) == (before[0], before[2])


async def test_without_being_told_of_exits_it_looks_for_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(pid: int) -> int:
        raise OSError("an old kernel")

    monkeypatch.setattr(os, "pidfd_open", refuse)

    assert (await ended(sh("sleep 0.1; exit 3"))).code == 3
    child = await started(sh("sleep 1000"))
    assert (await within(2, child.stop())).code == -signal.SIGTERM


async def test_who_outlives_being_killed_is_told_within_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_KILL_TIMEOUT", 0.2)
    # As if somebody in the group waited for a disk.
    monkeypatch.setattr(orphans, "signal_group", lambda group, number: True)
    child = await started(sh("exit 3"))

    assert (await within(2, child.exited)).code == 3
    with pytest.raises(CannotStop, match=rf"process {child.pid}, or one that it started, survives"):
        await within(2, child.stop())


async def test_a_disk_that_does_not_answer_holds_up_only_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(process, "_CHECK_TIMEOUT", 0.1)
    monkeypatch.setattr(executable_check, "check_executable", lambda *_: answer.wait(DEADLINE))

    with pytest.raises(CannotStart, match=r"/bin/sh cannot be started: its disk did not respond"):
        await started(sh("exit 0"))

    answer.set()


async def test_a_loop_that_ends_first_takes_the_process_along() -> None:
    said = Said()
    child = await started(python(DEAF + FOR_EVER), said)
    await said.line()

    child._end_task.cancel()
    await asyncio.wait({child._end_task}, timeout=DEADLINE)

    assert not alive(child.pid)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, r"does not exist; correct the path"),
        ("#!/bin/sh\n", 0o600, r"is not executable; run: chmod \+x /"),
        (
            "#!/no/such/python -u\n",
            0o700,
            r"names /no/such/python in its #! line, which is missing",
        ),
        ("#!/bin/sh\r\necho\r\n", 0o700, r"Windows line endings.*sed -i 's/\\r\$//' /"),
        (
            "echo hello\n",
            0o700,
            r"is not a program; if it is a script, start it with a line such as",
        ),
        ("", 0o700, r"is not a program"),
        (b"\x7fELF\x02\x01\x01".ljust(18, b"\0") + b"\xf3\0".ljust(200, b"\0"), 0o700, "riscv64"),
    ],
)
async def test_what_cannot_be_started_is_told_with_advice(
    content: str | bytes | None, mode: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "program"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)

    with pytest.raises(CannotStart, match=words) as caught:
        await started(LaunchSpec((str(file),), dict(os.environ), tmp_path))

    assert str(file) in str(caught.value)
    assert caught.value.status == "FAILED_PRECONDITION"


async def test_a_directory_is_no_program_and_a_missing_one_is_none_to_run_in(
    tmp_path: Path,
) -> None:
    with pytest.raises(CannotStart, match="is not a file"):
        await started(LaunchSpec((str(tmp_path),), {}, tmp_path))
    with pytest.raises(CannotStart, match="the working directory /no/such does not exist"):
        await started(LaunchSpec(("/bin/true",), {}, Path("/no/such")))
    with pytest.raises(CannotStart, match='"true" cannot be started: use its absolute path'):
        await started(LaunchSpec(("true",), {}, tmp_path))
    with pytest.raises(CannotStart, match="fix its environment"):
        await started(LaunchSpec(("/bin/true",), {"A=B": "c"}, tmp_path))


async def test_a_program_that_is_being_written_to_is_told(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(Path("/bin/true").read_bytes())
    file.chmod(stat.S_IRWXU)
    with file.open("ab"), pytest.raises(CannotStart, match="it is being written"):
        await started(LaunchSpec((str(file),), {}, tmp_path))


def _peak() -> int:
    """KiB that this process has had in memory at most."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])
