"""A machine with another agent is moved over by the commands of the guide, and back again.

Under a real systemd, with a cloud in its network. The commands run in a shell that the other agent
has started, as that of its server is, so it ends while they run.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.interop.test_agent_service import InstalledSystem, wait_until
from tests.support.booted_systemd import BootedSystem, boot_systemd, needs_systemd
from tests.support.paths import REPOSITORY

from cogwork import __version__
from cogwork.core.versions.product import Product

pytestmark = needs_systemd

GUIDE = REPOSITORY / "docs" / "guides" / "move-a-fleet.md"
CLOUD = (sys.executable, "-m", "cogwork.cloud.main")
FLEET = (sys.executable, "-m", "cogwork.cli.main", "fleet")
COMMAND = "/usr/local/bin/cogwork-agent"
ADDRESS = "localhost:8090"
OTHER_SERVER = """
while sleep 0.1; do
  if mv /run/typed /run/typing; then sh /run/typing; fi
done
"""
OTHER_UNIT = """
[Service]
ExecStart=/bin/sh /opt/other-server
StandardError=null
KillMode=mixed
[Install]
WantedBy=multi-user.target
"""
TELL_SYSTEMD = """
import socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
"""
PIP = f"""
import pathlib, sys, sysconfig, zipfile

links = pathlib.Path(sys.argv[sys.argv.index("--find-links") + 1])
library = pathlib.Path(sysconfig.get_path("purelib"))
for wheel in links.glob("cogwork-*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        if "cogwork/agent/main.py" in archive.namelist():
            # The agent is the one of this environment.
            (library / "here.pth").write_text({chr(10).join(sys.path)!r})
        else:
            archive.extractall(library)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[InstalledSystem]:
    (tmp_path / "system").mkdir()
    (tmp_path / "releases").mkdir()
    with boot_systemd(tmp_path / "system") as booted:
        yield InstalledSystem(booted, tmp_path / "releases")


def test_machine_is_moved_over_and_back(machine: InstalledSystem) -> None:
    system = machine.system
    make_cloud(machine)
    join_with_other_agent(machine)
    make_installer(machine)
    before = machine.list_files()
    config = Path("etc/cogwork/machine.json")

    # The Python of the tests may be in the home directory of root.
    install = guide_command("python3 -I install-cogwork.py").replace("python3", sys.executable)
    type_into_shell(machine, f"cd {machine.directory} && {install} --user root\n")
    wait_until(lambda: "To undo this" in read_log(system))
    wait_until(lambda: machine.running_version() == "1.0.0")
    assert (system.root / config).read_text() == (system.root / "etc/viam.json").read_text()
    assert system.show("viam-agent.service", "ActiveState") == "inactive"
    assert system.show("viam-agent.service", "UnitFileState") == "disabled"
    status = json.loads(system.run(COMMAND, "status", "--json").stdout)
    assert status["products"]["agent"]["current"] == __version__
    # What the installation needed is gone, though the shell has ended in the middle.
    wait_until(lambda: not system.run("find", "/var/tmp", "-name", "cogwork-*").stdout)

    uninstall = guide_command("cogwork-agent uninstall").replace("cogwork-agent", COMMAND)
    for command in (uninstall, guide_command("systemctl enable --now viam-agent")):
        system.run(*command.split())
    assert system.show("viam-agent.service", "ActiveState") == "active"
    left = {f"/{config.parent}", f"/{config}", "/var/lib/cogwork"}
    assert machine.list_files() - before == left


def make_cloud(machine: InstalledSystem) -> None:
    """Serve a cloud, and log in to it."""
    system, data = machine.system, cloud_data(machine)
    system.run("mkdir", "-p", str(machine.directory))
    created = system.run(*CLOUD, "init", *data).stdout
    key_id, key = (line.split()[-1] for line in created.splitlines() if line[:5] == "  key")
    serve = (*CLOUD, "serve", *data, "--address", ADDRESS)
    system.run("systemd-run", "--collect", "--unit=cloud", *serve)
    wait_until(lambda: system.run("curl", "-s", ADDRESS, check=False).returncode == 0)
    machine.write(file := machine.directory / "key", key.encode(), 0o600)
    login = ("--key-id", key_id, "--key-file", str(file))
    system.run(*FLEET, "login", *login, f"http://{ADDRESS}")


def join_with_other_agent(machine: InstalledSystem) -> None:
    """Create the machine, and run it with the other agent."""
    system = machine.system
    system.run(*FLEET, "location", "create", "Hall 1")
    command = guide_command("fleet machine create press").replace("press.json", "/etc/viam.json")
    system.run(*FLEET, *shlex.split(command)[2:])
    machine.write(Path("/etc/systemd/system/viam-agent.service"), OTHER_UNIT.encode())
    machine.write(Path("/opt/other-server"), OTHER_SERVER.encode())
    system.run("systemctl", "daemon-reload")
    system.run("systemctl", "enable", "--now", "viam-agent")


def make_installer(machine: InstalledSystem) -> None:
    """Add releases to the cloud, and write the script as the guide does."""
    system, folder, data = machine.system, machine.directory, cloud_data(machine)
    machine.releases.use_quick_pip(PIP)
    for archive in (
        machine.releases.make_server("1.0.0", at_start=TELL_SYSTEMD),
        machine.releases.make(Product.AGENT, __version__, ""),
    ):
        machine.write(archive, archive.read_bytes())
        system.run(*CLOUD, "release", "add", str(archive), *data)
    machine.write(folder / "release-key.pub.pem", machine.releases.public_key())
    command = guide_command("cogwork-cloud release installer")
    command = command.replace("https://fleet.example", f"http://{ADDRESS}")
    words = command.replace("release-key.pub.pem", f"{folder}/release-key.pub.pem").split()[1:]
    output = ("--output", str(folder / "install-cogwork.py"))
    print(system.run(*CLOUD, *words, *data, *output).stdout)


def cloud_data(machine: InstalledSystem) -> tuple[str, str]:
    return "--data", str(machine.directory / "cloud")


def guide_command(part: str) -> str:
    """Return the line of the guide that has this, without `sudo`."""
    lines = GUIDE.read_text().splitlines()
    return next(each for each in lines if part in each and "`" not in each).removeprefix("sudo ")


def type_into_shell(machine: InstalledSystem, text: str) -> None:
    # The move within /run is atomic, so the shell never reads half of it.
    machine.write(Path("/run/typed.new"), text.encode())
    machine.system.run("mv", "/run/typed.new", "/run/typed")


def read_log(system: BootedSystem) -> str:
    path = system.root / "var/log/cogwork-install.log"
    return path.read_text() if path.exists() else ""
