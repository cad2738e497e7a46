"""Sessions: clients that move something must send heartbeats."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.support.machine.served import refused
from tests.unit.robot.bench import (
    ARM,
    BASE,
    BUTTON,
    MOTION,
    MOTOR,
    Bench,
    InProcess,
    fail_with,
    running_bench,
    wait_forever,
)
from viam.gen.component.arm.v1 import arm_pb2 as arm
from viam.gen.component.base.v1 import base_pb2 as base
from viam.gen.component.button.v1 import button_pb2 as button
from viam.gen.component.motor.v1 import motor_pb2 as motor
from viam.gen.robot.v1 import robot_pb2 as robot
from viam.gen.service.motion.v1 import motion_pb2 as motion

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api, ResourceName
from cogwork.robot.motion.session_manager import SessionExpired
from cogwork.robot.status.status_view import build_status_view

MOTORS = "/viam.component.motor.v1.MotorService"
SET_POWER = f"{MOTORS}/SetPower"
PUSH = "/viam.component.button.v1.ButtonService/Push"
STREAMED_MOVE = "/viam.component.arm.v1.ArmService/MoveThroughJointPositionsStreamed"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with running_bench() as bench:
        bell = {"name": "bell", "api": str(BUTTON), "model": "bell"}
        await bench.apply(mover(MOTOR, "left"), mover(MOTOR, "right"), mover(ARM, "reach"), bell)
        watching = asyncio.ensure_future(bench.machine.sessions.watch())
        yield bench
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def mover(api: Api, name: str) -> dict[str, Any]:
    return {"name": name, "api": str(api), "model": "mover"}


async def start_session(bench: Bench, resume: str = "", **options: Any) -> str:
    reply = await bench.call_robot(
        "StartSession", robot.StartSessionRequest(resume=resume), **options
    )
    assert reply.heartbeat_window.ToMilliseconds() == 2000
    return str(reply.id)


async def send_heartbeat(bench: Bench, session: str) -> None:
    await bench.call_robot("SendSessionHeartbeat", robot.SendSessionHeartbeatRequest(id=session))


async def set_power(bench: Bench, name: str, session: str = "") -> None:
    metadata = {"viam-sid": session} if session else {}
    request = motor.SetPowerRequest(name=name, power_pct=1)
    await bench.call(SET_POWER, request, metadata=metadata)


def stopped_names(bench: Bench) -> list[str]:
    return [name for what, name, *_ in bench.history if what == "stop"]


async def test_expired_session_stops_what_it_moved(bench: Bench) -> None:
    session = await start_session(bench)
    await set_power(bench, "left", session)
    await bench.clock.advance(1.9)
    assert stopped_names(bench) == []
    await bench.clock.advance(0.2)
    assert stopped_names(bench) == ["left"]
    await bench.clock.advance(60)
    assert stopped_names(bench) == ["left"]


async def test_heartbeats_keep_the_session_alive(bench: Bench) -> None:
    session = await start_session(bench)
    await set_power(bench, "left", session)
    for _ in range(20):
        await bench.clock.advance(1.5)
        await send_heartbeat(bench, session)
    assert stopped_names(bench) == []
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == ["left"]


async def test_last_session_to_move_a_resource_owns_it(bench: Bench) -> None:
    first, second = await start_session(bench), await start_session(bench)
    await set_power(bench, "left", first)
    await set_power(bench, "right", first)
    await set_power(bench, "left", second)
    await bench.clock.advance(1)
    await send_heartbeat(bench, second)
    await bench.clock.advance(1.1)
    assert stopped_names(bench) == ["right"]
    await bench.clock.advance(1)
    assert stopped_names(bench) == ["right", "left"]


async def test_client_without_session_takes_over_permanently(bench: Bench) -> None:
    await set_power(bench, "left", await start_session(bench))
    await set_power(bench, "left")
    await bench.clock.advance(10)
    assert stopped_names(bench) == []


async def test_refused_command_does_not_take_over(bench: Bench) -> None:
    await set_power(bench, "left", await start_session(bench))
    bench.behaviors["left"] = _refuse_power
    with refused():
        await set_power(bench, "left", await start_session(bench))
    with refused():
        await set_power(bench, "left")
    assert len(bench.machine.sessions.all()[0].moved) == 1
    del bench.behaviors["left"]
    await bench.clock.advance(3)
    assert stopped_names(bench) == ["left"]


async def test_stream_of_an_expired_session_raises(bench: Bench) -> None:
    session = await start_session(bench)
    method = bench.table.find(STREAMED_MOVE)
    assert method is not None
    first = arm.MoveThroughJointPositionsStreamedRequest(name="reach")
    first.init.SetInParent()
    stream = InProcess(first, metadata={"viam-sid": session})
    stream.request = None
    await bench.clock.advance(2.1)
    with pytest.raises(SessionExpired):
        await method.handle(stream)


async def test_reading_call_does_not_take_over(bench: Bench) -> None:
    await set_power(bench, "left", await start_session(bench))
    await bench.call(f"{MOTORS}/IsMoving", motor.IsMovingRequest(name="left"))
    await bench.clock.advance(3)
    assert stopped_names(bench) == ["left"]


async def test_expired_session_ends_its_calls(bench: Bench) -> None:
    session = await start_session(bench)
    request = motor.GoForRequest(name="left", rpm=1, revolutions=1)
    call = await bench.start_call(
        bench.call(f"{MOTORS}/GoFor", request, metadata={"viam-sid": session})
    )
    (operation,) = await bench.operations()
    assert operation.session_id == session
    await bench.clock.advance(2.1)
    with refused() as error:
        await call
    assert error.status is Status.CANCELLED
    assert "the client that moved it sent no heartbeat" in error.words
    assert stopped_names(bench) == ["left"]


async def push_button(bench: Bench, session: str) -> None:
    request = button.PushRequest(name="bell")
    await bench.call(PUSH, request, metadata={"viam-sid": session})


def session_messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the log messages about ended sessions, without the session ids."""
    return [each.getMessage().split(" session ")[0] for each in caplog.records]


async def test_expired_session_ends_a_button_push(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    released = asyncio.Event()

    async def hold_button() -> None:
        try:
            await wait_forever()
        finally:
            released.set()

    bench.behaviors["bell"] = hold_button
    call = await bench.start_call(push_button(bench, await start_session(bench)))
    await bench.clock.advance(2.1)
    assert call.done(), "it is pushed for ever"
    with refused() as ended:
        await call
    assert ended.status is Status.CANCELLED
    assert "the client that moved it sent no heartbeat" in ended.words
    assert released.is_set()
    assert "stopped bell: last moved by" in session_messages(caplog)


async def test_log_names_only_stopped_resources(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.behaviors["bell"] = _do_nothing
    session = await start_session(bench)
    await push_button(bench, session)
    await set_power(bench, "left", session)
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == ["left"]
    assert session_messages(caplog)[-1] == "stopped left: last moved by"
    caplog.clear()
    await push_button(bench, await start_session(bench))
    await bench.clock.advance(2.1)
    (line,) = caplog.messages
    assert line.endswith("expired: no heartbeat for 2s")


async def test_expired_session_keeps_reading_calls_of_others(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.scripts["look", "left"] = gate.wait
    await set_power(bench, "left", await start_session(bench))
    look = await bench.start_call(
        bench.call(f"{MOTORS}/IsMoving", motor.IsMovingRequest(name="left"))
    )
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == ["left"]
    gate.set()
    assert not (await look).is_moving


async def test_stream_takes_over_the_resource_of_its_first_message(bench: Bench) -> None:
    session = await start_session(bench)
    first = arm.MoveThroughJointPositionsStreamedRequest(name="reach")
    first.init.SetInParent()
    method = bench.table.find(STREAMED_MOVE)
    assert method is not None
    stream = InProcess(first, metadata={"viam-sid": session})
    stream.request = None
    call = await bench.start_call(_ignore_errors(method.handle(stream)))
    await bench.clock.advance(2.1)
    await call
    assert stopped_names(bench) == ["reach"]


async def test_expired_session_error_has_the_text_clients_match(bench: Bench) -> None:
    session = await start_session(bench)
    await bench.clock.advance(2.1)
    for call in (set_power(bench, "left", session), send_heartbeat(bench, session)):
        with refused() as error:
            await call
        assert (error.status, error.words) == (Status.INVALID_ARGUMENT, "SESSION_EXPIRED")


async def test_session_can_be_resumed_until_it_expires(bench: Bench) -> None:
    session = await start_session(bench)
    assert await start_session(bench, resume=session) == session
    await bench.clock.advance(2.1)
    assert await start_session(bench, resume=session) != session


OWNER = "ipv4:10.0.0.7:1234"
OTHER_CONNECTION = "ipv4:10.0.0.7:1235"
STRANGER = "ipv4:10.0.0.8:1234"


async def test_get_sessions_lists_open_sessions(bench: Bench) -> None:
    session = await start_session(bench, peer=OWNER)
    (shown,) = (await bench.call_robot("GetSessions", peer=OWNER)).sessions
    assert shown.id == session
    assert shown.peer_connection_info.remote_address == OWNER
    await bench.clock.advance(2.1)
    assert not (await bench.call_robot("GetSessions")).sessions


async def test_session_ids_are_visible_only_to_their_owner(bench: Bench) -> None:
    session = await start_session(bench, peer=OWNER)
    for peer in (OTHER_CONNECTION, STRANGER):
        (shown,) = (await bench.call_robot("GetSessions", peer=peer)).sessions
        assert shown.id == ""
        assert shown.peer_connection_info.remote_address == "ipv4:10.0.0.7"
    session_metadata = {"viam-sid": session}
    (shown,) = (
        await bench.call_robot("GetSessions", peer=OTHER_CONNECTION, metadata=session_metadata)
    ).sessions
    assert shown.id == session


async def test_get_operations_hides_session_ids_of_others(bench: Bench) -> None:
    session = await start_session(bench, peer=OWNER)
    session_metadata = {"viam-sid": session}
    request = motor.GoForRequest(name="left", rpm=1, revolutions=1)
    going = bench.call(f"{MOTORS}/GoFor", request, metadata=session_metadata, peer=OWNER)
    call = await bench.start_call(_ignore_errors(going))
    for peer, metadata, shown in (
        (OWNER, {}, session),
        (OTHER_CONNECTION, session_metadata, session),
        (OTHER_CONNECTION, {}, ""),
        (STRANGER, {"viam-sid": "guessed"}, ""),
    ):
        reply = await bench.call_robot("GetOperations", peer=peer, metadata=metadata)
        assert [each.session_id for each in reply.operations] == [shown]
    await bench.clock.advance(2.1)
    await call


async def test_other_host_cannot_use_a_session(bench: Bench) -> None:
    session = await start_session(bench, peer=OWNER)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    heartbeat = robot.SendSessionHeartbeatRequest(id=session)
    for call in (
        bench.call(SET_POWER, request, metadata={"viam-sid": session}, peer=STRANGER),
        bench.call_robot("SendSessionHeartbeat", heartbeat, peer=STRANGER),
    ):
        with refused() as error:
            await call
        assert error.words == "SESSION_EXPIRED"
    assert await start_session(bench, resume=session, peer=STRANGER) != session
    assert await start_session(bench, resume=session, peer=OTHER_CONNECTION) == session
    await bench.call_robot("SendSessionHeartbeat", heartbeat, peer=OTHER_CONNECTION)


async def test_heartbeats_of_other_hosts_do_not_count(bench: Bench) -> None:
    session = await start_session(bench, peer=OWNER)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    await bench.call(SET_POWER, request, metadata={"viam-sid": session}, peer=OWNER)
    for _ in range(3):
        await bench.clock.advance(1)
        with contextlib.suppress(GRPCError):
            heartbeat = robot.SendSessionHeartbeatRequest(id=session)
            await bench.call_robot("SendSessionHeartbeat", heartbeat, peer=STRANGER)
    assert stopped_names(bench) == ["left"]


@pytest.mark.long
async def test_many_sessions_do_not_block_new_clients(bench: Bench) -> None:
    mover = await start_session(bench, peer=OWNER)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    await bench.call(SET_POWER, request, metadata={"viam-sid": mover}, peer=OWNER)
    for number in range(5000):
        await start_session(bench, peer=f"ipv4:10.0.0.7:{2000 + number % 600}")
    newcomer = await start_session(bench, peer="ipv4:10.0.0.7:9999")
    open_sessions = {each.id for each in bench.machine.sessions.all()}
    assert {mover, newcomer} <= open_sessions
    assert len(open_sessions) <= 2048


async def test_unknown_resource_names_are_not_kept(bench: Bench) -> None:
    session = await start_session(bench)
    with refused():
        await set_power(bench, "nobody", session)
    assert bench.machine.sessions.all()[0].moved == set()


async def test_hanging_stop_does_not_block_other_stops(bench: Bench) -> None:
    bench.scripts["stop", "left"] = asyncio.Event().wait
    first, second = await start_session(bench), await start_session(bench)
    await set_power(bench, "left", first)
    await set_power(bench, "right", second)
    await bench.clock.advance(2.1)
    assert sorted(stopped_names(bench)) == ["left", "right"]
    await bench.clock.advance(15)


MOTIONS = "/viam.service.motion.v1.MotionService"


@pytest.fixture
async def planners(bench: Bench) -> Bench:
    """A machine with two motion services, a base, and an arm that carries a gripper."""
    frame = {"parent": "reach"}
    await bench.apply(
        mover(BASE, "wheels"),
        mover(ARM, "reach") | {"frame": {"parent": "world"}},
        mover(MOTOR, "claw") | {"frame": frame},
        mover(MOTOR, "left"),
        services=[
            {"name": name, "api": str(MOTION), "model": "planner"} for name in ("plans", "others")
        ],
    )
    bench.history.clear()
    return bench


async def move_on_map(bench: Bench, service: str, session: str = "") -> None:
    request = motion.MoveOnMapRequest(name=service, component_name="wheels")
    metadata = {"viam-sid": session} if session else {}
    await bench.call(f"{MOTIONS}/MoveOnMap", request, metadata=metadata)


def motion_stops(bench: Bench) -> list[tuple[str, str]]:
    return [(what, name) for what, name, *_ in bench.history if what.startswith("stop")]


async def test_expired_session_stops_a_plan_and_the_base_that_it_moves(planners: Bench) -> None:
    await move_on_map(planners, "plans", await start_session(planners))
    await planners.clock.advance(1.9)
    assert motion_stops(planners) == []
    await planners.clock.advance(0.2)
    assert sorted(motion_stops(planners)) == [("stop", "wheels"), ("stop plan", "wheels")]


async def test_expired_session_ends_a_move_and_stops_the_arm_that_carries_the_component(
    planners: Bench,
) -> None:
    planners.behaviors["plans"] = wait_forever
    session = await start_session(planners)
    request = motion.MoveRequest(name="plans", component_name="claw")
    call = await planners.start_call(
        planners.call(f"{MOTIONS}/Move", request, metadata={"viam-sid": session})
    )
    await planners.clock.advance(2.1)
    with refused() as ended:
        await call
    assert ended.status is Status.CANCELLED
    assert ("stop", "reach") in motion_stops(planners)


async def test_expired_session_leaves_the_plans_of_others(planners: Bench) -> None:
    await move_on_map(planners, "plans", await start_session(planners))
    await move_on_map(planners, "others")
    await planners.clock.advance(2.1)
    assert motion_stops(planners) == []


async def test_module_that_moves_the_base_for_a_plan_does_not_take_it_from_the_session(
    planners: Bench,
) -> None:
    await move_on_map(planners, "plans", await start_session(planners))
    sessions = planners.machine.sessions
    wheels = ResourceName.parse("rdk:component:base/wheels")
    claim = sessions.claims.find(wheels)
    request = base.SetPowerRequest(name="wheels")
    await _ignore_errors(
        planners.call(
            "/viam.component.base.v1.BaseService/SetPower", request, peer="module:planning"
        )
    )
    assert sessions.claims.find(wheels) is claim


async def test_stopped_resource_is_not_stopped_again_when_the_session_expires(
    bench: Bench,
) -> None:
    session = await start_session(bench)
    await set_power(bench, "left", session)
    await set_power(bench, "right", session)
    await bench.call(f"{MOTORS}/Stop", motor.StopRequest(name="left"))
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == ["left", "right"]


async def test_stopped_plan_is_not_stopped_again_when_the_session_expires(planners: Bench) -> None:
    await move_on_map(planners, "plans", await start_session(planners))
    request = motion.StopPlanRequest(name="plans", component_name="wheels")
    await planners.call(f"{MOTIONS}/StopPlan", request)
    await planners.clock.advance(2.1)
    assert motion_stops(planners) == [("stop plan", "wheels")]


async def test_resource_whose_stop_fails_is_stopped_when_the_session_expires(bench: Bench) -> None:
    bench.scripts["stop", "left"] = _refuse_power
    await set_power(bench, "left", await start_session(bench))
    with refused():
        await bench.call(f"{MOTORS}/Stop", motor.StopRequest(name="left"))
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == ["left", "left"]


def fail_stops(bench: Bench, name: str, times: float) -> None:
    """Let the next stops of a motor fail."""

    async def fail_to_stop() -> None:
        if stopped_names(bench).count(name) <= times:
            raise OSError("the bus is busy")

    bench.scripts["stop", name] = fail_to_stop


async def test_failed_stop_of_an_ended_session_is_repeated_until_it_succeeds(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    fail_stops(bench, "left", 3)
    session = await start_session(bench)
    await set_power(bench, "left", session)
    await set_power(bench, "right", session)
    await bench.clock.advance(2.1)
    assert sorted(stopped_names(bench)) == ["left", "right"]
    await bench.clock.advance(0.2)
    assert stopped_names(bench).count("left") == 2
    await bench.clock.advance(60)
    assert sorted(stopped_names(bench)) == ["left"] * 4 + ["right"]
    (line,) = [each.getMessage() for each in caplog.records if each.levelno == logging.ERROR]
    assert "left with error the bus is busy; retrying until they stop" in line
    assert session_messages(caplog)[-1] == "stopped left: last moved by"


async def test_failed_stop_is_repeated_at_least_every_five_seconds(bench: Bench) -> None:
    fail_stops(bench, "left", math.inf)
    await set_power(bench, "left", await start_session(bench))
    await bench.clock.advance(60)
    before = len(stopped_names(bench))
    await bench.clock.advance(5)
    assert 1 <= len(stopped_names(bench)) - before <= 2


async def test_failed_stop_of_a_plan_is_repeated(planners: Bench) -> None:
    planners.scripts["stop plan", "wheels"] = fail_with("the planner is busy")
    await move_on_map(planners, "plans", await start_session(planners))
    await planners.clock.advance(2.1)
    del planners.scripts["stop plan", "wheels"]
    await planners.clock.advance(60)
    assert motion_stops(planners).count(("stop plan", "wheels")) == 2


async def test_failed_stop_is_not_repeated_after_another_client_moved_it(bench: Bench) -> None:
    fail_stops(bench, "left", math.inf)
    await set_power(bench, "left", await start_session(bench))
    await bench.clock.advance(2.1)
    await set_power(bench, "left")
    before = stopped_names(bench)
    await bench.clock.advance(60)
    assert stopped_names(bench) == before


async def test_failed_stop_is_not_repeated_after_another_client_stopped_it(bench: Bench) -> None:
    fail_stops(bench, "left", 1)
    await set_power(bench, "left", await start_session(bench))
    await bench.clock.advance(2.1)
    await bench.call(f"{MOTORS}/Stop", motor.StopRequest(name="left"))
    await bench.clock.advance(60)
    assert stopped_names(bench) == ["left", "left"]


async def test_failed_stop_is_not_repeated_for_a_removed_resource(bench: Bench) -> None:
    fail_stops(bench, "left", math.inf)
    await set_power(bench, "left", await start_session(bench))
    await bench.clock.advance(2.1)
    await bench.apply(mover(MOTOR, "right"))
    before = stopped_names(bench)
    await bench.clock.advance(10)
    await bench.apply(mover(MOTOR, "left"), mover(MOTOR, "right"))
    await bench.clock.advance(60)
    assert stopped_names(bench) == before


async def test_failed_stop_is_repeated_when_the_resource_is_built_again(bench: Bench) -> None:
    fail_stops(bench, "left", 2)
    bench.scripts["build", "left"] = fail_with("the module is gone")
    await set_power(bench, "left", await start_session(bench))
    await bench.clock.advance(2.1)
    # It is replaced, which cannot stop it either.
    await bench.apply(mover(MOTOR, "left") | {"attributes": {"label": "other"}})
    await bench.clock.advance(10)
    assert stopped_names(bench).count("left") == 2
    del bench.scripts["build", "left"]
    await bench.clock.advance(60)
    assert stopped_names(bench).count("left") == 3


async def test_refused_call_does_not_keep_a_motor_moving_for_an_ended_session(
    bench: Bench,
) -> None:
    refuse = asyncio.Event()

    async def refuse_late() -> None:
        await refuse.wait()
        raise InvalidRequest("no power like that")

    await set_power(bench, "left", await start_session(bench))
    bench.behaviors["left"] = refuse_late
    call = await bench.start_call(_ignore_errors(set_power(bench, "left")))
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == []
    refuse.set()
    await call
    await bench.clock.settle()
    assert stopped_names(bench) == ["left"]


async def test_service_that_takes_over_goes_on_when_the_session_expires(bench: Bench) -> None:
    await set_power(bench, "left", await start_session(bench))
    left = ResourceName.parse("rdk:component:motor/left")
    bench.machine.sessions.take_over(left, "navigation nav")
    await bench.clock.advance(2.1)
    assert stopped_names(bench) == []


async def test_status_tells_who_moves_a_resource_until_it_is_stopped(bench: Bench) -> None:
    async def read_mover() -> Any:
        view = await build_status_view(bench.machine, bench.report)
        (left,) = [each for each in view["resources"] if each["name"].endswith("/left")]
        return left["moved_by"]

    assert await read_mover() is None
    session = await start_session(bench, peer=OWNER)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    await bench.call(SET_POWER, request, metadata={"viam-sid": session}, peer=OWNER)
    assert await read_mover() == {"who": "10.0.0.7", "session": session[:8]}
    await bench.call(SET_POWER, request, peer="job:nightly")
    assert await read_mover() == {"who": "job nightly", "session": None}
    await bench.call_robot("StopAll")
    assert await read_mover() is None


async def _do_nothing() -> None:
    pass


async def _refuse_power(*_: Any) -> None:
    raise InvalidRequest("no power like that")


async def _ignore_errors(call: Any) -> None:
    await asyncio.gather(call, return_exceptions=True)
