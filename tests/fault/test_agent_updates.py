"""A running agent and releases that fail in every way: the machine always serves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psutil
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from tests.support.agent.agent_machine import SERVER, AgentMachine, install_first_version
from tests.support.waiting import pass_time

from cogwork.agent.slots.state import load_state


@pytest.fixture(scope="module")
def first_version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_first_version(tmp_path_factory.mktemp("first"))


@pytest.fixture
async def machine(tmp_path: Path, first_version: Path) -> AsyncIterator[AgentMachine]:
    machine = AgentMachine(tmp_path)
    machine.install(first_version)
    machine.offer("1.0.0")
    yield machine
    machine.end_server()


async def test_good_version_is_installed_and_accepted(machine: AgentMachine) -> None:
    async with machine.run():
        await machine.wait_for_version("1.0.0")
        machine.releases.make_server("2.0.0")
        machine.offer("2.0.0")
        await machine.wait_for_version("2.0.0")
        await machine.wait_for_phase("current", "2.0.0")
    state = load_state(machine.layout.state)[SERVER]
    assert (state.last_good, state.trial) == ("2.0.0", None)


HANG = "import time; time.sleep(600)"
BROKEN = {
    "crashes at start": ("raise RuntimeError('no such device')", ""),
    "crashes later": ("threading.Timer(0.8, os._exit, (3,)).start()", ""),
    "hangs at start": (HANG, ""),
    "hangs later": ("COUNT = []", f"COUNT.append(1)\nif len(COUNT) > 1: {HANG}"),
    "other version": ("VERSION = '9.9.9'", ""),
    "ignores SIGTERM": (
        f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {HANG}",
        "",
    ),
}
"""What the server does at its start, and at each request."""


@pytest.mark.parametrize("how", BROKEN)
async def test_bad_version_is_rolled_back(machine: AgentMachine, how: str) -> None:
    async with machine.run():
        await machine.wait_for_version("1.0.0")
        at_start, at_request = BROKEN[how]
        machine.releases.make_server("2.0.0", at_start=at_start, at_request=at_request)
        machine.offer("2.0.0")
        failed = await machine.wait_for_phase("failed", "2.0.0", 60)
        await machine.wait_for_version("1.0.0")
        assert failed["detail"]
        assert (await machine.wait_for_phase("failed", "2.0.0"))["since"] == failed["since"]
    assert load_state(machine.layout.state)[SERVER].failed.keys() == {"2.0.0"}


async def test_rejected_releases_are_never_executed(machine: AgentMachine) -> None:
    touch = "open(os.environ['STARTED_FILE'], 'w')"
    releases = machine.releases
    source = f"import os; {touch}"
    async with machine.run():
        await machine.wait_for_version("1.0.0")
        foreign = Ed25519PrivateKey.generate()
        releases.make(SERVER, "2.0.1", source, key=foreign)
        foreign_platform = releases.make(SERVER, "2.0.2", source, platform="linux/riscv64")
        foreign_platform.replace(releases.make(SERVER, "2.0.2", source))
        releases.make(SERVER, "2.0.3", source, python="3.99")
        damage(releases.make(SERVER, "2.0.4", source))
        releases.make(SERVER, "2.0.5", source).write_bytes(b"not a release")
        cut(releases.make(SERVER, "2.0.6", source))
        reasons = {}
        for version in (f"2.0.{number}" for number in range(1, 8)):
            machine.offer(version)
            reasons[version] = (await machine.wait_for_phase("failed", version))["detail"]
        assert (await machine.ask()).version == "1.0.0"
    for reason in reasons.values():
        print(reason)
    assert not machine.started.exists()
    assert machine.layout.installed(SERVER) == ["1.0.0"]


def damage(archive: Path) -> None:
    """Change one byte of the wheel in an archive."""
    with tarfile.open(archive) as tar:
        member = next(each for each in tar if "cogwork-" in each.name)
    data = bytearray(archive.read_bytes())
    data[member.offset_data + 100] ^= 1
    archive.write_bytes(data)


def cut(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-400_000])


async def test_agent_that_is_killed_leaves_the_server_and_finds_it_again(
    machine: AgentMachine,
) -> None:
    async with machine.run() as agent:
        await machine.wait_for_version("1.0.0")
        pid = json.loads((machine.layout.root / "server.pid").read_bytes())["pid"]
        agent.signal(signal.SIGKILL)
        await agent.exit_code()
    assert (await machine.ask()).version == "1.0.0"
    async with machine.run() as agent:
        await agent.err.wait_for("already runs")
        await pass_time(0.5)
        assert json.loads((machine.layout.root / "server.pid").read_bytes())["pid"] == pid
        psutil.Process(pid).kill()
        await machine.wait_for_version("1.0.0")
        assert json.loads((machine.layout.root / "server.pid").read_bytes())["pid"] != pid


async def test_agent_killed_during_a_trial_concludes_it(machine: AgentMachine) -> None:
    machine.settings["probe_interval"] = 3
    async with machine.run() as agent:
        await machine.wait_for_version("1.0.0")
        machine.releases.make_server("2.0.0")
        machine.offer("2.0.0")
        await machine.wait_for_version("2.0.0")
        agent.signal(signal.SIGKILL)
        await agent.exit_code()
    assert load_state(machine.layout.state)[SERVER].trial is not None
    machine.settings["probe_interval"] = 0.3
    async with machine.run():
        await machine.wait_for_phase("current", "2.0.0")
    assert load_state(machine.layout.state)[SERVER].last_good == "2.0.0"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_full_disk_is_explained_and_the_update_waits_for_space(
    tmp_path: Path, first_version: Path
) -> None:
    with mount_small_disk(tmp_path / "root"):
        machine = AgentMachine(tmp_path)
        machine.install(first_version)
        machine.offer("1.0.0")
        filling = machine.layout.root / "filling"
        async with machine.run():
            await machine.wait_for_version("1.0.0")
            filling.write_bytes(bytes(300_000_000))
            machine.releases.make_server("2.0.0")
            machine.offer("2.0.0")
            failed = await machine.wait_for_phase("failed", "2.0.0")
            assert "free some" in failed["detail"]
            assert (await machine.ask()).version == "1.0.0"
            filling.unlink()
            await machine.wait_for_version("2.0.0")
        machine.end_server()


@contextlib.contextmanager
def mount_small_disk(directory: Path) -> Iterator[None]:
    directory.mkdir()
    options = ["-t", "tmpfs", "-o", "size=400m", "tmpfs"]
    subprocess.run(["mount", *options, str(directory)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(directory)], check=True)
