"""The server as a service, with a `systemctl` that does and says what systemd would."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from cogwork.agent.supervision.systemd_server import SystemdServer
from cogwork.systemd.systemctl import Systemctl, SystemctlFailed

SYSTEMCTL = """\
#!/bin/sh
cd {directory}
echo "$*" >> calls
case "$1" in
    start) . ./start ;;
    stop) if [ "$2" = --no-block ]; then . ./ask; else . ./stop; fi ;;
    kill) kill -9 "$(cat pid)"; rm pid ;;
    show)
        echo "MainPID=$(cat pid 2>/dev/null || echo 0)"
        cat properties 2>/dev/null || echo ActiveState=active ;;
esac
"""


class Computer:
    """Its service is the process whose ID is in a file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        program = directory / "systemctl"
        program.write_text(SYSTEMCTL.format(directory=directory))
        program.chmod(0o755)
        self.set("start", "")
        self.set("stop", "rm -f pid")
        self.set("ask", "")
        self.systemctl = Systemctl(program=str(program))

    def set(self, file: str, text: str) -> None:
        (self._directory / file).write_text(text)

    def run_service(self) -> int:
        process = subprocess.Popen(["sleep", "600"])
        self._processes.append(process)
        self.set("pid", str(process.pid))
        return process.pid

    def end_service(self, number: int = signal.SIGTERM) -> None:
        self._processes[-1].send_signal(number)
        self._processes[-1].wait()

    @property
    def calls(self) -> list[str]:
        """What `systemctl` was asked to do, but for questions."""
        lines = (self._directory / "calls").read_text().splitlines()
        return [line for line in lines if not line.startswith("show")]

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


@pytest.fixture
def computer(tmp_path: Path) -> Iterator[Computer]:
    made = Computer(tmp_path)
    yield made
    made.close()


async def test_running_service_is_found_and_not_started_again(computer: Computer) -> None:
    process_id = computer.run_service()
    server = SystemdServer(computer.systemctl)
    assert server.process_id == process_id
    await server.start()
    assert computer.calls == []
    computer.end_service()
    assert server.process_id is None


async def test_start_does_not_wait_until_the_service_is_ready(computer: Computer) -> None:
    server = SystemdServer(computer.systemctl)
    process_id = computer.run_service()
    (computer._directory / "pid").unlink()
    computer.set("start", f"echo {process_id} > pid")
    await server.start()
    assert server.process_id == process_id
    assert computer.calls == ["start --no-block cogwork-server.service"]


async def test_service_that_ends_at_once(computer: Computer) -> None:
    server = SystemdServer(computer.systemctl)
    computer.set("properties", "ActiveState=failed\nExecMainCode=1\nExecMainStatus=7\n")
    await server.start()
    assert server.process_id is None
    assert await server.wait() == ("it ended with exit code 7; see: journalctl -u cogwork-server")


async def test_service_that_gets_no_process_is_given_up(
    computer: Computer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.agent.supervision.systemd_server._START_TIMEOUT", 0.1)
    server = SystemdServer(computer.systemctl)
    await server.start()
    assert server.process_id is None


async def test_systemd_that_refuses_is_an_error_of_the_computer(computer: Computer) -> None:
    server = SystemdServer(computer.systemctl)
    computer.set("start", "echo Access denied >&2; exit 4")
    with pytest.raises(OSError, match="Access denied"):
        await server.start()


async def test_stop_takes_the_time_that_the_service_needs(computer: Computer) -> None:
    computer.run_service()
    server = SystemdServer(computer.systemctl)
    await server.stop()
    assert computer.calls == ["stop cogwork-server.service"]
    assert server.process_id is None


async def test_version_that_failed_is_killed_if_it_does_not_stop(computer: Computer) -> None:
    computer.run_service()
    server = SystemdServer(computer.systemctl)
    await server.stop(0.05)
    assert computer.calls == [
        "stop --no-block cogwork-server.service",
        "kill --signal=KILL cogwork-server.service",
        "stop cogwork-server.service",
    ]
    assert server.process_id is None


async def test_version_that_failed_and_stops_is_not_killed(computer: Computer) -> None:
    computer.run_service()
    server = SystemdServer(computer.systemctl)
    computer.set("ask", 'kill "$(cat pid)"')
    await server.stop(60)
    assert [call.split()[0] for call in computer.calls] == ["stop", "stop"]


@pytest.mark.parametrize(
    ("properties", "how"),
    [
        ("ExecMainCode=1\nExecMainStatus=3\nResult=exit-code\n", "it ended with exit code 3"),
        (
            "ExecMainCode=2\nExecMainStatus=9\nResult=oom-kill\n",
            "it was killed by SIGKILL (oom-kill)",
        ),
        (
            "ExecMainCode=3\nExecMainStatus=6\nResult=core-dump\n",
            "it was killed by SIGABRT (core-dump)",
        ),
        (
            "ExecMainCode=2\nExecMainStatus=6\nResult=watchdog\n",
            "it was killed by SIGABRT (watchdog)",
        ),
        ("ExecMainCode=0\nResult=success\n", "it ended"),
    ],
)
async def test_end_is_described(computer: Computer, properties: str, how: str) -> None:
    computer.run_service()
    server = SystemdServer(computer.systemctl)
    computer.set("properties", properties)
    waiting = asyncio.ensure_future(server.wait())
    await asyncio.to_thread(computer.end_service)
    assert await waiting == f"{how}; see: journalctl -u cogwork-server"


async def test_end_without_systemd_is_described(computer: Computer) -> None:
    server = SystemdServer(computer.systemctl)
    Path(computer.systemctl.program).unlink()
    assert (await server.wait()).startswith("it ended; cannot run")
    with pytest.raises(SystemctlFailed):
        SystemdServer(computer.systemctl)
