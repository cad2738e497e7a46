"""A computer on which the agent is installed, as far as it is a directory and some programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.support.agent.releases import ReleaseMaker

from cogwork.agent.installation.agent_installer import AgentInstaller
from cogwork.agent.installation.agent_remover import AgentRemover
from cogwork.agent.settings import AgentSettings
from cogwork.agent.slots.layout import Layout
from cogwork.core.versions.product import Product
from cogwork.systemd.systemctl import Systemctl

_INSTALLATION = "cogwork.agent.installation"


class Computer:
    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.layout = Layout(root / "opt" / "cogwork")
        self.units = root / "etc" / "systemd" / "system"
        self.packaged_units = root / "usr" / "lib" / "systemd" / "system"
        self.packaged_config = root / "etc" / "cogwork.json"
        self.other_config = root / "etc" / "viam.json"
        self.command = root / "usr" / "local" / "bin" / "cogwork-agent"
        self.config = root / "etc" / "cogwork" / "machine.json"
        self.data = root / "var" / "lib" / "cogwork"
        self.booted = root / "run" / "systemd"
        self.programs = root / "bin"
        for each in (
            self.units,
            self.packaged_units,
            self.data,
            self.programs,
            self.command.parent,
        ):
            each.mkdir(parents=True)
        for name in ("useradd", "userdel"):
            self.add_program(name)
        self.add_program("systemctl", "echo ActiveState=active")
        self.said: list[str] = []
        self.releases = ReleaseMaker(root / "releases")
        self.releases.use_quick_pip()
        self.key = root / "publisher.pem"
        self.key.write_bytes(self.releases.public_key())
        patch.setenv("PATH", f"{self.programs}:{os.environ['PATH']}")
        for module in ("agent_installer", "agent_remover"):
            patch.setattr(f"{_INSTALLATION}.{module}.RUNNING", self.booted)
            patch.setattr(f"{_INSTALLATION}.{module}.DATA", self.data)
            patch.setattr(f"{_INSTALLATION}.{module}.DEFAULT_CONFIG", self.config)
        for module in ("agent_installer", "agent_remover", "other_services"):
            patch.setattr(f"{_INSTALLATION}.{module}.UNITS", self.units)
        for name, value in (
            ("_PACKAGED_CONFIG", self.packaged_config),
            ("_PACKAGED", (self.packaged_units,)),
            ("_OTHER_CONFIG", self.other_config),
            ("_INSTALLED", (self.units,)),
        ):
            patch.setattr(f"{_INSTALLATION}.predecessor.{name}", value)
        patch.setattr(f"{_INSTALLATION}.command.COMMAND", self.command)

    def add_program(self, name: str, script: str = "") -> None:
        """Replace a program by one that records its arguments, and then runs a script."""
        program = self.programs / name
        calls = self.programs.parent / "calls"
        program.write_text(f'#!/bin/sh\necho "{name} $*" >> {calls}\n{script}\n')
        program.chmod(0o755)

    def boot(self) -> None:
        """Let systemd run."""
        self.booted.mkdir(parents=True)

    def add_package(self) -> Path:
        """Install the Debian package, whose service runs the server."""
        unit = self.packaged_units / "cogwork-server.service"
        unit.write_text("[Service]\nExecStart=/usr/bin/cogwork-server\n")
        self.packaged_config.write_text('{"debug": true}')
        return unit

    def add_other_agent(self) -> Path:
        """Install an agent of another make."""
        unit = self.units / "viam-agent.service"
        unit.write_text("[Service]\nExecStart=/opt/viam/bin/viam-agent\n")
        self.other_config.write_text('{"cloud": {"id": "press"}}')
        return unit

    @property
    def calls(self) -> list[str]:
        """What the programs were asked to do."""
        path = self.programs.parent / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [each for each in lines if not each.startswith("systemctl show ")]

    def make_releases(self, version: str = "1.0.0") -> list[Path]:
        source = f"print('{version}')"
        return [self.releases.make(product, version, source) for product in Product]

    def installer(self, user: str = "daemon", **settings: object) -> AgentInstaller:
        given = AgentSettings.model_validate({"config": self.config, **settings})
        return AgentInstaller(
            self.layout, given, user, Systemctl(), self.said.append, start_timeout=0.0
        )

    def prepare(self, version: str = "1.0.0") -> list[Path]:
        """Return releases whose versions are in their slots, because installing takes seconds."""
        for product in Product:
            self.layout.slot(product, version).mkdir(parents=True, exist_ok=True)
        return self.make_releases(version)

    def install(self, user: str = "daemon", **settings: object) -> None:
        self.installer(user, **settings).install(self.prepare(), [self.key])

    def uninstall(self, *, purge: bool = False) -> None:
        remover = AgentRemover(self.layout, self.config, Systemctl(), self.said.append)
        remover.uninstall(purge=purge)
