"""A machine with the real releases of an agent and a server, without systemd."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import psutil
from tests.support.agent.agent_machine import AgentMachine
from tests.support.agent.real_releases import RealRelease, link_tree, public_key
from tests.support.machine.running import Server, save, start_server
from tests.support.media.rtsp_server import free_port

from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.state import ProductState, load_state
from cogwork.core.versions.product import Product

_WRITE_LAUNCHER = (
    "import pathlib, sys; from cogwork.agent.launcher_archive import write_launcher; "
    "write_launcher(pathlib.Path(sys.argv[1]))"
)
_STOP_TIMEOUT = 60.0


class RealMachine(AgentMachine):
    """Its agent is started by the launcher that it was installed with, as a plain process.

    It has the real times, unless `settings` are changed.
    """

    def __init__(self, directory: Path, agent: RealRelease, server: RealRelease) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        super().__init__(directory)
        (self.layout.keys / "real.pem").write_bytes(public_key())
        self.port = free_port()
        self.file = directory / "machine.json"
        self.home = directory / "home"
        self.settings = {"config": str(self.file), "server_arguments": ["-no-tls"]}
        for product, release in ((Product.AGENT, agent), (Product.SERVER, server)):
            self.install(release.slot(product))
        write_own_launcher(self.layout, agent.version)

    def install(self, slot: Path) -> None:
        product, _, version = slot.name.partition("-")
        link_tree(slot, self.layout.versions / slot.name)
        self.layout.switch(Product(product), version)

    def save(self, config: Mapping[str, Any]) -> None:
        """Write the machine's file."""
        save(self.file, {"network": {"bind_address": f"localhost:{self.port}"}, **config})

    def offer_releases(self, **versions: RealRelease) -> None:
        """Offer these releases of products in the folder that updates come from."""
        self.settings["updates"] = str(self.releases.directory)
        for name, release in versions.items():
            archive = release.archive(Product(name))
            target = self.releases.directory / archive.name
            if not target.exists():
                target.symlink_to(archive)
        channel = {name: release.version for name, release in versions.items()}
        save(self.releases.directory / "channel.json", channel)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[Server]:
        self.layout.settings.write_text(json.dumps(self.settings))
        launcher = (sys.executable, "-I", "-S", str(self.layout.launcher))
        environment = {"COGWORK_HOME": str(self.home)}
        arguments = [str(self.layout.root)]
        async with start_server(arguments, environment, program=launcher) as running:
            try:
                yield running
                running.signal(signal.SIGTERM)
                assert await running.exit_code() == 0
            finally:
                print(*running.err.lines, sep="\n")
                self.end_agent()
                self.end_server()

    @property
    def server_process(self) -> int:
        return int(json.loads((self.layout.root / "server.pid").read_bytes())["pid"])

    def state(self, product: Product) -> ProductState:
        return load_state(self.layout.state)[product]

    def end_agent(self) -> None:
        """End an agent whose launcher was killed, so that no test leaves one behind."""
        for each in psutil.process_iter(["cmdline"]):
            if str(self.layout.root) in (each.info["cmdline"] or []):
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()

    def end_server(self) -> None:
        """Stop the server as an agent does, so that it ends its modules."""
        with contextlib.suppress(OSError, ValueError, psutil.NoSuchProcess):
            process = psutil.Process(self.server_process)
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT)
            except psutil.TimeoutExpired:
                process.kill()


def write_own_launcher(layout: Layout, version: str) -> None:
    """Write the launcher of a version of the agent, as its installation does."""
    python = layout.slot(Product.AGENT, version) / "bin" / "python"
    command = [str(python), "-I", "-c", _WRITE_LAUNCHER, str(layout.launcher)]
    subprocess.run(command, check=True)
