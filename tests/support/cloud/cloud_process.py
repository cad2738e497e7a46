"""A cloud as a process, with its first owner and a machine."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from tests.support.cloud.created_cloud import copy_new_cloud
from tests.support.cloud.fleet import Cloud
from tests.support.machine.running import Server, start_server
from tests.support.media.rtsp_server import free_port

from cogwork.core.clock import SystemClock

PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")


class CloudProcess:
    def __init__(self, directory: Path, program: Sequence[str] = PROGRAM) -> None:
        self._program = program
        self.directory = directory
        self._data = ["--data", str(directory)]
        self.address = ""
        self.key_id = self.key = ""

    async def initialize(self) -> None:
        new = copy_new_cloud(self.directory, "localhost", "Main", SystemClock())
        self.key_id, self.key = new.key_id, new.key

    async def initialize_by_command(self) -> None:
        created = await self.command("init")
        keys = (line.split()[-1] for line in created.splitlines() if line[:5] == "  key")
        self.key_id, self.key = keys

    def client(self) -> Cloud:
        return Cloud(self.address, self.key_id, self.key)

    async def command(self, *arguments: str) -> str:
        async with start_server([*arguments, *self._data], program=self._program) as process:
            code = await process.exit_code()
            assert code == 0, process.err.lines
            return "\n".join(process.out.lines)

    @contextlib.asynccontextmanager
    async def serve(self, *options: str, host: str = "localhost") -> AsyncIterator[Server]:
        # The addresses of releases contain the port, so it is chosen before.
        self.address = f"{host}:{free_port()}"
        serve = ["serve", *self._data, "--address", self.address, *options]
        async with start_server(serve, program=self._program) as server:
            await server.wait_until_serving()
            yield server

    async def create_machine(self, name: str) -> tuple[str, str]:
        """Return the ID and the secret of its part."""
        client = await self.client().connect()
        app = client.app_client
        (organization,) = await app.list_organizations()
        location = await app.create_location(organization.id, f"Hall of {name}")
        machine = await app.new_robot(name, location.id)
        (part,) = await app.get_robot_parts(machine)
        client.close()
        return part.id, part.secret

    async def join(self, config: Path) -> None:
        """Create a machine in the cloud, and write its credentials."""
        part, secret = await self.create_machine("press")
        credentials = {"id": part, "secret": secret, "app_address": f"http://{self.address}"}
        config.write_text(json.dumps({"cloud": credentials}))
