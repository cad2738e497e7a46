"""A cloud that is killed while its clients write: nothing that it acknowledged is lost."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.exceptions import StreamTerminatedError
from tests.support.cloud.fleet import Cloud
from tests.support.machine.running import Server, start_server
from tests.support.sizes import size
from viam.app.app_client import RobotPart
from viam.app.viam_client import ViamClient

PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")
KILLS = size(ci=3, full=500)
WRITERS = size(ci=10, full=50)
EDITS_PER_LIFE = size(ci=40, full=20)
"""Edits of all writers together after which the cloud is killed, on average."""


class Fleet:
    """Parts, and what the cloud has acknowledged about each."""

    def __init__(self, key_id: str, key: str) -> None:
        self.key_id, self.key = key_id, key
        self.acknowledged: dict[str, int] = {}
        """The number in the last acknowledged configuration, by part."""
        self.sent: dict[str, int] = {}
        """The number in the last configuration that was sent, by part."""

    async def create(self, server: Server) -> None:
        connected = await self._connect(server)
        app = connected.app_client
        (organization,) = await app.list_organizations()
        location = await app.create_location(organization.id, "Hall")
        for number in range(WRITERS):
            machine = await app.new_robot(f"m{number}", location.id)
            (part,) = await app.get_robot_parts(machine)
            self.acknowledged[part.id] = self.sent[part.id] = 0
        connected.close()

    async def write_until_killed(self, server: Server, edits: int) -> None:
        connected = await self._connect(server)
        app = connected.app_client
        left = edits

        async def write(part: str) -> None:
            nonlocal left
            while True:
                self.sent[part] += 1
                number = self.sent[part]
                await app.update_robot_part(part, "m", {"number": number})
                self.acknowledged[part] = number
                left -= 1
                if left == 0:
                    server.process.kill()

        async with asyncio.timeout(60):
            ends = await asyncio.gather(*map(write, self.sent), return_exceptions=True)
        assert all(isinstance(end, GRPCError | StreamTerminatedError | OSError) for end in ends)
        connected.close()
        await server.exit_code()

    async def check(self, server: Server) -> None:
        connected = await self._connect(server)
        app = connected.app_client
        for part, number in self.acknowledged.items():
            found = number_of(await app.get_robot_part(part))
            # The last write may have been stored without its acknowledgement.
            assert number <= found <= self.sent[part]
            history = await app.get_robot_part_history(part)
            before = [number_of(each.old) for each in history if each.old is not None]
            # Newest first, without gaps between acknowledged writes.
            assert before == sorted(before, reverse=True)
            assert len(set(before)) == len(before)
            self.acknowledged[part] = self.sent[part] = found
        connected.close()

    async def _connect(self, server: Server) -> ViamClient:
        return await Cloud(f"localhost:{server.port}", self.key_id, self.key).connect()


def number_of(part: RobotPart) -> int:
    config: Any = part.robot_config
    return int(config.get("number", 0))


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_acknowledged_writes_survive_kills(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "cloud")]
    async with start_server(["init", *data], program=PROGRAM) as init:
        assert await init.exit_code() == 0
        key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
        key = (await init.out.wait_for(r"key: +(\S+)"))[1]
    fleet, rng = Fleet(key_id, key), random.Random(24)
    serve = ["serve", *data, "--address", "localhost:0"]
    async with start_server(serve, program=PROGRAM) as server:
        await server.wait_until_serving()
        await fleet.create(server)
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    for _ in range(KILLS):
        async with start_server(serve, program=PROGRAM) as server:
            await server.wait_until_serving()
            await fleet.check(server)
            await fleet.write_until_killed(server, rng.randint(1, 2 * EDITS_PER_LIFE))
    async with start_server(serve, program=PROGRAM) as server:
        await server.wait_until_serving()
        await fleet.check(server)
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    print(f"{KILLS} kills, {sum(fleet.sent.values())} edits of {WRITERS} writers")
