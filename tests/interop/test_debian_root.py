"""A clean Debian: the package, the agent with real releases, and what both leave behind."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.debian_root import needs_mmdebstrap, unpack_debian
from tests.support.paths import REPOSITORY
from tests.support.sizes import limit
from tests.support.waiting import block_until

from cogwork import __version__

pytestmark = [pytest.mark.soak, pytest.mark.timeout(2400), needs_systemd, needs_mmdebstrap]

PACKAGES = ("systemd", "init-system-helpers", "python3")
"""What the package depends on and recommends, and systemd."""
SERVER, AGENT = "cogwork-server.service", "cogwork-agent.service"
CONFIG = {"components": [{"name": "belt", "api": "rdk:component:motor", "model": "fake"}]}
DATA = "var/lib/cogwork"
HERE = Path("var/tmp/cogwork")
"""Where the files to install are in the system."""
SLOW = 600.0
"""Seconds for a command that installs a package or a release."""

LIST_RESOURCES = """
import asyncio, logging
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

async def main():
    dial = DialOptions(insecure=True, disable_webrtc=True)
    options = RobotClient.Options(dial_options=dial, log_level=logging.ERROR)
    async with await RobotClient.at_address("localhost:8080", options) as robot:
        print(*(name.name for name in robot.resource_names))

asyncio.run(main())
"""
MEASURE_GAP = """
import select, socket, sys, time

last, longest = time.monotonic(), 0.0
while not select.select([sys.stdin], [], [], 0.05)[0]:
    try:
        socket.create_connection(("localhost", 8080), 1).close()
    except OSError:
        continue
    longest, last = max(longest, time.monotonic() - last), time.monotonic()
print(f"{longest:.1f}")
"""


@pytest.fixture(scope="module")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a directory with the real package, the real releases and their public key."""
    directory = tmp_path_factory.mktemp("downloads")
    private, public = directory / "key.pem", directory / "key.pub.pem"
    run("openssl", "genpkey", "-algorithm", "ed25519", "-out", private)
    run("openssl", "pkey", "-in", private, "-pubout", "-out", public)
    run("make", "deb")
    run("make", "release", f"RELEASE_KEY={private}")
    private.unlink()
    for pattern in (f"cogwork_{__version__}_*.deb", f"cogwork-*-{__version__}-*.tar"):
        for each in (REPOSITORY / "dist").glob(pattern):
            shutil.copyfile(each, directory / each.name)
    yield directory
    shutil.rmtree(directory)


def run(*command: str | Path) -> None:
    subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, timeout=1500)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("debian")
    unpack_debian(PACKAGES, directory)
    yield directory
    shutil.rmtree(directory)


class CleanDebian:
    def __init__(self, system: BootedSystem, downloads: Path) -> None:
        self.system = system
        shutil.copytree(downloads, system.root / HERE)
        names = [each.name for each in sorted(downloads.iterdir())]
        self._deb = next(f"/{HERE}/{name}" for name in names if name.endswith(".deb"))
        self._releases = [f"/{HERE}/{name}" for name in names if name.endswith(".tar")]

    def install_package(self) -> None:
        self.run("dpkg", "--force-unsafe-io", "--install", self._deb)

    def install_agent(self, check: bool = True) -> subprocess.CompletedProcess[str]:
        options = [word for each in self._releases for word in ("--release", each)]
        # As strict as a careful administrator has it.
        strict = ("sh", "-c", 'umask 077 && exec "$@"', "sh")
        key = ("--key", f"/{HERE}/key.pub.pem")
        return self.run(*strict, "cogwork-agent", "install", *options, *key, check=check)

    def run(self, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        done = self.system.run(*command, check=check, within=SLOW)
        print(f"$ {' '.join(command)}  # {time.monotonic() - began:.1f} s")
        print(done.stdout, done.stderr, sep="")
        return done

    def serves_belt(self) -> bool:
        """Ask as a client of the network would, with the public SDK."""
        if self.system.show(SERVER, "ActiveState") != "active":
            return False
        try:
            return "belt" in self.system.run_outside(sys.executable, "-c", LIST_RESOURCES).split()
        except subprocess.CalledProcessError:
            return False

    def server_process(self) -> int:
        return int(self.system.show(SERVER, "MainPID"))

    @contextlib.contextmanager
    def measure_gap(self, title: str) -> Iterator[None]:
        """Print the longest time in which nothing listened."""
        enter = ("nsenter", "--target", str(self.system.init), "--net")
        with subprocess.Popen(
            [*enter, sys.executable, "-c", MEASURE_GAP],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            try:
                yield
                print(f"not served {title}: {process.communicate(b'end')[0].decode().strip()} s")
            finally:
                process.kill()

    def list_files(self) -> set[str]:
        """Return all paths but those in which Debian keeps its records."""
        found = set(self.system.run("find", "/", "-xdev").stdout.splitlines())
        records = (f"/{HERE}", "/var/lib/dpkg/", "/var/lib/systemd/", "/var/log/", "/var/cache/")
        return {each for each in found if not each.startswith(records)}

    def read_users(self) -> list[str]:
        names = ("passwd", "group", "shadow", "gshadow")
        return [(self.system.root / "etc" / name).read_text() for name in names]


@pytest.fixture
def debian(tmp_path: Path, root: Path, downloads: Path) -> Iterator[CleanDebian]:
    with boot_systemd(tmp_path, root) as system:
        yield CleanDebian(system, downloads)


def wait_until(condition: Callable[[], bool], within: float = 30) -> float:
    """Return the seconds that it took."""
    return block_until(condition, limit(within), every=0.1)


def test_package_then_agent_then_package(debian: CleanDebian) -> None:
    system = debian.system
    before, users = debian.list_files(), debian.read_users()
    debian.install_package()
    (system.root / "etc/cogwork.json").write_text(json.dumps(CONFIG))
    wait_until(debian.serves_belt)
    assert system.show(SERVER, "UnitFileState") == "enabled"
    # A server that runs has sockets in /tmp.
    system.run("systemctl", "stop", SERVER)
    packaged = debian.list_files()
    system.run("systemctl", "start", SERVER)

    with debian.measure_gap("while the agent took over"):
        said = debian.install_agent().stdout
        wait_until(debian.serves_belt)
    assert "Copied the configuration of the Debian package, /etc/cogwork.json" in said
    check_services(debian)

    killed = debian.server_process()
    with debian.measure_gap("after a kill"):
        system.run("systemctl", "kill", "--kill-whom=main", "--signal=KILL", SERVER)
        wait_until(lambda: debian.server_process() not in (0, killed))
        wait_until(debian.serves_belt)

    process = debian.server_process()
    debian.install_package()
    assert debian.server_process() == process

    debian.run("cogwork-agent", "status")
    debian.run("cogwork-agent", "uninstall")
    left = show_difference("uninstall", packaged, debian.list_files())
    kept = ["+ /etc/cogwork", "+ /etc/cogwork/machine.json"]
    disabled = f"- /etc/systemd/system/multi-user.target.wants/{SERVER}"
    assert [each for each in left if DATA not in each] == [*kept, disabled]

    # The server of the package goes on with the data.
    system.run("systemctl", "enable", "--now", SERVER)
    wait_until(debian.serves_belt)
    assert system.show(SERVER, "User") == "root"

    debian.run("dpkg", "--purge", "cogwork")
    assert show_difference("purge of the package", before, debian.list_files()) == kept
    # The user stays, because the file is theirs.
    assert debian.read_users() != users


def check_services(debian: CleanDebian) -> None:
    show = debian.system.show
    assert show(SERVER, "User") == "cogwork"
    owner = (debian.system.root / "proc" / str(debian.server_process())).stat().st_uid
    assert f"cogwork:x:{owner}:" in debian.read_users()[0]
    assert (show(SERVER, "Type"), show(SERVER, "WatchdogUSec")) == ("notify", "30s")
    assert (show(AGENT, "Type"), show(AGENT, "WatchdogUSec")) == ("notify", "1min")
    # Not systemd starts the server with the computer, but the agent.
    assert (show(SERVER, "UnitFileState"), show(AGENT, "UnitFileState")) == ("static", "enabled")


def show_difference(title: str, before: set[str], after: set[str]) -> list[str]:
    """Return and print the paths that came and went."""
    found = [f"+ {each}" for each in sorted(after - before)]
    found += [f"- {each}" for each in sorted(before - after)]
    print(f"difference after {title}:", *(found or ["none"]), sep="\n  ")
    return found


def test_agent_outlives_the_package_and_leaves_nothing(debian: CleanDebian) -> None:
    before, users = debian.list_files(), debian.read_users()
    debian.install_package()
    (debian.system.root / "etc/cogwork.json").write_text(json.dumps(CONFIG))
    debian.install_agent()
    wait_until(debian.serves_belt)

    process = debian.server_process()
    said = debian.run("dpkg", "--purge", "cogwork").stderr
    assert debian.server_process() == process
    assert debian.serves_belt()
    assert (debian.system.root / DATA / "journal").is_dir()

    uninstall = said.partition("  sudo ")[2].splitlines()[0].split()
    debian.run(*uninstall, "--purge")
    assert show_difference("uninstall --purge", before, debian.list_files()) == []
    assert debian.read_users() == users


def test_without_python_it_says_what_to_install(debian: CleanDebian) -> None:
    debian.install_package()
    before, users = debian.list_files(), debian.read_users()
    debian.system.run("sh", "-c", "mkdir /var/tmp/hidden && mv /usr/bin/python3* /var/tmp/hidden")
    done = debian.install_agent(check=False)
    assert done.returncode == 1
    assert "install it with: sudo apt install python3" in done.stderr
    debian.system.run("sh", "-c", "mv /var/tmp/hidden/* /usr/bin && rmdir /var/tmp/hidden")
    assert show_difference("a failed installation", before, debian.list_files()) == []
    assert debian.read_users() == users
