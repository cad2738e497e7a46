"""A session ends when its page is hidden or closed, tested without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from tests.unit.control.asgi import AsgiResponse, send_body
from tests.unit.robot.bench import MOTOR, Bench
from tests.unit.robot.conftest import bench
from viam.gen.component.motor.v1 import motor_pb2 as motor
from viam.gen.robot.v1 import robot_pb2 as robot

from cogwork.control.browser_guard import BrowserGuard
from cogwork.control.http_login import HttpLogin
from cogwork.control.session_end import PATH, session_end_route
from cogwork.robot.middleware.authentication import Authentication

__all__ = ["bench"]

PAGE = {"origin": "http://localhost:8080"}


async def move(bench: Bench) -> str:
    """Return the session of a page on this computer that moves a motor."""
    await bench.apply({"name": "m", "api": str(MOTOR), "model": "mover"})
    reply = await bench.call_robot("StartSession", robot.StartSessionRequest(), peer="webrtc:::1:1")
    request = motor.SetPowerRequest(name="m", power_pct=1)
    path = "/viam.component.motor.v1.MotorService/SetPower"
    await bench.call(path, request, metadata={"viam-sid": reply.id}, peer="webrtc:::1:1")
    return str(reply.id)


async def end(bench: Bench, body: Any, **options: Any) -> AsgiResponse:
    routes = Starlette(routes=[session_end_route(bench.machine.sessions)])
    app = HttpLogin(routes, Authentication(bench.machine.operations))
    guard = BrowserGuard(app, lambda: ["localhost"], list)
    answer = await send_body(guard, PATH, json.dumps(body).encode(), **{"headers": PAGE} | options)
    await bench.clock.settle()
    return answer


async def test_what_the_page_moves_stops_at_once(bench: Bench) -> None:
    session = await move(bench)
    assert (await end(bench, {"id": session})).status == 204
    assert ("stop", "m", {}) in bench.history
    assert bench.machine.sessions.count == 0
    assert (await end(bench, {"id": session})).status == 204


@pytest.mark.parametrize(
    "options",
    [{"headers": {}}, {"headers": {"origin": "http://elsewhere"}}, {"client": "10.0.0.7"}],
    ids=["no page", "another site", "another computer"],
)
async def test_session_is_ended_by_its_own_page_only(bench: Bench, options: dict[str, Any]) -> None:
    session = await move(bench)
    await end(bench, {"id": session}, **options)
    assert bench.machine.sessions.count == 1
    assert ("stop", "m", {}) not in bench.history


@pytest.mark.parametrize("body", [[], {}, {"id": 7}, {"id": "x" * 300}, "x"])
async def test_bad_request_is_explained(bench: Bench, body: Any) -> None:
    answer = await end(bench, body)
    assert answer.status == 400
    assert answer.body.endswith(b"\n")
