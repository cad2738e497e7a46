"""`cogwork call` prints complete replies, stops what it moves, and explains what fails."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from functools import partial
from operator import not_
from pathlib import Path

import pytest
from tests.support.machine.commands import run_command, start_command
from tests.support.machine.running import Server, run_server
from tests.support.waiting import pass_time, poll

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.component.motor.v1 import motor_pb2  # noqa: E402

SERVICE = "viam.component.motor.v1.MotorService"
METHODS = [each.name for each in motor_pb2.DESCRIPTOR.services_by_name["MotorService"].methods]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    motor = {"name": "wheel", "api": "rdk:component:motor", "model": "fake"}
    network = {"sessions": {"heartbeat_window": "2s"}}
    async with run_server({"components": [motor], "network": network}, tmp_path) as running:
        await running.wait_for_status(state="running")
        yield running


async def is_moving(server: Server) -> bool:
    address = f"localhost:{server.port}"
    reply = await run_command("call", "wheel", "is_moving", "--address", address)
    return bool(json.loads(reply.out)["is_moving"])


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_what_a_call_moves_stops_with_the_command(
    server: Server, number: signal.Signals
) -> None:
    address = f"localhost:{server.port}"
    async with start_command(
        "call", "wheel", "SetPower", '{"power_pct": 1}', "--address", address
    ) as command:
        assert command.stderr is not None
        async with asyncio.timeout(60):
            said = await command.stderr.readline()
            assert said == (
                b"wheel moves while this command runs; press Ctrl-C to stop it "
                b"(--detach leaves it moving)\n"
            )
            # Longer than the window: its heartbeats keep it moving.
            await pass_time(2.2)
            assert await is_moving(server)
            command.send_signal(number)
            await command.communicate()
            await poll(partial(is_moving, server), not_)
    if number is signal.SIGINT:
        assert "no heartbeat" not in server.output


async def test_detached_call_leaves_it_moving(server: Server) -> None:
    address = f"localhost:{server.port}"
    full = '{"power_pct": 1}'
    moved = await run_command("call", "--detach", "wheel", "SetPower", full, "--address", address)
    assert (moved.code, json.loads(moved.out), moved.err) == (0, {}, "")
    await pass_time(2.2)  # longer than the window
    assert await is_moving(server)


async def test_false_and_zero_are_printed(tmp_path: Path) -> None:
    motor = {"name": "wheel", "api": "rdk:component:motor", "model": "fake"}
    async with run_server({"components": [motor]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        address = f"localhost:{server.port}"
        moving = await run_command("call", "wheel", "is_moving", "--address", address)
        position = await run_command("call", "wheel", "get_position", "--address", address)
        stopxed = await run_command("call", "wheel", "stop", "--address", address)
    assert (moving.code, json.loads(moving.out)) == (0, {"is_moving": False})
    assert (position.code, json.loads(position.out)) == (0, {"position": 0.0})
    assert (stopxed.code, json.loads(stopxed.out)) == (0, {})


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["whel", "stop"], 2, 'the machine has no resource "whel"; did you mean "wheel"?'),
        (
            ["x", "stop"],
            2,
            'the machine has no resource "x"; it has wheel, builtin; see `cogwork status`',
        ),
        (["wheel"], 2, f"name a method of wheel: {', '.join(METHODS)}"),
        (["wheel", "stopx"], 2, f'wheel ({SERVICE}) has no method "stopx"; did you mean "Stop"?'),
        (
            ["wheel", "set_power", '{"powr": 1}'],
            2,
            'invalid request: SetPower has no field "powr"; did you mean "power_pct"?',
        ),
        (
            ["wheel", "do_command"],
            1,
            "the model of wheel does not implement DoCommand; use another method or model",
        ),
        (
            ["wheel", "is_moving", "--timeout", "1e-7"],
            1,
            "IsMoving of wheel did not end within 1e-07s; allow it more time with --timeout, or "
            "see the state of wheel with `cogwork status`",
        ),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else None,
)
async def test_failed_call_is_explained_in_one_sentence(
    server: Server, arguments: list[str], code: int, message: str
) -> None:
    address = f"localhost:{server.port}"
    done = await run_command("call", *arguments, "--address", address)
    assert (done.code, done.out, done.err) == (code, "", f"{message}\n")
