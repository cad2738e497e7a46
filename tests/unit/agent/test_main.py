"""The commands of `cogwork-agent`, but for those that run for a while."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent.releases import ReleaseMaker

from cogwork.agent.errors import CannotJoin
from cogwork.agent.installation.agent_installer import AgentInstaller
from cogwork.agent.installation.agent_remover import AgentRemover
from cogwork.agent.installation.units import format_server_unit
from cogwork.agent.main import main
from cogwork.agent.settings import AgentSettings
from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.minimum_store import Minimum, MinimumStore
from cogwork.agent.slots.state import ProductState, save_state
from cogwork.core.clock import Clock
from cogwork.core.versions.product import Product

SERVER = Product.SERVER


class Machine:
    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.directory = directory
        self.layout = Layout(directory / "root")
        self.layout.root.mkdir()
        self._capsys = capsys

    def run(self, *arguments: str | Path) -> tuple[int, str]:
        """Return the exit code, and what it printed."""
        code = main([*map(str, arguments), "--root", str(self.layout.root)])
        printed = self._capsys.readouterr()
        return code, printed.out + printed.err


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path, capsys)


def test_first_release_becomes_current_once_its_key_is_trusted(machine: Machine) -> None:
    releases = ReleaseMaker(machine.directory / "releases")
    releases.use_quick_pip()
    archives = [
        releases.make(SERVER, version, f"print('{version}')") for version in ("1.0.0", "1.1.0")
    ]
    code, printed = machine.run("add", archives[0])
    assert code == 1
    assert "not signed by a key that this machine trusts" in printed
    key = machine.directory / "publisher.pem"
    key.write_bytes(releases.public_key())
    code, printed = machine.run("trust", key)
    assert (code, f"rm {machine.layout.keys / 'publisher.pem'}" in printed) == (0, True)
    machine.layout.slot(SERVER, "1.1.0").mkdir(parents=True)  # installing takes seconds
    code, printed = machine.run("add", *archives)
    assert code == 0
    assert "server 1.0.0 is installed, and current\n" in printed
    assert "server 1.1.0 is installed\n" in printed
    assert machine.layout.current_version(SERVER) == "1.0.0"


def test_file_that_is_no_key_is_not_trusted(machine: Machine) -> None:
    (machine.directory / "key.pem").write_text("not a key")
    code, printed = machine.run("trust", machine.directory / "key.pem")
    assert (code, "key.pem is not a public key" in printed) == (1, True)
    assert not machine.layout.keys.exists()


def test_missing_file_is_named(machine: Machine) -> None:
    missing = machine.directory / "missing.tar"
    assert machine.run("add", missing) == (
        1,
        f"cogwork-agent: {missing}: No such file or directory\n",
    )


def test_status_is_for_people_or_programs(machine: Machine) -> None:
    assert machine.run("status") == (0, "server: not installed\nagent: not installed\n")
    code, printed = machine.run("status", "--json")
    assert (code, json.loads(printed)["products"]["server"]["current"]) == (0, None)


def test_versions_that_failed_are_tried_again_if_a_person_asks(machine: Machine) -> None:
    assert machine.run("retry") == (0, "no version has failed\n")
    assert not machine.layout.retry.exists()
    state = ProductState().reject("1.1.0", "it crashed", 0)
    save_state(machine.layout.state, {SERVER: state, Product.AGENT: ProductState()})
    code, printed = machine.run("retry")
    assert (code, printed.endswith("still wanted: server 1.1.0\n")) == (0, True)
    assert machine.layout.retry.exists()


def test_person_allows_an_older_version_but_none_below_the_minimum(machine: Machine) -> None:
    MinimumStore(machine.layout.minimums).raise_to(SERVER, Minimum("1.0.0", "2.0.0"))
    code, printed = machine.run("allow", "server", "0.9.0")
    assert (code, "older than 1.0.0, the minimum version that release" in printed) == (1, True)
    assert machine.run("allow", "server", "../x")[0] == 1
    assert not machine.layout.allowed(SERVER).exists()
    assert machine.run("allow", "server", "1.0.0")[0] == 0
    assert machine.layout.allowed(SERVER).read_text() == "1.0.0\n"
    # The minimum is that of the server.
    assert machine.run("allow", "agent", "0.9.0")[0] == 0


def test_agent_runs_with_its_settings(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Layout, AgentSettings]] = []

    async def run(layout: Layout, settings: AgentSettings, clock: Clock) -> int:
        ran.append((layout, settings))
        return 75

    monkeypatch.setattr("cogwork.agent.agent.run_agent", run)
    machine.layout.settings.write_text('{"updates": "/mnt"}')
    assert machine.run("run") == (75, "")
    assert ran == [(machine.layout, AgentSettings(updates="/mnt"))]
    machine.layout.settings.write_text("{")
    code, printed = machine.run("run")
    assert (code, "agent.json cannot be read" in printed) == (1, True)


def test_machine_joins_with_the_configuration_of_the_agent(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def redeem(url: str, code: str) -> dict[str, Any]:
        if code != "right":
            raise CannotJoin("the code has expired")
        return {"cloud": {"id": url}}

    monkeypatch.setattr("cogwork.agent.joining.redeem", redeem)
    config = machine.directory / "machine.json"
    machine.layout.settings.write_text(json.dumps({"config": str(config)}))
    assert machine.run("join", "fleet.test", "wrong") == (
        1,
        "cogwork-agent: the code has expired\n",
    )
    assert not config.exists()
    assert machine.run("join", "fleet.test", "right")[0] == 0
    assert json.loads(config.read_bytes()) == {"cloud": {"id": "fleet.test"}}
    other = machine.directory / "other.json"
    assert machine.run("join", "fleet.test", "right", "--config", other)[0] == 0
    assert other.exists()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_services_need_the_rights_of_root(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    code, printed = machine.run(command)
    assert (code, f"{command} needs the rights of root; run: sudo" in printed) == (1, True)


class Installations:
    """What an installation was asked to do."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, units: Path) -> None:
        self.done: list[Any] = []
        done = self.done
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        monkeypatch.setattr("cogwork.agent.supervision.systemd_server.UNITS", units)
        monkeypatch.setattr(
            AgentInstaller, "install", lambda self, *given: done.append((self, *given))
        )
        monkeypatch.setattr(
            AgentRemover, "uninstall", lambda self, *, purge: done.append((self, purge))
        )


@pytest.fixture
def installations(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> Installations:
    return Installations(monkeypatch, machine.directory)


def test_installation_again_keeps_the_user_and_the_configuration(
    machine: Machine, installations: Installations
) -> None:
    assert machine.run("install", "--release", "a.tar", "--key", "k.pem")[0] == 0
    unit = machine.directory / "cogwork-server.service"
    unit.write_text("[Service]\nUser=other\n")  # which the agent has not written
    assert machine.run("install")[0] == 0
    unit.write_text(format_server_unit(machine.layout.root, Path("/data"), "press"))
    machine.layout.settings.write_text('{"config": "/srv/press.json"}')
    assert machine.run("install", "--updates", "/mnt")[0] == 0
    assert machine.run("install", "--user", "root", "--config", "/srv/other.json")[0] == 0
    found = [(each.user, str(each.settings.config)) for each, *_ in installations.done]
    assert found == [
        ("cogwork", "/etc/cogwork/machine.json"),
        ("cogwork", "/etc/cogwork/machine.json"),
        ("press", "/srv/press.json"),
        ("root", "/srv/other.json"),
    ]
    assert installations.done[0][1:] == ([Path("a.tar")], [Path("k.pem")])
    assert installations.done[2][0].settings.updates == "/mnt"


def test_removal_works_with_settings_that_cannot_be_read(
    machine: Machine, installations: Installations
) -> None:
    machine.layout.settings.write_text('{"config": "/srv/press.json"}')
    assert machine.run("uninstall")[0] == 0
    machine.layout.settings.write_text("{")
    assert machine.run("uninstall", "--purge")[0] == 0
    assert machine.run("uninstall", "--config", "/srv/other.json")[0] == 0
    found = [(str(each.config), purge) for each, purge in installations.done]
    assert found == [
        ("/srv/press.json", False),
        ("/etc/cogwork/machine.json", True),
        ("/srv/other.json", False),
    ]
