from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path

import pytest
from tests.support.sizes import limit
from tests.support.waiting import pass_time, wait_until
from tests.unit.processes.managed import read_file, run_processes, shell
from tests.unit.subprocesses.children import is_alive, wait_until_gone

from cogwork.core.backoff import RetryPolicy
from cogwork.robot.hosts import ProcessState as State

SLEEP = "exec sleep 1000"


async def test_process_runs_with_its_arguments_directory_and_environment(tmp_path: Path) -> None:
    note = tmp_path / "note"
    script = 'echo "$0 $1 $A $SERVER $VIAM_HOME $(pwd)" > note; exec sleep 1000'
    config = shell("p", script, cwd=str(tmp_path), env={"A": "b"})
    config = config.model_copy(update={"args": ["-c", script, "zero", "one"]})
    async with run_processes(Path("/the/home"), {"SERVER": "yes"}) as processes:
        processes.apply(config)
        status = await processes.wait_for(State.RUNNING)
        assert await read_file(note, "\n") == f"zero one b yes /the/home {tmp_path}\n"
        assert status.error == ""
        assert status.restarts == 0
        assert status.pid is not None
        assert is_alive(status.pid)
    assert not is_alive(status.pid)


async def test_withheld_variables_and_credentials_are_not_inherited(tmp_path: Path) -> None:
    note = tmp_path / "note"
    base = {"DB": "hunter2", "COGWORK_API_KEY": "k", "LEFT": "x"}
    async with run_processes(tmp_path, base) as processes:
        processes.apply(
            shell("p", f'echo "$DB,$COGWORK_API_KEY,$LEFT" > {note}', one_shot=True),
            withheld=frozenset({"DB"}),
        )
        assert await read_file(note, "\n") == ",,x\n"


async def test_process_that_exits_is_restarted_with_backoff(tmp_path: Path) -> None:
    count = tmp_path / "count"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", f"echo x >> {count}; echo oh; exit 3"))
        status = await processes.wait_for(State.UNHEALTHY, restarts=3)
        assert status.error.startswith("exited with code 3 (last line: oh); restarting in ")
        assert status.pid is None
        failures = [event["failures"] for event in processes.events if event["state"] == "failed"]
        assert failures[:3] == [1, 2, 3]


async def test_exit_with_0_restarts_and_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_processes(tmp_path, retry=RetryPolicy(1000, 1000)) as processes:
        processes.apply(shell("p", "exit 0"))
        status = await processes.wait_for(State.UNHEALTHY)
        assert "exited with code 0; restarting in 1000" in status.error
    levels = [r.levelname for r in caplog.records if "exited" in r.getMessage()]
    assert levels == ["WARNING"]


async def test_one_shot_runs_once(tmp_path: Path) -> None:
    count = tmp_path / "count"
    once = shell("p", f"echo x >> {count}", one_shot=True)
    async with run_processes(tmp_path) as processes:
        processes.apply(once)
        await processes.wait_for(State.FINISHED)
        processes.apply(once, shell("other", SLEEP))
        await processes.wait_for(State.RUNNING, "other")
        assert processes.status().state is State.FINISHED
        assert count.read_text() == "x\n"
        processes.apply(once.model_copy(update={"env": {"A": "1"}}))
        await read_file(count, "x\nx\n")
        assert (await processes.wait_for(State.FINISHED)).restarts == 0


async def test_one_shot_that_fails_is_logged_with_its_last_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", "echo one >&2; echo two hunter2 >&2; exit 4", one_shot=True))
        status = await processes.wait_for(State.UNHEALTHY)
        assert status.error == "exited with code 4 (last line: two ***)\none\ntwo ***"
        await pass_time(0.1)
        assert processes.status().restarts == 0
    (record,) = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.getMessage() == "process p exited with code 4 (last line: two ***)"
    assert record.__dict__["lines"] == "one\ntwo ***"


async def test_one_shot_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    program = tmp_path / "late"
    config = shell("p", "", one_shot=True).model_copy(update={"name": str(program), "args": []})
    async with run_processes(tmp_path) as processes:
        processes.apply(config)
        status = await processes.wait_for(State.UNHEALTHY)
        assert "does not exist" in status.error
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o700)
        await processes.wait_for(State.FINISHED)
        await pass_time(0.1)
        assert processes.status().state is State.FINISHED
        assert processes.status().restarts == 0


async def test_only_changed_processes_are_restarted(tmp_path: Path) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("a", SLEEP), shell("b", SLEEP), shell("c", SLEEP))
        before = {name: (await processes.wait_for(State.RUNNING, name)).pid for name in "abc"}
        processes.apply(shell("a", SLEEP), shell("b", SLEEP, env={"X": "1"}), shell("d", SLEEP))
        await processes.wait_for(State.RUNNING, "d")
        changed = await processes.wait_for(State.RUNNING, "b")
        assert processes.status("a").pid == before["a"]
        assert changed.pid != before["b"]
        assert [status.id for status in processes.manager.statuses()] == ["a", "b", "d"]
        assert before["b"] is not None
        assert before["c"] is not None
        await wait_until_gone(before["b"], before["c"])


async def test_former_process_ends_before_the_next_one_starts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = (
        f"trap 'sleep 0.2; echo end >> {log}; exit' TERM; echo start >> {log}; sleep 1000 & wait"
    )
    async with run_processes(tmp_path) as processes:
        for number in range(3):
            processes.apply(shell("p", script, stop_timeout="30s", env={"N": str(number)}))
            await processes.wait_for(State.RUNNING)
            await read_file(log, "start\n" + "end\nstart\n" * number)
    assert log.read_text() == "start\nend\n" * 3


async def test_changes_in_quick_succession_leave_one_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    async with run_processes(tmp_path) as processes:
        for number in range(20):
            processes.apply(shell("p", f"echo {number} >> {log}; exec sleep 1000"))
        await processes.wait_for(State.RUNNING)
        assert (await read_file(log, "19\n")).split()[-1] == "19"


async def test_logging_can_be_switched_without_a_restart(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    ticks = tmp_path / "ticks"
    script = f"while :; do echo tick; echo x >> {ticks}; sleep 0.02; done"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", script))
        pid = (await processes.wait_for(State.RUNNING)).pid
        await read_file(ticks, "x\nx\nx\n")
        assert "tick" not in caplog.text
        processes.apply(shell("p", script, log=True))
        await processes.wait_until(lambda: "tick" in caplog.text)
        assert processes.status().pid == pid


async def test_output_is_logged_with_levels(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    script = "echo plain; echo '12:00 WARN hot'; echo 'level=debug a' >&2; echo bad >&2"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", script, log=True, one_shot=True))
        await processes.wait_for(State.FINISHED)
    lines = {(r.name, r.levelname, r.getMessage()) for r in caplog.records if ".Std" in r.name}
    assert lines == {
        ("rdk.process.p.StdOut", "INFO", "plain"),
        ("rdk.process.p.StdOut", "WARNING", "12:00 WARN hot"),
        ("rdk.process.p.StdErr", "DEBUG", "level=debug a"),
        ("rdk.process.p.StdErr", "ERROR", "bad"),
    }


@pytest.mark.parametrize("number", ["SIGINT", "int", 2, "2"])
async def test_stop_signal_is_sent(tmp_path: Path, number: str | int) -> None:
    note = tmp_path / "note"
    script = f"trap 'echo INT > {note}; exit' INT; echo up > {note}; while :; do sleep 0.01; done"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", script, stop_signal=number, stop_timeout="30s"))
        await read_file(note, "up")
        assert await processes.aclose() == []
    assert note.read_text() == "INT\n"


async def test_process_that_ignores_the_signal_is_killed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    note = tmp_path / "note"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", f"trap '' TERM; echo up > {note}; while :; do sleep 1; done"))
        await read_file(note, "up")
        pid = processes.status().pid
        assert await processes.aclose() == ["process p"]
    assert pid is not None
    assert not is_alive(pid)
    assert "process p did not stop in time and was killed" in caplog.text


async def test_close_cuts_long_stops_short(tmp_path: Path) -> None:
    note = tmp_path / "note"
    deaf = f"trap '' TERM; echo up >> {note}; while :; do sleep 1; done"
    async with run_processes(tmp_path) as processes:
        configs = [shell(name, deaf, stop_timeout="1h") for name in "ab"]
        processes.apply(*configs)
        await read_file(note, "up\nup\n")
        processes.apply(configs[0])  # so that one of them is being stopped already
        await pass_time(0.05)
        started = asyncio.get_running_loop().time()
        assert sorted(await processes.aclose(0.3)) == ["process a", "process b"]
        assert asyncio.get_running_loop().time() - started < limit(3)


async def test_sigkill_as_stop_signal_is_not_a_fault(tmp_path: Path) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", SLEEP, stop_signal="SIGKILL"))
        await processes.wait_for(State.RUNNING)
        assert await processes.aclose() == []


async def test_suspended_process_is_stopped(tmp_path: Path) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", SLEEP, stop_timeout="30s"))
        pid = (await processes.wait_for(State.RUNNING)).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        assert await processes.aclose() == []


async def test_no_process_is_started_in_an_untrusted_environment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    note = tmp_path / "note"
    async with run_processes(tmp_path, untrusted=True) as processes:
        processes.apply(shell("a", f"touch {note}"), shell("b", f"touch {note}"))
        await wait_until(lambda: caplog.text.count("is not started") == 2)
        assert processes.manager.statuses() == []
    assert not note.exists()
    errors = [r.getMessage() for r in caplog.records if r.levelno == logging.ERROR]
    assert [error.split(":")[0] for error in errors] == [
        "process a is not started",
        "process b is not started",
    ]
    assert "-untrusted-env" in errors[0]


async def test_events_are_recorded(tmp_path: Path) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", "exit 0", one_shot=True))
        await processes.wait_for(State.FINISHED)
        states = [(event["event"], event["process"], event["state"]) for event in processes.events]
        assert states == [("process", "p", "started"), ("process", "p", "finished")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"name": "no-such-program"}, 'program "no-such-program" was not found in PATH'),
        ({"name": "/no/such/program"}, "/no/such/program does not exist"),
        ({"cwd": "/no/such/directory"}, "the working directory /no/such/directory does not exist"),
        ({"name": "/etc/passwd"}, "/etc/passwd is not executable; run: chmod +x"),
        ({"username": "no-such-user"}, 'the user "no-such-user" does not exist'),
        ({"args": ["a\0b"]}, "embedded null"),
        ({"name": "/a\0b"}, "embedded null"),
        ({"cwd": "/a\0b"}, "does not exist"),
    ],
)
async def test_process_that_cannot_be_started_says_why(
    tmp_path: Path, settings: dict[str, object], words: str
) -> None:
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", "exit").model_copy(update=settings))
        status = await processes.wait_for(State.UNHEALTHY)
        assert words in status.error
        assert "restarting in" in status.error
