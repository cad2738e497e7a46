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
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, run_others, wait_until
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

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.subprocesses import executable_check, orphans, process
from cogwork.subprocesses.executable_check import CannotStart
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.orphans import adopt_orphans
from cogwork.subprocesses.process import CannotStop, Child, ExitStatus, LaunchSpec, StopTimeouts

OPEN_DESCRIPTORS = Path("/proc/self/fd")
SHORT_TIMEOUTS = StopTimeouts(process=0.3, group=0.3)
IGNORE_SIGTERM = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up'); "
SLEEP_FOREVER = "import time; time.sleep(1000)"


@pytest.fixture(autouse=True)
def adopt_orphans_during_test() -> Iterator[None]:
    """Adopt orphans, as the server does."""
    assert adopt_orphans()
    yield
    adopt_orphans(False)


async def run_to_end(launch: LaunchSpec, output: OutputRecorder | None = None) -> ExitStatus:
    child = await start_child(launch, output)
    try:
        return await wait_within(DEADLINE, child.exited)
    finally:
        await child.stop()


async def test_exit_status_names_the_line_that_explains_it() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 1\nacme.NoDevice: unplugged\n'
    script = f"printf '{trace}' >&2; echo 'closing the log' >&2; exit 1"
    end = await run_to_end(shell_script(script))
    assert end.last_lines[-1] == "closing the log"
    assert end.description == "exited with code 1 (error: acme.NoDevice: unplugged)"


async def test_exit_status_has_code_and_last_stderr_line() -> None:
    output = OutputRecorder()

    end = await run_to_end(
        shell_script("echo hello; echo oh >&2; echo 'no numpy' >&2; exit 3"), output
    )

    assert end == ExitStatus(3, ("oh", "no numpy"))
    assert end.description == "exited with code 3 (last line: no numpy)"
    assert output.out == ["hello"]
    assert output.err == ["oh", "no numpy"]


async def test_exit_status_has_stdout_when_stderr_is_empty() -> None:
    assert (await run_to_end(shell_script("echo hello; exit 1"))).last_lines == ("hello",)


async def test_exit_by_signal_has_the_signal_name() -> None:
    end = await run_to_end(shell_script("kill -SEGV $$"))

    assert end.code == -signal.SIGSEGV
    assert end.description == "was killed by SIGSEGV"


async def test_exit_by_unnamed_signal_has_the_signal_number() -> None:
    assert (await run_to_end(shell_script("kill -40 $$"))).description == "was killed by signal 40"


async def test_child_gets_environment_directory_and_no_input(tmp_path: Path) -> None:
    output = OutputRecorder()
    script = 'echo "$A"; pwd; cat; echo "${HOME-none}"'
    launch = LaunchSpec(
        ("/bin/sh", "-c", script), {"A": "b c", "PATH": os.environ["PATH"]}, tmp_path
    )

    assert (await run_to_end(launch, output)).code == 0
    assert output.out == ["b c", str(tmp_path), "none"]


async def test_child_leads_its_session_and_inherits_no_descriptors() -> None:
    output = OutputRecorder()
    numbers = "sorted(set(os.listdir('/proc/self/fd')) - {'3'})"
    source = f"import os; print(os.getsid(0) == os.getpgrp() == os.getpid(), {numbers})"

    await run_to_end(python_program(source), output)

    assert output.out == ["True ['0', '1', '2']"]


async def test_exit_is_detected_while_others_hold_the_pipes() -> None:
    output = OutputRecorder()
    child = await start_child(shell_script("sleep 1000 & echo $!; exec 1>&- ; exit 4"), output)
    started_at = time.monotonic()

    end = await wait_within(DEADLINE, child.exited)

    assert end.code == 4
    assert time.monotonic() - started_at < limit(1)
    await child.stop()
    await wait_until_gone(int(output.out[0]))


async def test_unterminated_last_line_is_reported() -> None:
    output = OutputRecorder()

    end = await run_to_end(shell_script("printf 'one\\ntwo'"), output)

    assert output.out == ["one", "two"]
    assert end.last_lines == ("one", "two")


async def test_undecodable_bytes_are_replaced() -> None:
    output = OutputRecorder()

    await run_to_end(shell_script("printf 'a\\377b\\r\\n'"), output)

    assert output.out == ["a\N{REPLACEMENT CHARACTER}b"]


async def test_failing_line_callback_does_not_block_the_exit() -> None:
    lines: list[str] = []
    faults: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))

    def on_line(_: object, line: str) -> None:
        lines.append(line)
        raise ValueError(line)

    child = await Child.start(
        shell_script("echo a; echo b; exit 7"), on_line, ProgramHost(SystemClock())
    )

    assert (await wait_within(DEADLINE, child.exited)).code == 7
    assert lines == ["a", "b"]
    assert len(faults) == 2
    await child.stop()


async def test_output_flood_is_counted_and_its_last_lines_kept() -> None:
    output = OutputRecorder()
    megabytes = size(ci=100, full=1000)
    source = f"""
import os
for _ in range({megabytes}):
    os.write(2, b'0123456789abcde\\n' * 65536)
os.write(2, b'the reason\\n')
os._exit(9)
"""
    memory = _peak_memory()

    end = await run_to_end(python_program(source), output)

    assert end.last_lines[-1] == "the reason"
    summaries = [line for line in output.err if line.startswith("dropped ")]
    left_out = sum(int(line.split()[1]) for line in summaries)
    assert left_out + len(output.err) - len(summaries) == megabytes * 65536 + 1
    assert len(output.err) < 1010 * (2 + megabytes // 50)
    assert _peak_memory() - memory < 8 << 10


async def test_output_flood_does_not_block_the_loop() -> None:
    child = await start_child(shell_script("exec cat /dev/zero >&2"))
    longest = 0.0
    for _ in range(200):
        started_at = time.monotonic()
        await pass_time(0.001)
        longest = max(longest, time.monotonic() - started_at)
    await child.stop()

    assert longest < limit(0.25)


async def test_flooding_child_can_be_killed_at_any_time() -> None:
    faults: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))

    for moment in range(20):
        child = await start_child(shell_script("cat /dev/zero & exec cat /dev/zero >&2"))
        await pass_time(moment / 200)
        await wait_within(DEADLINE, child.kill())

    # Longer than any pause of the reader.
    await pass_time(0.1)
    assert faults == []


async def test_very_long_line_is_truncated() -> None:
    output = OutputRecorder()

    await run_to_end(
        shell_script("head -c 50000000 /dev/zero | tr '\\0' x; echo; echo next"), output
    )

    assert output.out[0].startswith("xxx")
    assert output.out[0].endswith("x … (line truncated)")
    assert len(output.out[0]) < 17 << 10
    assert output.out[1:] == ["next"]


async def test_dropped_lines_are_reported_after_a_flood() -> None:
    output = OutputRecorder()
    child = await start_child(shell_script("seq 1 5000; sleep 1000"), output)

    summary = await output.wait_for_line(lambda line: "dropped" in line)

    assert summary == "dropped 4000 lines"
    assert output.out[:1000] == [str(number) for number in range(1, 1001)]
    await child.stop()


async def test_stop_sends_sigterm_first() -> None:
    output = OutputRecorder()
    child = await start_child(
        shell_script("trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 0.01; done"), output
    )
    await output.wait_for_line()

    end = await wait_within(DEADLINE, child.stop())

    assert end.code == 5
    assert output.out == ["up", "bye"]


async def test_child_that_ignores_sigterm_is_killed() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER), output)
    await output.wait_for_line()
    started_at = time.monotonic()

    end = await wait_within(DEADLINE, child.stop(SHORT_TIMEOUTS))

    assert end.code == -signal.SIGKILL
    assert 0.5 < time.monotonic() - started_at < limit(3)


async def test_stop_timeouts_use_the_clock() -> None:
    clock, output = ManualClock(), OutputRecorder()
    source = "import os; os.write(1, b'parent\\n' if os.fork() else b'child\\n'); "
    child = await start_child(
        python_program(IGNORE_SIGTERM + source + SLEEP_FOREVER), output, clock
    )
    await output.wait_for_line(lambda line: line == "child")
    await output.wait_for_line(lambda line: line == "parent")

    stopping = asyncio.create_task(child.stop())
    await clock.advance(5.9)
    assert not child.exited.done()
    await clock.advance(0.2)

    assert (await wait_within(DEADLINE, stopping)).code == -signal.SIGKILL


async def test_program_of_a_dead_script_gets_time_to_end() -> None:
    output = OutputRecorder()
    inner = "trap 'sleep 0.2; echo bye >&2; exit' TERM; echo $$; while :; do sleep 0.01; done"
    child = await start_child(shell_script('/bin/sh -c "$INNER" & wait', INNER=inner), output)
    inside = int(await output.wait_for_line())
    started_at = time.monotonic()

    end = await wait_within(DEADLINE, child.stop())

    assert end.code == -signal.SIGTERM
    assert 0.15 < time.monotonic() - started_at < limit(2.5)
    assert output.err[-1] == "bye"
    assert not is_alive(inside)


async def test_suspended_child_is_stopped() -> None:
    output = OutputRecorder()
    child = await start_child(
        shell_script("trap 'exit 6' TERM; echo up; while :; do sleep 0.01; done"), output
    )
    await output.wait_for_line()
    os.kill(child.pid, signal.SIGSTOP)

    assert (await wait_within(2, child.stop())).code == 6


async def test_suspended_child_that_ignores_sigterm_is_killed() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER), output)
    await output.wait_for_line()
    os.kill(child.pid, signal.SIGSTOP)

    assert (await wait_within(DEADLINE, child.stop(SHORT_TIMEOUTS))).code == -signal.SIGKILL


async def test_stop_can_be_called_and_cancelled_concurrently() -> None:
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER))
    first = asyncio.create_task(child.stop(SHORT_TIMEOUTS))
    await run_others()
    others = [asyncio.create_task(child.stop()) for _ in range(3)]
    await run_others()
    first.cancel()

    ends = await wait_within(DEADLINE, asyncio.gather(*others))

    assert {end.code for end in ends} <= {-signal.SIGKILL, -signal.SIGTERM}
    assert await child.stop() == ends[0]
    await child.kill()


async def test_kill_sends_sigkill_at_once() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER), output)
    await output.wait_for_line()

    await wait_within(2, child.kill())

    assert child.exited.result().code == -signal.SIGKILL


async def test_kill_ends_a_running_stop() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER), output)
    await output.wait_for_line()
    stopping = asyncio.create_task(child.stop(StopTimeouts(100, 100)))
    await run_others()

    await wait_within(2, child.kill())

    assert (await wait_within(2, stopping)).code == -signal.SIGKILL


async def test_group_of_a_crashed_child_is_killed() -> None:
    output = OutputRecorder()
    deaf = "trap '' TERM; sleep 1000 & sleep 1000"
    child = await start_child(
        shell_script('/bin/sh -c "$DEAF" & echo $!; exit 1', DEAF=deaf), output
    )

    assert (await wait_within(DEADLINE, child.exited)).code == 1
    await child.stop()

    await wait_until_gone(int(output.out[0]))
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


async def test_group_of_a_crashed_child_is_killed_without_adoption() -> None:
    adopt_orphans(False)
    output = OutputRecorder()
    child = await start_child(shell_script("sleep 1000 & echo $!; exit 1"), output)

    assert (await wait_within(DEADLINE, child.exited)).code == 1
    await child.stop()

    await wait_until_gone(int(output.out[0]))


async def test_fork_bomb_is_killed() -> None:
    source = (
        IGNORE_SIGTERM
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
    output = OutputRecorder()
    child = await start_child(python_program(source), output)
    await output.wait_for_line(lambda _: output.out.count("forked") == 32)
    started_at = time.monotonic()

    await wait_within(DEADLINE, child.kill())

    assert time.monotonic() - started_at < limit(3)
    with pytest.raises(ProcessLookupError):
        os.killpg(child.pid, 0)


async def test_200_starts_leak_nothing() -> None:
    await run_to_end(shell_script("exit 1"))
    before = len([*OPEN_DESCRIPTORS.iterdir()]), threading.active_count(), len(asyncio.all_tasks())

    for _ in range(20):
        ends = await asyncio.gather(
            *(run_to_end(shell_script("echo a; exit 1")) for _ in range(10))
        )
        assert {end.code for end in ends} == {1}

    await wait_until(lambda: threading.active_count() <= before[1])
    assert (len([*OPEN_DESCRIPTORS.iterdir()]), len(asyncio.all_tasks())) == (before[0], before[2])


async def test_exits_are_polled_without_pidfd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(pid: int) -> int:
        raise OSError("an old kernel")

    monkeypatch.setattr(os, "pidfd_open", refuse)

    assert (await run_to_end(shell_script("sleep 0.1; exit 3"))).code == 3
    child = await start_child(shell_script("sleep 1000"))
    assert (await wait_within(2, child.stop())).code == -signal.SIGTERM


async def test_stop_raises_when_a_process_survives_the_kill(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "_KILL_TIMEOUT", 0.2)
    # As if a process of the group were waiting for a disk.
    monkeypatch.setattr(orphans, "signal_group", lambda group, number: True)
    child = await start_child(shell_script("exit 3"))

    assert (await wait_within(2, child.exited)).code == 3
    with pytest.raises(CannotStop, match=rf"process {child.pid}, or one that it started, survives"):
        await wait_within(2, child.stop())


async def test_unresponsive_disk_fails_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answer = threading.Event()
    monkeypatch.setattr(process, "_CHECK_TIMEOUT", 0.1)
    monkeypatch.setattr(executable_check, "check_executable", lambda *_: answer.wait(DEADLINE))

    with pytest.raises(CannotStart, match=r"/bin/sh cannot be started: its disk did not respond"):
        await start_child(shell_script("exit 0"))

    answer.set()


async def test_cancelled_end_task_kills_the_child() -> None:
    output = OutputRecorder()
    child = await start_child(python_program(IGNORE_SIGTERM + SLEEP_FOREVER), output)
    await output.wait_for_line()

    child._end_task.cancel()
    await asyncio.wait({child._end_task}, timeout=DEADLINE)

    assert not is_alive(child.pid)


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        (None, 0, r"does not exist; correct the path"),
        ("#!/bin/sh\n", 0o600, r"is not executable; run: chmod \+x /"),
        (
            "#!/no/such/python -u\n",
            0o700,
            r"the #! line of .* names /no/such/python, which is missing",
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
async def test_program_that_cannot_start_raises_with_advice(
    content: str | bytes | None, mode: int, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "program"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        file.chmod(mode)

    with pytest.raises(CannotStart, match=words) as caught:
        await start_child(LaunchSpec((str(file),), dict(os.environ), tmp_path))

    assert str(file) in str(caught.value)
    assert caught.value.status == "FAILED_PRECONDITION"


async def test_invalid_launch_specs_raise_with_advice(
    tmp_path: Path,
) -> None:
    with pytest.raises(CannotStart, match="is not a file"):
        await start_child(LaunchSpec((str(tmp_path),), {}, tmp_path))
    with pytest.raises(CannotStart, match="the working directory /no/such does not exist"):
        await start_child(LaunchSpec(("/bin/true",), {}, Path("/no/such")))
    with pytest.raises(CannotStart, match='"true" cannot be started: use its absolute path'):
        await start_child(LaunchSpec(("true",), {}, tmp_path))
    with pytest.raises(CannotStart, match="fix its command and environment"):
        await start_child(LaunchSpec(("/bin/true",), {"A=B": "c"}, tmp_path))


async def test_program_that_is_being_written_raises(tmp_path: Path) -> None:
    file = tmp_path / "program"
    file.write_bytes(Path("/bin/true").read_bytes())
    file.chmod(stat.S_IRWXU)
    with file.open("ab"), pytest.raises(CannotStart, match="it is being written"):
        await start_child(LaunchSpec((str(file),), {}, tmp_path))


def _peak_memory() -> int:
    """Return the peak memory of this process in KiB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


async def test_traceback_of_a_running_program_is_one_text() -> None:
    output = OutputRecorder()
    source = (
        "import traceback\n"
        "try:\n  1 / 0\nexcept ZeroDivisionError:\n  traceback.print_exc()\n"
        f"{SLEEP_FOREVER}"
    )
    child = await start_child(python_program(source), output)
    try:
        await wait_until(lambda: bool(output.err))
    finally:
        await child.stop(SHORT_TIMEOUTS)
    (text,) = output.err
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("\nZeroDivisionError: division by zero")


async def test_traceback_at_the_end_of_a_program_is_one_text_before_its_exit() -> None:
    output = OutputRecorder()
    status = await run_to_end(python_program("print('up', flush=True); {}['belt']"), output)
    assert status.error_line == "KeyError: 'belt'"
    (text,) = output.err
    assert text.endswith("\nKeyError: 'belt'")
