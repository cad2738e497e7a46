"""A process runs as another user, which requires root."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest
from tests.unit.processes.managed import run_processes, shell

from cogwork.robot.hosts import ProcessState as State
from cogwork.subprocesses.executable_check import Misconfigured
from cogwork.subprocesses.user_account import find_account

as_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can run a process as another user"
)
IDENTITY = 'echo "$(id -u) $(id -g) $(id -G) $HOME $USER $LOGNAME"; exit 1'


@as_root
@pytest.mark.parametrize("limits", [None, {"open_files": 100}])
async def test_process_gets_user_groups_and_home(
    tmp_path: Path, limits: dict[str, int] | None
) -> None:
    nobody = pwd.getpwnam("nobody")
    async with run_processes(tmp_path, {"HOME": "/root", "USER": "root"}) as processes:
        processes.apply(
            shell("p", IDENTITY, username="nobody", cwd="/", one_shot=True, limits=limits)
        )
        status = await processes.wait_for(State.UNHEALTHY)
    expected = f"{nobody.pw_uid} {nobody.pw_gid} {nobody.pw_gid} {nobody.pw_dir} nobody nobody"
    assert f"(last line: {expected})" in status.error


@as_root
async def test_process_of_another_user_is_stopped_with_its_daemons(tmp_path: Path) -> None:
    daemon = "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done' & exec sleep 1000"
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", daemon, username="nobody", cwd="/", stop_timeout="300ms"))
        await processes.wait_for(State.RUNNING)
        await processes.aclose()


async def test_own_user_needs_no_switch(tmp_path: Path) -> None:
    me = pwd.getpwuid(os.geteuid()).pw_name
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", 'echo "$USER $(id -u)"; exit 1', username=me, one_shot=True))
        status = await processes.wait_for(State.UNHEALTHY)
    assert f"(last line: {me} {os.geteuid()})" in status.error


def test_without_root_another_user_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.subprocesses.user_account.os.geteuid", lambda: 12345)
    with pytest.raises(Misconfigured, match=r'only root .* user "nobody".*runs as user 12345'):
        find_account("nobody")


async def test_refused_user_is_not_retried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.subprocesses.user_account.os.geteuid", lambda: 12345)
    async with run_processes(tmp_path) as processes:
        processes.apply(shell("p", "exit", username="nobody"))
        status = await processes.wait_for(State.UNHEALTHY)
    assert "restarting" not in status.error
    assert 'remove "username"' in status.error
