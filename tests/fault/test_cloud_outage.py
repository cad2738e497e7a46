"""A machine whose cloud is killed: it restarts, works, logs too much, and catches up."""

from __future__ import annotations

import contextlib
import re
import signal
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from grpclib.client import Channel
from tests.support.cloud.fleet import Cloud, make_part
from tests.support.machine.modular import poll
from tests.support.machine.running import DEADLINE, Server, run_server, start_server
from tests.support.sizes import limit, size
from viam.app.app_client import AppClient, LogEntry
from viam.gen.common.v1 import common_pb2
from viam.gen.component.sensor.v1.sensor_grpc import SensorServiceStub
from viam.gen.proto.rpc.v1.auth_grpc import AuthServiceStub
from viam.gen.proto.rpc.v1.auth_pb2 import AuthenticateRequest, Credentials
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import LogRequest

from cogwork.logs.spool import MAX_BYTES

PROGRAM = (sys.executable, "-m", "cogwork.cloud.main")
SENSOR = {"name": "scale", "api": "rdk:component:sensor", "model": "fake"}
REFRESH_INTERVAL = size(ci=1, full=10)
"""Seconds between two questions of the machine. Full size has the default."""
LINE_BYTES = 30 << 10
LINES = size(ci=3, full=4) * MAX_BYTES // 2 // LINE_BYTES
"""More than the machine keeps on its disk: at full size, twice as many."""
BATCH = 8
NOTICE = re.compile(r"dropped (\d+) log lines? while the cloud was unreachable")
LOG_LINE = re.compile(r"\S+Z?\t(DEBUG|INFO|WARN|ERROR)\t")


@dataclass
class Joined:
    """A cloud and a machine of it, each of which runs as a process of its own."""

    directory: Path
    key_id: str
    key: str
    address: str = "localhost:0"
    part: str = ""
    secret: str = ""
    written: int = 0
    """Lines in the log of the machine, of all of its processes."""

    @contextlib.asynccontextmanager
    async def run_cloud(self) -> AsyncIterator[tuple[Server, AppClient]]:
        arguments = ["serve", "--data", str(self.directory / "cloud"), "--address", self.address]
        async with start_server(arguments, program=PROGRAM) as server:
            await server.wait_until_serving()
            self.address = f"localhost:{server.port}"
            connected = await Cloud(self.address, self.key_id, self.key).connect()
            try:
                yield server, connected.app_client
            finally:
                connected.close()
            if server.process.returncode is None:
                server.signal(signal.SIGTERM)
                assert await server.exit_code() == 0

    @contextlib.asynccontextmanager
    async def run_machine(self) -> AsyncIterator[Server]:
        cloud = {
            "id": self.part,
            "secret": self.secret,
            "app_address": f"http://{self.address}",
            "refresh_interval": f"{REFRESH_INTERVAL}s",
        }
        async with run_server({"cloud": cloud}, self.directory, arguments=["-no-tls"]) as server:
            yield server
        self.written += sum(1 for line in server.out.lines if LOG_LINE.match(line))

    async def create(self, client: AppClient) -> None:
        self.part = await make_part(client)
        self.secret = (await client.get_robot_part(self.part)).secret
        await self.save(client, SENSOR)

    async def save(self, client: AppClient, *components: Any) -> None:
        await client.update_robot_part(self.part, "press-main", {"components": [*components]})

    async def log_in(self, machine: Server) -> tuple[Channel, dict[str, str]]:
        """Log in to the machine itself, with a key of the cloud."""
        channel = Channel("localhost", machine.port)
        credentials = Credentials(type="api-key", payload=self.key)
        request = AuthenticateRequest(entity=self.key_id, credentials=credentials)
        reply = await AuthServiceStub(channel).Authenticate(request, timeout=DEADLINE)
        return channel, {"authorization": f"Bearer {reply.access_token}"}


@pytest.mark.timeout(600)
async def test_machine_outlives_its_cloud_and_tells_what_it_dropped(tmp_path: Path) -> None:
    joined = Joined(tmp_path, *await init_cloud(tmp_path))
    async with joined.run_cloud() as (cloud, client):
        await joined.create(client)
        async with joined.run_machine() as machine:
            await machine.out.wait_for("1 ready")
            await poll_cached(tmp_path)
            cloud.signal(signal.SIGKILL)
            await cloud.exit_code()
            await machine.out.wait_for("does not answer")
    async with joined.run_machine() as machine:
        await machine.out.wait_for("running the stored configuration from the cloud")
        await machine.out.wait_for("1 ready")
        channel, login = await joined.log_in(machine)
        sensors = SensorServiceStub(channel)
        request = common_pb2.GetReadingsRequest(name="scale")
        assert (await sensors.GetReadings(request, metadata=login, timeout=DEADLINE)).readings
        await write_lines(RobotServiceStub(channel), login)
        assert (await sensors.GetReadings(request, metadata=login, timeout=DEADLINE)).readings
        channel.close()
        await machine.out.wait_for(rf"line {LINES - 1} ")

        async with joined.run_cloud() as (_, client):
            began = time.monotonic()
            await joined.save(client, SENSOR, {**SENSOR, "name": "second"})
            await machine.out.wait_for("2 ready")
            in_sync = time.monotonic() - began
            await poll(
                lambda: client.get_robot_part_logs(joined.part, num_log_entries=100),
                lambda found: any("2 ready" in each.message for each in found),
            )
            sent = time.monotonic() - began
            machine.signal(signal.SIGTERM)
            await machine.exit_code()
            lines = await client.get_robot_part_logs(joined.part, num_log_entries=0)
    dropped, received = count_dropped(lines), count_received(lines)
    print(
        f"=> in sync {in_sync:.1f} s after the cloud was back, its log after {sent:.1f} s: "
        f"{joined.written} lines written, {received} received, {dropped} dropped"
    )
    assert dropped > LINES // 4
    assert received + dropped == joined.written
    assert in_sync < limit(15)


async def init_cloud(directory: Path) -> tuple[str, str]:
    """Return the ID of the key of the first owner, and the key."""
    arguments = ["init", "--data", str(directory / "cloud")]
    async with start_server(arguments, program=PROGRAM) as init:
        assert await init.exit_code() == 0
        key_id = (await init.out.wait_for(r"key ID: (\S+)"))[1]
        key = (await init.out.wait_for(r"key: +(\S+)"))[1]
    return key_id, key


async def poll_cached(directory: Path) -> None:
    """Wait until the machine has stored what it got from the cloud."""

    async def find() -> list[Path]:
        return [*(directory / "home" / "joined").glob("*.json")]

    await poll(find, bool)


async def write_lines(machine: RobotServiceStub, login: dict[str, str]) -> None:
    """Write more lines to the log of a machine than it keeps for its cloud."""
    lines = [f"line {number} ".ljust(LINE_BYTES, "x") for number in range(LINES)]
    for start in range(0, LINES, BATCH):
        entries = [
            common_pb2.LogEntry(level="info", logger_name="writer", message=each)
            for each in lines[start : start + BATCH]
        ]
        await machine.Log(LogRequest(logs=entries), metadata=login, timeout=DEADLINE)


def count_dropped(lines: list[LogEntry]) -> int:
    """Return how many lines the machine told to have dropped."""
    return sum(int(found[1]) for each in lines if (found := NOTICE.match(each.message)))


def count_received(lines: list[LogEntry]) -> int:
    """Return how many lines arrived. One that was sent again counts once."""
    own = [each for each in lines if not NOTICE.match(each.message)]
    return len({(each.time, each.logger_name, each.message) for each in own})
