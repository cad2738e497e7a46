"""A machine with an agent and small releases, for tests."""

from __future__ import annotations

import contextlib
import json
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
from tests.support.agent.releases import ReleaseMaker
from tests.support.machine.running import Server, start_server
from tests.support.sizes import limit
from tests.support.waiting import poll

from cogwork import __version__
from cogwork.agent.release.signature import TrustedKeys, parse_public_key
from cogwork.agent.slots.installer import Installer
from cogwork.agent.slots.layout import Layout
from cogwork.agent.supervision.probe import ServerAnswer, ServerProbe
from cogwork.core.versions.product import Product

PROGRAM = (sys.executable, "-m", "cogwork.agent.main")
SERVER = Product.SERVER


class AgentMachine:
    """A machine with an agent, whose updates come from a folder."""

    def __init__(self, directory: Path) -> None:
        self.layout = Layout(directory / "root")
        self.releases = ReleaseMaker(directory / "releases")
        self.allowed = directory / "allowed.json"
        self.started = directory / "started"
        self.layout.keys.mkdir(parents=True)
        (self.layout.keys / "test.pem").write_bytes(self.releases.public_key())
        self.settings: dict[str, Any] = {
            "config": str(directory / "machine.json"),
            "updates": str(self.releases.directory),
            "start_timeout": 3,
            "probe_interval": 0.3,
            "check_interval": 0.5,
            "stop_timeout": 2,
        }

    def install(self, slot: Path) -> None:
        """Make an installed version of another directory current here."""
        product, _, version = slot.name.partition("-")
        shutil.copytree(slot, self.layout.versions / slot.name, symlinks=True)
        self.layout.switch(Product(product), version)

    def install_real_server(self) -> None:
        """Make the server of this environment current."""
        python = self.layout.slot(SERVER, __version__) / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
        python.chmod(0o755)
        self.layout.switch(SERVER, __version__)

    def offer(self, version: str, *, rollback: bool = False) -> None:
        channel = self.releases.directory / "channel.json"
        channel.write_text(json.dumps({"server": version, "rollback": rollback}))

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[Server]:
        self.layout.settings.write_text(json.dumps(self.settings))
        environment = {
            "ALLOWED_FILE": str(self.allowed),
            "STARTED_FILE": str(self.started),
            "COGWORK_HOME": str(self.layout.root / "home"),
        }
        arguments = ["run", "--root", str(self.layout.root)]
        async with start_server(arguments, program=PROGRAM, environment=environment) as agent:
            try:
                yield agent
            finally:
                print(*agent.err.lines, sep="\n")

    async def ask(self) -> ServerAnswer:
        pid = int(json.loads((self.layout.root / "server.pid").read_bytes())["pid"])
        return await ServerProbe(self.layout.serving).ask(pid)

    async def wait_for_version(self, version: str, within: float = 20) -> None:
        async def read_version() -> str | None:
            with contextlib.suppress(Exception):
                return (await self.ask()).version
            return None

        await poll(read_version, lambda found: found == version, limit(within), every=0.05)

    async def wait_for_phase(
        self, phase: str, version: str, within: float = 30, product: Product = SERVER
    ) -> dict[str, Any]:
        async def read_progress() -> dict[str, Any]:
            with contextlib.suppress(OSError, ValueError, KeyError):
                found: dict[str, Any] = json.loads(self.layout.progress.read_bytes())
                return dict(found["products"][product])
            return {}

        def is_wanted(found: dict[str, Any]) -> bool:
            return (found.get("phase"), found.get("version")) == (phase, version)

        return await poll(read_progress, is_wanted, limit(within), every=0.05)

    def end_server(self) -> None:
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            record = json.loads((self.layout.root / "server.pid").read_bytes())
            psutil.Process(record["pid"]).kill()


def install_first_version(directory: Path, *, at_request: str = "") -> Path:
    """Return the slot of an installed version, to be copied because installing takes seconds."""
    releases = ReleaseMaker(directory / "releases")
    keys = TrustedKeys([parse_public_key(releases.public_key())])
    layout = Layout(directory / "root")
    Installer(layout, keys).install(
        releases.make_server("1.0.0", at_request=at_request), lambda _: None
    )
    return layout.slot(SERVER, "1.0.0")
