from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from tests.unit.subprocesses.children import (
    DEADLINE,
    OutputRecorder,
    python_program,
    shell_script,
    start_child,
    wait_within,
)

from cogwork.subprocesses import process
from cogwork.subprocesses.limits import (
    CannotLimit,
    Cgroup,
    Confinement,
    ProcessLimits,
    find_delegated_cgroup,
)
from cogwork.subprocesses.process import ExitStatus, LaunchSpec

MIB = 1 << 20


async def run_to_end(launch: LaunchSpec, output: OutputRecorder | None = None) -> ExitStatus:
    child = await start_child(launch, output)
    try:
        return await wait_within(DEADLINE, child.exited)
    finally:
        await child.stop()


async def test_exceeded_memory_limit_is_the_exit_reason() -> None:
    source = "data = bytearray(1 << 30)"

    end = await run_to_end(python_program(source, ProcessLimits(memory_bytes=512 * MIB)))

    assert end.description == (
        "exited with code 1: it probably exceeded its memory limit of 512 MiB "
        "(last line: MemoryError)"
    )
    assert (await run_to_end(python_program(source))).code == 0


async def test_exceeded_file_limit_is_the_exit_reason() -> None:
    end = await run_to_end(
        python_program("files = [open('/') for _ in '']", ProcessLimits(open_files=32))
    )
    assert end.code == 0

    end = await run_to_end(
        python_program(
            "files = [open('/dev/null') for _ in range(40)]", ProcessLimits(open_files=32)
        )
    )

    assert end.exceeded_limit == "it probably exceeded its limit of 32 open files"


async def test_limits_apply_to_the_program_from_its_start() -> None:
    output = OutputRecorder()

    await run_to_end(
        shell_script("ulimit -v; ulimit -n; echo $$; cat", ProcessLimits(300 * MIB, open_files=40)),
        output,
    )

    assert output.out[:2] == ["307200", "40"]


async def test_arguments_and_exit_codes_pass_through() -> None:
    output = OutputRecorder()
    launch = shell_script("echo", ProcessLimits(open_files=40))
    odd = LaunchSpec(
        ("/bin/sh", "-c", 'echo "$0|$1|$2"; exit 5', "a b", "$HOME", "'\""),
        launch.environment,
        launch.directory,
        launch.limits,
    )

    end = await run_to_end(odd, output)

    assert output.out == ["a b|$HOME|'\""]
    assert end == ExitStatus(5, ("a b|$HOME|'\"",))


async def test_new_privileges_are_denied() -> None:
    output = OutputRecorder()

    await run_to_end(
        shell_script("grep NoNewPrivs /proc/self/status", ProcessLimits(no_new_privileges=True)),
        output,
    )

    assert output.out[0].split() == ["NoNewPrivs:", "1"]


async def test_start_fails_when_privileges_cannot_be_denied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)

    with pytest.raises(CannotLimit, match="install util-linux"):
        await start_child(shell_script("echo", ProcessLimits(no_new_privileges=True)))


async def test_start_fails_when_the_file_limit_exceeds_the_server_limit() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    with pytest.raises(CannotLimit, match=f"the limit of the server itself is {hard}"):
        await start_child(shell_script("echo", ProcessLimits(open_files=hard + 1)))


async def test_cpu_limit_without_control_group_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "find_delegated_cgroup", lambda: None)
    child = await start_child(shell_script("exit 0", ProcessLimits(cpu_cores=0.5)))

    assert child.warnings[0].startswith("it may use more than 0.5 CPU cores: ")
    assert (await child.stop()).code in (0, -signal.SIGTERM)


class TestControlGroup:
    """Control groups, simulated with plain files."""

    @pytest.fixture
    def delegated(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(process, "find_delegated_cgroup", lambda: tmp_path)
        return tmp_path

    async def test_memory_and_cpu_limits_are_set_on_the_group(self, delegated: Path) -> None:
        output = OutputRecorder()
        child = await start_child(
            shell_script("echo up; exec sleep 1000", ProcessLimits(64 * MIB, cpu_cores=1.5)), output
        )
        await output.wait_for_line()
        (group,) = (path for path in delegated.iterdir() if path.is_dir())

        assert child.warnings == ()
        assert (delegated / "cgroup.subtree_control").read_text() == "+memory +cpu"
        assert (group / "memory.max").read_text() == str(64 * MIB)
        assert (group / "cpu.max").read_text() == "150000 100000"
        # Written by the process itself before it starts the program.
        assert (group / "cgroup.procs").read_text() == f"{child.pid}\n"
        await child.stop()

    async def test_oom_kill_of_the_group_is_the_exit_reason(self, delegated: Path) -> None:
        child = await start_child(shell_script("read a < /dev/zero", ProcessLimits(64 * MIB)))
        (group,) = (path for path in delegated.iterdir() if path.is_dir())
        (group / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
        await child.kill()

        assert child.exited.result().description == (
            "was killed by SIGKILL: it exceeded its memory limit of 64 MiB"
        )

    async def test_process_limits_apply_when_the_group_is_not_permitted(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "find_delegated_cgroup", lambda: Path("/proc/no/such"))
        output = OutputRecorder()

        await run_to_end(shell_script("ulimit -v", ProcessLimits(64 * MIB)), output)

        assert output.out == ["65536"]

    def test_empty_group_is_removed(self, tmp_path: Path) -> None:
        (tmp_path / "group").mkdir()

        assert Cgroup(tmp_path / "group").remove()
        assert not (tmp_path / "group").exists()


def test_only_a_delegated_group_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "own"
    own.write_text("1:cpu:/x\n0::/system.slice/cogwork.service/server\n")
    service = tmp_path / "system.slice" / "cogwork.service"
    marks = {str(service): b"1"}
    monkeypatch.setattr(os, "getxattr", lambda path, _: marks.get(str(path), b""))

    assert find_delegated_cgroup(own, tmp_path) == service
    own.write_text("0::/system.slice/server\n")
    assert find_delegated_cgroup(own, tmp_path) is None
    own.write_text("0::/\n")
    assert find_delegated_cgroup(own, tmp_path) is None
    own.write_text("1:cpu:/x\n")
    assert find_delegated_cgroup(own, tmp_path) is None
    assert find_delegated_cgroup(tmp_path / "none", tmp_path) is None


def test_no_exceeded_limit_without_limits() -> None:
    assert (
        Confinement((), ProcessLimits()).find_exceeded_limit(("MemoryError", "Too many open files"))
        == ""
    )
