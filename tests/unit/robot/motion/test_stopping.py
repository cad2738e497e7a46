"""While the machine stops, clients keep what they know of it, and can still stop what moves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from grpclib.const import Status
from grpclib.health.v1 import health_pb2
from tests.support.machine.served import refused
from tests.unit.robot.bench import MOTOR, Bench, InProcess, thing
from viam.gen.component.motor.v1 import motor_pb2

STOP = "/viam.component.motor.v1.MotorService/Stop"
SET_POWER = "/viam.component.motor.v1.MotorService/SetPower"
HEALTH = "/grpc.health.v1.Health"
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


class StoppingMachine:
    """A machine of which "closed" is closed, and a motor is open until its dependent has closed."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._may_close = asyncio.Event()
        self._closing: asyncio.Future[Any] | None = None

    async def begin(self) -> None:
        wheel = {"name": "wheel", "api": str(MOTOR), "model": "mover"}
        await self.bench.apply(wheel, thing("user", needs="wheel"), thing("closed"))
        self.bench.scripts["close", "user"] = self._may_close.wait
        self._closing = asyncio.ensure_future(self.bench.machine.aclose())
        await self.bench.clock.settle()
        assert ("close", "closed") in self.bench.history

    async def end(self) -> None:
        self._may_close.set()
        if self._closing is not None:
            await self._closing

    async def list_names(self) -> list[str]:
        return [each.name for each in (await self.bench.call_robot("ResourceNames")).resources]


@pytest.fixture
async def stopping(bench: Bench) -> Any:
    machine = StoppingMachine(bench)
    yield machine
    await machine.end()


async def test_list_of_resources_stays(stopping: StoppingMachine) -> None:
    await stopping.begin()
    assert sorted(await stopping.list_names()) == ["closed", "user", "wheel"]
    subtypes = await stopping.bench.call_robot("ResourceRPCSubtypes")
    assert len(subtypes.resource_rpc_subtypes) == 2
    await stopping.end()
    assert sorted(await stopping.list_names()) == ["closed", "user", "wheel"]


async def test_calls_are_refused_with_the_reason(stopping: StoppingMachine) -> None:
    await stopping.begin()
    with refused() as closed:
        await stopping.bench.do_command("closed")
    with refused() as still_open:
        await stopping.bench.call(SET_POWER, motor_pb2.SetPowerRequest(name="wheel", power_pct=1))
    for error in (closed, still_open):
        assert error.status is Status.UNAVAILABLE
        assert error.words == "the machine is stopping; try again when it has restarted"


async def test_what_moves_can_be_stopped_to_the_last(stopping: StoppingMachine) -> None:
    await stopping.begin()
    stopping.bench.history.clear()
    await stopping.bench.call(STOP, motor_pb2.StopRequest(name="wheel"))
    await stopping.bench.call_robot("StopAll")
    assert [each[:2] for each in stopping.bench.history] == [("stop", "wheel")] * 2
    await stopping.bench.call_robot("StartSession")


async def test_modules_may_use_their_dependencies_while_they_close(
    stopping: StoppingMachine,
) -> None:
    await stopping.begin()
    request = motor_pb2.SetPowerRequest(name="wheel", power_pct=1)
    await stopping.bench.call(SET_POWER, request, peer="module:acme")


async def test_health_says_so(stopping: StoppingMachine) -> None:
    bench, request = stopping.bench, health_pb2.HealthCheckRequest()
    assert (await bench.call(f"{HEALTH}/Check", request)).status == SERVING
    watch = bench.table.find(f"{HEALTH}/Watch")
    assert watch is not None
    stream = InProcess(request)
    watching = asyncio.ensure_future(watch.handle(stream))
    await bench.clock.settle()
    await stopping.begin()
    assert (await bench.call(f"{HEALTH}/Check", request)).status == NOT_SERVING
    assert [each.status for each in stream.replies] == [SERVING, NOT_SERVING]
    watching.cancel()
    await asyncio.gather(watching, return_exceptions=True)
