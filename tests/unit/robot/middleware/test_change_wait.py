"""Calls that arrive while a resource is being changed wait for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.unit.robot.bench import (
    ARM,
    MOTOR,
    READ,
    Bench,
    InProcess,
    fail_with,
    probe,
    thing,
)
from viam.gen.common.v1 import common_pb2 as common
from viam.gen.component.arm.v1 import arm_pb2 as arm
from viam.gen.component.motor.v1 import motor_pb2 as motor

from cogwork.robot.middleware.change_wait import CHANGE_TIMEOUT
from cogwork.wire.table.concurrency_limit import ConcurrencyLimits

MOTOR_SERVICE = "/viam.component.motor.v1.MotorService"
STREAMED_MOVE = "/viam.component.arm.v1.ArmService/MoveThroughJointPositionsStreamed"
BEING_RECONFIGURED = (
    "resource rdk:component:generic/a not available; reason=it is being reconfigured; try again"
)


def wheel(label: str = "") -> dict[str, Any]:
    return {
        "name": "w",
        "api": str(MOTOR),
        "model": "mover",
        "attributes": {"label": label} if label else {},
    }


def set_power() -> motor.SetPowerRequest:
    return motor.SetPowerRequest(name="w", power_pct=0.5)


async def start_change(bench: Bench, seconds: float, model: str = "thing") -> None:
    """Change the resource `a`, which takes the given time: in place if the model is `mutable`."""
    what = "reconfigure" if model == "mutable" else "build"
    await bench.apply(thing("a", model))
    bench.scripts[what, "a"] = lambda: bench.clock.sleep(seconds)
    bench.start_apply({"components": [thing("a", model, label="new")]})
    await bench.clock.advance(0.1)


async def start_wheel_change(bench: Bench, seconds: float) -> None:
    await bench.apply(wheel())
    bench.scripts["build", "w"] = lambda: bench.clock.sleep(seconds)
    bench.start_apply({"components": [wheel("new")]})
    await bench.clock.advance(0.1)


@pytest.mark.parametrize("model", ["thing", "mutable"])
async def test_call_waits_until_the_change_is_complete(bench: Bench, model: str) -> None:
    await start_change(bench, 3, model)
    task = await bench.start_call(bench.do_command("a", {"x": 1}))
    await bench.clock.advance(2)
    assert not task.done()
    await bench.clock.advance(1)
    assert await task == {"x": 1}


async def test_call_waits_for_a_rebuilt_dependency(bench: Bench) -> None:
    await bench.apply(thing("a"), thing("b", needs="a"))
    bench.scripts["build", "a"] = lambda: bench.clock.sleep(3)
    bench.start_apply({"components": [thing("a", label="new"), thing("b", needs="a")]})
    await bench.clock.advance(0.1)
    task = await bench.start_call(bench.do_command("b", {"x": 1}))
    await bench.clock.advance(3)
    assert await task == {"x": 1}


async def test_call_waits_for_the_first_build(bench: Bench) -> None:
    bench.scripts["build", "a"] = lambda: bench.clock.sleep(3)
    bench.start_apply({"components": [thing("a")]})
    task = await bench.start_call(bench.do_command("a", {"x": 1}))
    await bench.clock.advance(3)
    assert await task == {"x": 1}


async def test_wait_is_limited(bench: Bench) -> None:
    await start_change(bench, 20)
    task = await bench.start_call(bench.do_command("a"))
    await bench.clock.advance(CHANGE_TIMEOUT - 0.1)
    assert not task.done()
    await bench.clock.advance(0.1)
    with refused() as error:
        await task
    assert (error.status, error.words) == (Status.UNAVAILABLE, BEING_RECONFIGURED)
    await bench.clock.advance(20)


async def test_wait_ends_before_the_deadline_of_the_call(bench: Bench) -> None:
    await start_change(bench, 20)
    task = await bench.start_call(bench.do_command("a", timeout=2.0))
    await bench.clock.advance(2)
    with refused() as error:
        await task
    assert error.words == BEING_RECONFIGURED
    await bench.clock.advance(20)


async def test_failed_change_ends_the_wait_with_its_reason(bench: Bench) -> None:
    async def fail_later() -> None:
        await bench.clock.sleep(1)
        raise RuntimeError("the cable was pulled")

    await bench.apply(thing("a"))
    bench.scripts["build", "a"] = fail_later
    bench.start_apply({"components": [thing("a", label="new")]})
    await bench.clock.advance(0.1)
    task = await bench.start_call(bench.do_command("a"))
    await bench.clock.advance(1)
    with refused() as error:
        await task
    assert error.words.endswith("reason=the cable was pulled")


async def test_removal_ends_the_wait(bench: Bench) -> None:
    await start_change(bench, 20)
    task = await bench.start_call(bench.do_command("a"))
    bench.start_apply({"components": []})
    await bench.clock.advance(2)
    with refused() as error:
        await task
    assert error.status in (Status.UNAVAILABLE, Status.NOT_FOUND)
    await bench.clock.advance(20)


async def test_unhealthy_resource_fails_at_once_even_while_it_is_retried(bench: Bench) -> None:
    bench.scripts["build", "a"] = fail_with("no such device")
    await bench.apply(thing("a"))
    with refused() as error:
        await bench.do_command("a")
    assert error.words.endswith("reason=no such device")
    bench.scripts["build", "a"] = lambda: bench.clock.sleep(3)
    await bench.clock.advance(2)
    with refused() as error:
        await bench.do_command("a")
    assert error.words.endswith("reason=no such device")
    await bench.clock.advance(30)


async def test_cancelled_call_stops_waiting(bench: Bench) -> None:
    await start_change(bench, 3)
    task = await bench.start_call(bench.do_command("a"))
    other = await bench.start_call(bench.do_command("a", {"x": 1}))
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert len(bench.machine.operations.others()) == 1
    await bench.clock.advance(3)
    assert await other == {"x": 1}


async def test_waiting_calls_count_toward_the_concurrency_limit(bench: Bench) -> None:
    await start_change(bench, 20)
    most = ConcurrencyLimits().running // 2
    tasks = [await bench.start_call(bench.do_command("a")) for _ in range(most + 1)]
    waiting = [each for each in bench.machine.operations.others() if each.awaited is not None]
    assert len(waiting) == most
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await bench.clock.advance(20)


async def test_stop_does_not_wait_and_ends_waiting_moves(bench: Bench) -> None:
    await start_wheel_change(bench, 3)
    move = await bench.start_call(bench.call(f"{MOTOR_SERVICE}/SetPower", set_power()))
    read = await bench.start_call(
        bench.call(f"{MOTOR_SERVICE}/IsMoving", motor.IsMovingRequest(name="w"))
    )
    with refused() as error:
        await bench.call(f"{MOTOR_SERVICE}/Stop", motor.StopRequest(name="w"))
    assert error.status is Status.UNAVAILABLE
    with refused() as error:
        await move
    assert error.words == "cancelled, because the resource was told to stop"
    await bench.clock.advance(3)
    assert not (await read).is_moving


async def test_stop_all_does_not_wait_and_ends_waiting_moves(bench: Bench) -> None:
    await start_wheel_change(bench, 3)
    request = common.DoCommandRequest(name="w")
    tasks = [
        await bench.start_call(bench.call(f"{MOTOR_SERVICE}/SetPower", set_power())),
        await bench.start_call(bench.call(f"{MOTOR_SERVICE}/DoCommand", request)),
    ]
    await bench.call_robot("StopAll")
    for task in tasks:
        with refused() as error:
            await task
        assert error.status is Status.CANCELLED
    await bench.clock.advance(3)


async def test_first_message_of_a_client_stream_is_not_lost(bench: Bench) -> None:
    config = {"name": "reach", "api": str(ARM), "model": "mover"}
    bench.scripts["build", "reach"] = lambda: bench.clock.sleep(3)
    bench.start_apply({"components": [config]})
    await bench.clock.settle()
    method = bench.table.find(STREAMED_MOVE)
    assert method is not None
    request = arm.MoveThroughJointPositionsStreamedRequest(name="reach")
    request.init.SetInParent()
    stream = InProcess(request)
    stream.request = None
    task = await bench.start_call(method.handle(stream))
    await bench.clock.advance(3)
    assert [each.held_resources != [] for each in bench.machine.operations.others()] == [True]
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_call_that_may_have_used_a_resource_is_not_repeated(bench: Bench) -> None:
    used = []

    async def use_other(command: object) -> None:
        used.append(command)
        bench.machine.find(name)

    await bench.apply(thing("a"), thing("b"))
    name = next(each for each in bench.machine.nodes if each.short == "a")
    bench.behaviors["b"] = use_other
    bench.scripts["build", "a"] = lambda: bench.clock.sleep(3)
    bench.start_apply({"components": [thing("a", label="new"), thing("b")]})
    await bench.clock.advance(0.1)
    with refused() as error:
        await bench.do_command("b")
    assert error.words == BEING_RECONFIGURED
    assert len(used) == 1
    await bench.clock.advance(3)


async def test_reading_call_waits_for_another_resource_that_it_looks_up(bench: Bench) -> None:
    async def read_other(**_: Any) -> dict[str, bool]:
        return {"found": bench.machine.find(name) is not None}

    await bench.apply(thing("a"), probe("p"))
    name = next(each for each in bench.machine.nodes if each.short == "a")
    bench.behaviors["p"] = read_other
    bench.scripts["build", "a"] = lambda: bench.clock.sleep(3)
    bench.start_apply({"components": [thing("a", label="new"), probe("p")]})
    await bench.clock.advance(0.1)
    task = await bench.start_call(bench.call(READ, common.GetReadingsRequest(name="p")))
    assert not task.done()
    await bench.clock.advance(3)
    assert (await task).readings["found"].bool_value
