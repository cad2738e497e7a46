from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest
from tests.unit.modules.children import DEADLINE, Said, python, sh, started, within

from cogwork.modules import process
from cogwork.modules.limits import (
    CannotLimit,
    Cgroup,
    Confinement,
    ProcessLimits,
    find_delegated_cgroup,
)
from cogwork.modules.process import ExitStatus, LaunchSpec

MIB = 1 << 20


async def ended(launch: LaunchSpec, said: Said | None = None) -> ExitStatus:
    child = await started(launch, said)
    try:
        return await within(DEADLINE, child.exited)
    finally:
        await child.stop()


async def test_more_memory_than_allowed_is_named_as_the_reason() -> None:
    source = "data = bytearray(1 << 30)"

    end = await ended(python(source, ProcessLimits(memory_bytes=512 * MIB)))

    assert end.description == (
        "exited with code 1: it probably exceeded its memory limit of 512 MiB "
        "(last line: MemoryError)"
    )
    assert (await ended(python(source))).code == 0


async def test_more_files_than_allowed_are_named_as_the_reason() -> None:
    end = await ended(python("files = [open('/') for _ in '']", ProcessLimits(open_files=32)))
    assert end.code == 0

    end = await ended(
        python("files = [open('/dev/null') for _ in range(40)]", ProcessLimits(open_files=32))
    )

    assert end.exceeded_limit == "it probably exceeded its limit of 32 open files"


async def test_limits_hold_from_the_first_moment_for_the_program_itself() -> None:
    said = Said()

    await ended(
        sh("ulimit -v; ulimit -n; echo $$; cat", ProcessLimits(300 * MIB, open_files=40)), said
    )

    assert said.out[:2] == ["307200", "40"]


async def test_arguments_and_exit_codes_are_handed_on() -> None:
    said = Said()
    launch = sh("echo", ProcessLimits(open_files=40))
    odd = LaunchSpec(
        ("/bin/sh", "-c", 'echo "$0|$1|$2"; exit 5', "a b", "$HOME", "'\""),
        launch.environment,
        launch.directory,
        launch.limits,
    )

    end = await ended(odd, said)

    assert said.out == ["a b|$HOME|'\""]
    assert end == ExitStatus(5, ("a b|$HOME|'\"",))


async def test_new_privileges_are_denied() -> None:
    said = Said()

    await ended(
        sh("grep NoNewPrivs /proc/self/status", ProcessLimits(no_new_privileges=True)), said
    )

    assert said.out[0].split() == ["NoNewPrivs:", "1"]


async def test_privileges_that_cannot_be_denied_refuse_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)

    with pytest.raises(CannotLimit, match="install util-linux"):
        await started(sh("echo", ProcessLimits(no_new_privileges=True)))


async def test_more_files_than_the_server_may_have_refuse_the_start() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    with pytest.raises(CannotLimit, match=f"the limit of the server itself is {hard}"):
        await started(sh("echo", ProcessLimits(open_files=hard + 1)))


async def test_processor_time_without_a_control_group_is_a_note(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "find_delegated_cgroup", lambda: None)
    child = await started(sh("exit 0", ProcessLimits(cpu_cores=0.5)))

    assert child.warnings[0].startswith("it may use more than 0.5 CPU cores: ")
    assert (await child.stop()).code in (0, -signal.SIGTERM)


class TestInAControlGroup:
    """As far as files can stand for the kernel's."""

    @pytest.fixture
    def delegated(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setattr(process, "find_delegated_cgroup", lambda: tmp_path)
        return tmp_path

    async def test_memory_and_processor_time_are_limits_of_the_group(self, delegated: Path) -> None:
        said = Said()
        child = await started(
            sh("echo up; exec sleep 1000", ProcessLimits(64 * MIB, cpu_cores=1.5)), said
        )
        await said.line()
        (group,) = (path for path in delegated.iterdir() if path.is_dir())

        assert child.warnings == ()
        assert (delegated / "cgroup.subtree_control").read_text() == "+memory +cpu"
        assert (group / "memory.max").read_text() == str(64 * MIB)
        assert (group / "cpu.max").read_text() == "150000 100000"
        # Written by the process itself, ahead of the program.
        assert (group / "cgroup.procs").read_text() == f"{child.pid}\n"
        await child.stop()

    async def test_the_kernels_word_on_memory_is_told(self, delegated: Path) -> None:
        child = await started(sh("read a < /dev/zero", ProcessLimits(64 * MIB)))
        (group,) = (path for path in delegated.iterdir() if path.is_dir())
        (group / "memory.events").write_text("low 0\noom 3\noom_kill 1\n")
        await child.kill()

        assert child.exited.result().description == (
            "was killed by SIGKILL: it exceeded its memory limit of 64 MiB"
        )

    async def test_a_group_that_is_not_permitted_leaves_the_limits_of_the_process(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(process, "find_delegated_cgroup", lambda: Path("/proc/no/such"))
        said = Said()

        await ended(sh("ulimit -v", ProcessLimits(64 * MIB)), said)

        assert said.out == ["65536"]

    def test_an_empty_group_is_removed(self, tmp_path: Path) -> None:
        (tmp_path / "group").mkdir()

        assert Cgroup(tmp_path / "group").remove()
        assert not (tmp_path / "group").exists()


def test_only_a_group_that_is_delegated_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_nobody_is_blamed_without_a_limit() -> None:
    assert (
        Confinement((), ProcessLimits()).find_exceeded_limit(("MemoryError", "Too many open files"))
        == ""
    )
