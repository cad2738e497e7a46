"""`cogwork call` prints complete replies, and refuses invalid requests with one sentence."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from functools import partial
from operator import not_
from pathlib import Path
from typing import Any

import pytest
from tests.support.machine.commands import run_command, start_command
from tests.support.machine.running import Server, run_server
from tests.support.waiting import pass_time, poll

from cogwork.cli.client.grpc_client import CommandError
from cogwork.cli.machine.call import _build_request
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.component.motor.v1 import motor_pb2  # noqa: E402


@pytest.fixture
def method() -> Any:
    return motor_pb2.DESCRIPTOR.services_by_name["MotorService"].methods_by_name["DoCommand"]


def test_request_gets_the_name_of_its_resource(method: Any) -> None:
    assert _build_request(method, "wheel", '{"command": {"a": 1}}').name == "wheel"
    assert _build_request(method, "wheel", '{"name": "other"}').name == "other"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        '{"nope": 1}',
        '{"\\ud800": 1}',
        '{"name": "\\udfff"}',
        '{"a\udcff": 1}',
        '{"command": ' + "[" * 100_000,
        '{"command": {"a": ' + "[" * 900 + "]" * 900 + "}}",
        f'{{"name": {"9" * 5000}}}',
    ],
    ids=lambda text: ascii(text[:30]),
)
def test_invalid_request_is_refused(method: Any, text: str) -> None:
    with pytest.raises(CommandError, match="invalid request"):
        _build_request(method, "wheel", text)


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
        stopped = await run_command("call", "wheel", "stop", "--address", address)
    assert (moving.code, json.loads(moving.out)) == (0, {"is_moving": False})
    assert (position.code, json.loads(position.out)) == (0, {"position": 0.0})
    assert (stopped.code, json.loads(stopped.out)) == (0, {})
