"""What a client moves stops when the client is gone; clients use the unmodified SDK."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.support.machine import sdk_mover
from tests.support.machine.programs import start_mover
from tests.support.machine.running import Server, plug_in, run_server
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, poll

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.motor.client import MotorClient  # noqa: E402
from viam.gen.component.motor.v1.motor_grpc import MotorServiceStub  # noqa: E402
from viam.gen.component.motor.v1.motor_pb2 import SetPowerRequest, StopRequest  # noqa: E402
from viam.gen.robot.v1.robot_grpc import RobotServiceStub  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    GetOperationsRequest,
    GetSessionsRequest,
    SendSessionHeartbeatRequest,
    StartSessionRequest,
    StopAllRequest,
)

KILLS = size(ci=1, full=20)
WINDOW = limit(0.5)
"""Seconds of silence that end a session."""
SLACK = limit(0.15)
"""Seconds until it is seen that the motor stands: between two questions, on a busy computer."""
PROMPTLY = limit(0.1)
MOVERS = {
    "arm": {"speed_degs_per_sec": 5},
    "base": {},
    "gantry": {"lengths_mm": [100_000]},
    "gripper": {},
    "motor": {},
    "servo": {"degrees_per_second": 1},
}


SLOW = """
import asyncio, logging, os
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model

log = logging.getLogger("acme")


class Slow:
    def __init__(self, motor):
        self.motor = motor

    async def close(self):
        log.info("closing slowly; the motor moves: %s", await self.motor.is_moving())
        while not os.path.exists(os.environ["MAY_CLOSE"]):
            await asyncio.sleep(0.01)
        log.info("closed at last; the motor moves: %s", await self.motor.is_moving())


async def new(name, attributes, dependencies):
    return Slow(*dependencies.values())


SLOW = Model(Api.parse("rdk:component:generic"), ModelName.parse("acme:test:slow"), Attributes, new)
"""


@pytest.fixture
def acme(tmp_path: Path) -> dict[str, str]:
    """Install a model that closes when the file `MAY_CLOSE` is there."""
    installed = plug_in(tmp_path / "plugged-in", SLOW, "slow = {module}:SLOW")
    return {**installed, "MAY_CLOSE": str(tmp_path / "may-close")}


def config(*subtypes: str) -> dict[str, Any]:
    return {
        "components": [
            {
                "name": subtype,
                "api": f"rdk:component:{subtype}",
                "model": "fake",
                "attributes": MOVERS[subtype],
            }
            for subtype in subtypes
        ],
        "network": {"sessions": {"heartbeat_window": f"{WINDOW}s"}},
    }


async def seconds_until_rest(is_moving: Any, since: float) -> float:
    """Return the seconds from `since` until it was seen at rest."""
    async with asyncio.timeout(60):
        while await is_moving():
            pass
    return time.monotonic() - since


async def test_motor_stops_when_its_client_is_killed(tmp_path: Path) -> None:
    took = []
    async with run_server(config("motor"), tmp_path) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        motor = MotorClient("motor", channel)
        for _ in range(KILLS):
            async with start_mover(server.port, "motor") as client:
                # It sends heartbeats: nothing happens for longer than the window.
                await pass_time(1.2 * WINDOW)
                assert await motor.is_moving()
                client.kill()
                took.append(await seconds_until_rest(motor.is_moving, time.monotonic()))
        stub = RobotServiceStub(channel)
        await poll(lambda: stub.GetSessions(GetSessionsRequest()), lambda reply: not reply.sessions)
        channel.close()
        assert "expired: no heartbeat for" in server.out.text
    print(f"stopped {min(took):.2f} to {max(took):.2f} s after the kill, window {WINDOW} s")
    assert max(took) < WINDOW + SLACK


async def test_stop_all_stops_everything_within_a_tenth_of_a_second(tmp_path: Path) -> None:
    async with run_server(config(*MOVERS), tmp_path) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        stub = RobotServiceStub(channel)
        async with start_mover(server.port, ",".join(MOVERS)):
            assert await find_moving(channel) == set(MOVERS)
            since = time.monotonic()
            await stub.StopAll(StopAllRequest())
            took = time.monotonic() - since
            assert await find_moving(channel) == set()
            assert not (await stub.GetOperations(GetOperationsRequest())).operations
        channel.close()
    print(f"{len(MOVERS)} stopped in {took * 1000:.1f} ms")
    assert took < PROMPTLY


@asynccontextmanager
async def machine_closing_slowly(
    tmp_path: Path, acme: dict[str, str], subtype: str
) -> AsyncIterator[tuple[Server, Channel]]:
    """Yield a machine whose user of a mover closes slowly, and a connected channel."""
    machine = config(subtype)
    slow = {"name": "slow", "api": "rdk:component:generic", "model": "acme:test:slow"}
    machine["components"].append({**slow, "depends_on": [subtype]})
    async with run_server(machine, tmp_path, environment=acme) as server:
        await server.wait_for_status(state="running")
        channel = Channel("localhost", server.port)
        try:
            await RobotServiceStub(channel).GetSessions(GetSessionsRequest())
            yield server, channel
        finally:
            channel.close()
            Path(acme["MAY_CLOSE"]).touch()
        # It was asked to stop already: a second signal would end it at once.
        assert await server.exit_code() == 0


async def test_motor_stops_before_its_dependents_have_closed(
    tmp_path: Path, acme: dict[str, str]
) -> None:
    async with machine_closing_slowly(tmp_path, acme, "motor") as (server, channel):
        await MotorClient("motor", channel).set_power(1)
        server.signal(signal.SIGTERM)
        await server.out.wait_for("closing slowly; the motor moves: False")
        assert "closed at last" not in server.out.text


async def test_nothing_can_be_moved_while_the_machine_closes(
    tmp_path: Path, acme: dict[str, str]
) -> None:
    """Clients keep their sessions, and may still stop what moves."""
    async with machine_closing_slowly(tmp_path, acme, "motor") as (server, channel):
        motor, robot = MotorServiceStub(channel), RobotServiceStub(channel)
        session = (await robot.StartSession(StartSessionRequest())).id
        server.signal(signal.SIGTERM)
        await server.out.wait_for("closing slowly")
        full, metadata = SetPowerRequest(name="motor", power_pct=1), {"viam-sid": session}
        with pytest.raises(GRPCError, match="the machine is stopping") as refused:
            await motor.SetPower(full, metadata=metadata)
        assert refused.value.status is Status.UNAVAILABLE
        await motor.Stop(StopRequest(name="motor"), metadata=metadata)
        await robot.SendSessionHeartbeat(SendSessionHeartbeatRequest(id=session))
        assert "closed at last" not in server.out.text
        Path(acme["MAY_CLOSE"]).touch()
        await server.out.wait_for("closed at last; the motor moves: False")


async def find_moving(channel: Channel) -> set[str]:
    clients = {name: sdk_mover.CLIENTS[name](name, channel) for name in MOVERS}
    return {name for name, client in clients.items() if await client.is_moving()}
