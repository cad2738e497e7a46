"""Clients that move something have to be heard of."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from grpclib import GRPCError
from grpclib.const import Status
from tests.served import refused
from tests.unit.robot.bench import ARM, BUTTON, MOTOR, Bench, InProcess, for_ever, working
from viam.gen.component.arm.v1 import arm_pb2 as arm
from viam.gen.component.button.v1 import button_pb2 as button
from viam.gen.component.motor.v1 import motor_pb2 as motor
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.robot.session_manager import SessionExpired

MOTORS = "/viam.component.motor.v1.MotorService"
SPIN = f"{MOTORS}/SetPower"
PUSH = "/viam.component.button.v1.ButtonService/Push"
STREAMED = "/viam.component.arm.v1.ArmService/MoveThroughJointPositionsStreamed"


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with working() as made:
        bell = {"name": "bell", "api": str(BUTTON), "model": "bell"}
        await made.apply(mover(MOTOR, "left"), mover(MOTOR, "right"), mover(ARM, "reach"), bell)
        watching = asyncio.ensure_future(made.machine.sessions.watch())
        yield made
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def mover(api: Api, name: str) -> dict[str, Any]:
    return {"name": name, "api": str(api), "model": "mover"}


async def start(bench: Bench, resume: str = "", **options: Any) -> str:
    reply = await bench.ask("StartSession", robot.StartSessionRequest(resume=resume), **options)
    assert reply.heartbeat_window.ToMilliseconds() == 2000
    return str(reply.id)


async def beat(bench: Bench, session: str) -> None:
    await bench.ask("SendSessionHeartbeat", robot.SendSessionHeartbeatRequest(id=session))


async def spin(bench: Bench, name: str, session: str = "") -> None:
    metadata = {"viam-sid": session} if session else {}
    request = motor.SetPowerRequest(name=name, power_pct=1)
    await bench.call(SPIN, request, metadata=metadata)


def stopped(bench: Bench) -> list[str]:
    return [name for what, name, *_ in bench.history if what == "stop"]


async def test_what_a_silent_client_moved_is_stopped(bench: Bench) -> None:
    session = await start(bench)
    await spin(bench, "left", session)
    await bench.clock.advance(1.9)
    assert stopped(bench) == []
    await bench.clock.advance(0.2)
    assert stopped(bench) == ["left"]
    await bench.clock.advance(60)
    assert stopped(bench) == ["left"]


async def test_as_long_as_it_is_heard_of_nothing_stops(bench: Bench) -> None:
    session = await start(bench)
    await spin(bench, "left", session)
    for _ in range(20):
        await bench.clock.advance(1.5)
        await beat(bench, session)
    assert stopped(bench) == []
    await bench.clock.advance(2.1)
    assert stopped(bench) == ["left"]


async def test_only_the_last_to_move_it_counts(bench: Bench) -> None:
    first, second = await start(bench), await start(bench)
    await spin(bench, "left", first)
    await spin(bench, "right", first)
    await spin(bench, "left", second)
    await bench.clock.advance(1)
    await beat(bench, second)
    await bench.clock.advance(1.1)
    assert stopped(bench) == ["right"]
    await bench.clock.advance(1)
    assert stopped(bench) == ["right", "left"]


async def test_a_client_without_a_session_takes_it_over_for_good(bench: Bench) -> None:
    await spin(bench, "left", await start(bench))
    await spin(bench, "left")
    await bench.clock.advance(10)
    assert stopped(bench) == []


async def test_a_command_that_is_refused_takes_over_nothing(bench: Bench) -> None:
    await spin(bench, "left", await start(bench))
    bench.deeds["left"] = _no
    with refused():
        await spin(bench, "left", await start(bench))
    with refused():
        await spin(bench, "left")
    assert len(bench.machine.sessions.all()[0].moved) == 1
    del bench.deeds["left"]
    await bench.clock.advance(3)
    assert stopped(bench) == ["left"]


async def test_a_stream_whose_session_ended_before_its_first_message(bench: Bench) -> None:
    session = await start(bench)
    method = bench.table.find(STREAMED)
    assert method is not None
    first = arm.MoveThroughJointPositionsStreamedRequest(name="reach")
    first.init.SetInParent()
    stream = InProcess(first, metadata={"viam-sid": session})
    stream.request = None
    await bench.clock.advance(2.1)
    with pytest.raises(SessionExpired):
        await method.handle(stream)


async def test_reading_takes_over_nothing(bench: Bench) -> None:
    await spin(bench, "left", await start(bench))
    await bench.call(f"{MOTORS}/IsMoving", motor.IsMovingRequest(name="left"))
    await bench.clock.advance(3)
    assert stopped(bench) == ["left"]


async def test_a_call_of_a_silent_client_ends_too(bench: Bench) -> None:
    session = await start(bench)
    request = motor.GoForRequest(name="left", rpm=1, revolutions=1)
    call = await bench.begun(bench.call(f"{MOTORS}/GoFor", request, metadata={"viam-sid": session}))
    (operation,) = await bench.operations()
    assert operation.session_id == session
    await bench.clock.advance(2.1)
    with refused() as told:
        await call
    assert told.status is Status.CANCELLED
    assert "the client that moved it sent no heartbeat" in told.words
    assert stopped(bench) == ["left"]


async def push(bench: Bench, session: str) -> None:
    request = button.PushRequest(name="bell")
    await bench.call(PUSH, request, metadata={"viam-sid": session})


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the log says of sessions that are over, without which they were."""
    return [each.getMessage().split(" session ")[0] for each in caplog.records]


async def test_a_push_of_a_silent_client_ends_though_nothing_can_be_told_to_stop(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    released = asyncio.Event()

    async def press() -> None:
        try:
            await for_ever()
        finally:
            released.set()

    bench.deeds["bell"] = press
    call = await bench.begun(push(bench, await start(bench)))
    await bench.clock.advance(2.1)
    assert call.done(), "it is pushed for ever"
    with refused() as ended:
        await call
    assert ended.status is Status.CANCELLED
    assert "the client that moved it sent no heartbeat" in ended.words
    assert released.is_set()
    assert "stopped bell, which" in told(caplog)


async def test_the_log_names_only_what_was_stopped(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    bench.deeds["bell"] = _yes
    session = await start(bench)
    await push(bench, session)
    await spin(bench, "left", session)
    await bench.clock.advance(2.1)
    assert stopped(bench) == ["left"]
    assert told(caplog)[-1] == "stopped left, which"
    caplog.clear()
    await push(bench, await start(bench))
    await bench.clock.advance(2.1)
    (line,) = caplog.messages
    assert line.endswith("expired: no heartbeat for 2s")


async def test_who_only_looks_is_not_disturbed(bench: Bench) -> None:
    gate = asyncio.Event()
    bench.scripts["look", "left"] = gate.wait
    await spin(bench, "left", await start(bench))
    look = await bench.begun(bench.call(f"{MOTORS}/IsMoving", motor.IsMovingRequest(name="left")))
    await bench.clock.advance(2.1)
    assert stopped(bench) == ["left"]
    gate.set()
    assert not (await look).is_moving


async def test_a_stream_names_what_it_moves_in_its_first_message(bench: Bench) -> None:
    session = await start(bench)
    first = arm.MoveThroughJointPositionsStreamedRequest(name="reach")
    first.init.SetInParent()
    method = bench.table.find(STREAMED)
    assert method is not None
    stream = InProcess(first, metadata={"viam-sid": session})
    stream.request = None
    call = await bench.begun(_quietly(method.handle(stream)))
    await bench.clock.advance(2.1)
    await call
    assert stopped(bench) == ["reach"]


async def test_a_session_that_is_over_says_so_in_the_words_clients_match_on(bench: Bench) -> None:
    session = await start(bench)
    await bench.clock.advance(2.1)
    for call in (spin(bench, "left", session), beat(bench, session)):
        with refused() as told:
            await call
        assert (told.status, told.words) == (Status.INVALID_ARGUMENT, "SESSION_EXPIRED")


async def test_resuming(bench: Bench) -> None:
    session = await start(bench)
    assert await start(bench, resume=session) == session
    await bench.clock.advance(2.1)
    assert await start(bench, resume=session) != session


OWN = "ipv4:10.0.0.7:1234"
OTHER_CONNECTION = "ipv4:10.0.0.7:1235"
STRANGER = "ipv4:10.0.0.8:1234"


async def test_they_are_listed(bench: Bench) -> None:
    session = await start(bench, peer=OWN)
    (shown,) = (await bench.ask("GetSessions", peer=OWN)).sessions
    assert shown.id == session
    assert shown.peer_connection_info.remote_address == OWN
    await bench.clock.advance(2.1)
    assert not (await bench.ask("GetSessions")).sessions


async def test_ids_are_shown_to_their_owner_only(bench: Bench) -> None:
    session = await start(bench, peer=OWN)
    for peer in (OTHER_CONNECTION, STRANGER):
        (shown,) = (await bench.ask("GetSessions", peer=peer)).sessions
        assert shown.id == ""
        assert shown.peer_connection_info.remote_address == "ipv4:10.0.0.7"
    names_it = {"viam-sid": session}
    (shown,) = (await bench.ask("GetSessions", peer=OTHER_CONNECTION, metadata=names_it)).sessions
    assert shown.id == session


async def test_operations_do_not_give_ids_away(bench: Bench) -> None:
    session = await start(bench, peer=OWN)
    names_it = {"viam-sid": session}
    request = motor.GoForRequest(name="left", rpm=1, revolutions=1)
    going = bench.call(f"{MOTORS}/GoFor", request, metadata=names_it, peer=OWN)
    call = await bench.begun(_quietly(going))
    for peer, metadata, shown in (
        (OWN, {}, session),
        (OTHER_CONNECTION, names_it, session),
        (OTHER_CONNECTION, {}, ""),
        (STRANGER, {"viam-sid": "guessed"}, ""),
    ):
        reply = await bench.ask("GetOperations", peer=peer, metadata=metadata)
        assert [each.session_id for each in reply.operations] == [shown]
    await bench.clock.advance(2.1)
    await call


async def test_another_computer_cannot_use_a_session(bench: Bench) -> None:
    session = await start(bench, peer=OWN)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    beating = robot.SendSessionHeartbeatRequest(id=session)
    for call in (
        bench.call(SPIN, request, metadata={"viam-sid": session}, peer=STRANGER),
        bench.ask("SendSessionHeartbeat", beating, peer=STRANGER),
    ):
        with refused() as told:
            await call
        assert told.words == "SESSION_EXPIRED"
    assert await start(bench, resume=session, peer=STRANGER) != session
    assert await start(bench, resume=session, peer=OTHER_CONNECTION) == session
    await bench.ask("SendSessionHeartbeat", beating, peer=OTHER_CONNECTION)


async def test_a_stranger_keeps_nothing_moving(bench: Bench) -> None:
    session = await start(bench, peer=OWN)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    await bench.call(SPIN, request, metadata={"viam-sid": session}, peer=OWN)
    for _ in range(3):
        await bench.clock.advance(1)
        with contextlib.suppress(GRPCError):
            beating = robot.SendSessionHeartbeatRequest(id=session)
            await bench.ask("SendSessionHeartbeat", beating, peer=STRANGER)
    assert stopped(bench) == ["left"]


async def test_a_flood_of_sessions_keeps_no_client_out(bench: Bench) -> None:
    mover = await start(bench, peer=OWN)
    request = motor.SetPowerRequest(name="left", power_pct=1)
    await bench.call(SPIN, request, metadata={"viam-sid": mover}, peer=OWN)
    for number in range(5000):
        await start(bench, peer=f"ipv4:10.0.0.7:{2000 + number % 600}")
    newcomer = await start(bench, peer="ipv4:10.0.0.7:9999")
    open_sessions = {each.id for each in bench.machine.sessions.all()}
    assert {mover, newcomer} <= open_sessions
    assert len(open_sessions) <= 2048


async def test_names_that_nobody_has_are_not_kept(bench: Bench) -> None:
    session = await start(bench)
    with refused():
        await spin(bench, "nobody", session)
    assert bench.machine.sessions.all()[0].moved == set()


async def test_one_that_does_not_stop_keeps_no_other_from_being_stopped(bench: Bench) -> None:
    bench.scripts["stop", "left"] = asyncio.Event().wait
    first, second = await start(bench), await start(bench)
    await spin(bench, "left", first)
    await spin(bench, "right", second)
    await bench.clock.advance(2.1)
    assert sorted(stopped(bench)) == ["left", "right"]
    await bench.clock.advance(15)


async def _yes() -> None:
    pass


async def _no(*_: Any) -> None:
    raise InvalidRequest("no power like that")


async def _quietly(call: Any) -> None:
    await asyncio.gather(call, return_exceptions=True)
