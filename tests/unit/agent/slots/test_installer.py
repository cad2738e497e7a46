"""Releases that are installed, and those that leave nothing behind because they are not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from tests.support.agent.releases import QUICK_PIP, ReleaseMaker

from cogwork.agent.errors import BadRelease, DiskFull, InstallFailed
from cogwork.agent.release.signature import TrustedKeys
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore
from cogwork.core.versions.product import Product

SERVER = Product.SERVER
SAY_VERSION = "print('cogwork-server 1.0.0')"


class Machine:
    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory / "root")
        self.releases = ReleaseMaker(directory / "releases")
        self.releases.use_quick_pip()
        self.installer = Installer(self.layout, TrustedKeys([self.releases.key.public_key()]))
        self.steps: list[str] = []

    def install(self, archive: Path) -> None:
        self.installer.install(archive, self.steps.append)

    @property
    def left(self) -> list[str]:
        """What is in the directory of the versions."""
        versions = self.layout.versions
        return sorted(each.name for each in versions.iterdir()) if versions.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_release_becomes_a_version_that_runs(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "of the agent")  # the pip of these tests refuses it
    machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    slot = machine.layout.slot(SERVER, "1.0.0")
    command = [str(slot / "bin" / "python"), "-I", "-m", SERVER.module]
    assert subprocess.check_output(command, text=True) == "cogwork-server 1.0.0\n"
    assert machine.left == ["server-1.0.0"]
    assert not (slot / "release").exists()
    assert machine.steps == [
        *("unpacking", "creating the environment", "installing", "compiling", "trying it")
    ]
    # It is installed, but nothing runs it yet.
    assert machine.layout.current_version(SERVER) is None


def test_installed_version_is_left_as_it_is(machine: Machine) -> None:
    archive = machine.releases.make(SERVER, "1.0.0", SAY_VERSION)
    kept = machine.layout.slot(SERVER, "1.0.0") / "kept"
    kept.mkdir(parents=True)
    machine.install(archive)
    assert kept.exists()
    assert machine.steps == []


def test_user_of_the_server_can_read_it_whatever_the_umask_is(machine: Machine) -> None:
    archive = machine.releases.make(SERVER, "1.0.0", SAY_VERSION)
    before = os.umask(0o077)
    try:
        machine.install(archive)
    finally:
        os.umask(before)
    slot = machine.layout.slot(SERVER, "1.0.0")
    (source,) = slot.glob("lib/*/site-packages/cogwork/server/main.py")
    assert slot.stat().st_mode & 0o777 == 0o755
    assert source.stat().st_mode & 0o044 == 0o044


@pytest.mark.parametrize(
    ("source", "pip", "reason"),
    [
        ("print('cogwork-server 1.0.1')", QUICK_PIP, r"the installed version reports .*1\.0\.1"),
        ("print('1.0.0.1')", QUICK_PIP, "the installed version reports"),
        ("raise SystemExit(5)", QUICK_PIP, "failed with exit code 5"),
        (SAY_VERSION, "raise SystemExit('no hash')", "failed with exit code 1: no hash"),
    ],
)
def test_version_that_does_not_work_leaves_nothing(
    machine: Machine, source: str, pip: str, reason: str
) -> None:
    machine.releases.use_quick_pip(pip)
    with pytest.raises(InstallFailed, match=reason):
        machine.install(machine.releases.make(SERVER, "1.0.0", source))
    assert machine.left == []


def test_step_that_hangs_is_given_up(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogwork.agent.slots.installer._STEP_TIMEOUT", 0.01)
    with pytest.raises(InstallFailed, match=r"took longer than 0\.01 s"):
        machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    assert machine.left == []


def test_agent_is_asked_for_its_version_with_its_own_option(machine: Machine) -> None:
    source = "import sys; print('cogwork-agent', '1.0.0' if '--version' in sys.argv else '')"
    machine.install(machine.releases.make(Product.AGENT, "1.0.0", source))
    assert machine.left == ["agent-1.0.0"]


def test_damaged_release_leaves_nothing(machine: Machine) -> None:
    archive = machine.releases.make(SERVER, "1.0.0", SAY_VERSION)
    data = archive.read_bytes()
    place = data.index(b"pip/__main__.py")
    archive.write_bytes(data[:place] + b"pop" + data[place + 3 :])
    with pytest.raises(BadRelease, match="is damaged"):
        machine.install(archive)
    assert machine.left == []


def test_release_without_a_pip_is_refused(machine: Machine, tmp_path: Path) -> None:
    machine.releases.pip = tmp_path / "pop-1.0-py3-none-any.whl"
    machine.releases.pip.write_bytes(b"")
    with pytest.raises(BadRelease, match="no pip or no requirements"):
        machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    assert machine.left == []


def test_release_for_another_computer_is_refused(machine: Machine) -> None:
    other = machine.releases.make(SERVER, "1.0.0", SAY_VERSION, platform="linux/riscv64")
    with pytest.raises(BadRelease, match=r"is for linux/riscv64, not for"):
        machine.install(other)
    other = machine.releases.make(SERVER, "1.0.0", SAY_VERSION, python="3.99")
    with pytest.raises(BadRelease, match=r"is for Python 3\.99"):
        machine.install(other)
    assert machine.left == []


def test_version_below_the_minimum_is_refused(machine: Machine) -> None:
    store = MinimumStore(machine.layout.minimums)
    machine.layout.root.mkdir()
    store.raise_to(SERVER, Minimum("1.0.1", "2.0.0"))
    with pytest.raises(BadRelease, match=r"older than 1\.0\.1"):
        machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    machine.installer.check(machine.releases.make(SERVER, "1.0.1", ""))


def test_full_disk_is_noticed_before_anything_is_unpacked(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cogwork.agent.slots.disk._RESERVE", 1 << 60)
    with pytest.raises(DiskFull, match="free some"):
        machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    assert machine.steps == []


def test_what_an_interrupted_installation_left_is_replaced(machine: Machine) -> None:
    left = machine.layout.versions / ".unfinished-server-1.0.0" / "release"
    left.mkdir(parents=True)
    machine.install(machine.releases.make(SERVER, "1.0.0", SAY_VERSION))
    assert machine.left == ["server-1.0.0"]
