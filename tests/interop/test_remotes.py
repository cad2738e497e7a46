"""Machines with remotes: real servers, and the SDK's unmodified client."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from tests.interop import sdk_server
from tests.interop.test_sdk_client import component
from tests.modules import make
from tests.modules.sdk.echo.api import EchoClient
from tests.support.machine import login
from tests.support.machine.bad_modules import rogue_module, thing
from tests.support.machine.commands import run_command
from tests.support.machine.modular import module, service
from tests.support.machine.programs import start_mover
from tests.support.machine.running import Server, run_server, start_server, with_free_port
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.media.rtsp_server import free_port
from tests.support.sizes import limit
from tests.support.waiting import pass_time, poll
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.services.vision import VisionClient

on_shared_loop = pytest.mark.asyncio(loop_scope="module")

LINE = {
    "components": [
        component("motor", "belt"),
        component("sensor", "scale", readings={"weight": 3}),
    ]
}
DETECTOR = {
    "name": "red",
    "api": "rdk:service:vision",
    "model": "color_detector",
    "attributes": {"detect_color": "#ff0000", "hue_tolerance_pct": 0.1, "segment_size_px": 10},
}
WINDOW = limit(0.5)
SESSIONS = {
    "network": {"sessions": {"heartbeat_window": f"{WINDOW:g}s"}, "bind_address": "localhost:0"}
}


def make_line_config(directory: Path) -> dict[str, Any]:
    """Return a machine with two motors, a sensor, a camera with a detector, and a module."""
    return {
        "modules": [module("echo", make.sdk_module(directory, "echo"))],
        "components": [
            *LINE["components"],
            component("motor", "motor"),
            component("camera", "top"),
        ],
        "services": [DETECTOR, service("echo", "acme:service:echo", "acme:test:echo")],
        **SESSIONS,
    }


def remote(name: str, port: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "address": f"localhost:{port}", "insecure": True, **more}


async def wait_for_state(server: Server, name: str, state: str) -> dict[str, Any]:
    async def find() -> list[dict[str, Any]]:
        resources: list[dict[str, Any]] = (await server.status())["resources"]
        return [each for each in resources if (each["name"], each["state"]) == (name, state)]

    # Rarely, because some tests measure how busy the server is with other things.
    (found,) = await poll(find, within=limit(30), every=0.1)
    return found


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A machine that is a remote of others, in most tests of this file."""
    directory = tmp_path_factory.mktemp("line")
    async with run_server(make_line_config(directory), directory) as server:
        await wait_for_state(server, "acme:service:echo/echo", "ready")
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cell(line: Server, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A machine with that remote, and with a detector for its cameras."""
    config = {
        "remotes": [remote("line", line.port)],
        "services": [{**DETECTOR, "name": "own"}],
        **SESSIONS,
    }
    async with run_server(config, tmp_path_factory.mktemp("cell")) as server:
        await wait_for_state(server, "rdk:component:motor/line:belt", "ready")
        await wait_for_state(server, "acme:service:echo/line:echo", "ready")
        yield server


@on_shared_loop
async def test_client_uses_the_resources_of_a_remote(line: Server, cell: Server) -> None:
    async with connect_sdk(cell.port) as robot:
        names = {(each.subtype, each.name) for each in robot.resource_names}
        assert {("motor", "line:belt"), ("sensor", "line:scale")} <= names
        scale = Sensor.from_robot(robot, "line:scale")
        assert await scale.get_readings() == {"weight": 3}
        # The SDK knows unique names without their remote, too.
        belt = Motor.from_robot(robot, "belt")
        await belt.set_power(0.5)
        async with connect_sdk(line.port) as there:
            assert await Motor.from_robot(there, "belt").is_powered() == (True, 0.5)
            await robot.stop_all()
            assert await Motor.from_robot(there, "belt").is_powered() == (False, 0.0)


@on_shared_loop
async def test_remote_of_a_remote(cell: Server, tmp_path: Path) -> None:
    async with run_server({"remotes": [remote("cell", cell.port)]}, tmp_path) as hall:
        await wait_for_state(hall, "rdk:component:sensor/cell:line:scale", "ready")
        async with connect_sdk(hall.port) as robot:
            scale = Sensor.from_robot(robot, "cell:line:scale")
            assert await scale.get_readings() == {"weight": 3}


@on_shared_loop
async def test_names_may_omit_the_remote(line: Server, tmp_path: Path) -> None:
    meter = component("power_sensor", "meter", motor="belt")
    far = remote("line", line.port, prefix="far-")
    config = with_free_port({"remotes": [far], "components": [meter]})
    async with run_server(config, tmp_path) as hall:
        waiting = await wait_for_state(hall, "rdk:component:power_sensor/meter", "unhealthy")
        assert 'motor/line:belt", which its remote does not have' in waiting["reason"]
        meter = component("power_sensor", "meter", motor="far-belt")
        hall.save({**config, "components": [meter]})
        ready = await wait_for_state(hall, "rdk:component:power_sensor/meter", "ready")
        assert ready["depends_on"] == ["rdk:component:motor/line:far-belt"]
        async with connect_sdk(hall.port) as robot:
            for name in ("far-scale", "line:far-scale"):
                assert await Sensor.from_robot(robot, name).get_readings() == {"weight": 3}
        called = await run_command(
            *("call", "far-scale", "GetReadings", "--address", f"localhost:{hall.port}")
        )
        assert '"weight": 3' in called.out, called.err


async def test_remote_that_is_away_is_explained_and_comes_back(tmp_path: Path) -> None:
    (tmp_path / "line").mkdir()
    (tmp_path / "cell").mkdir()
    port = free_port()
    line_config = {**LINE, "network": {"bind_address": f"localhost:{port}"}}
    config = {
        "remotes": [remote("line", port)],
        "components": [component("sensor", "local", readings={"ok": True})],
    }
    async with run_server(config, tmp_path / "cell") as cell:
        await wait_for_state(cell, "rdk:component:sensor/local", "ready")
        away = await wait_for_state(cell, "rdk:remote:/line", "unhealthy")
        assert f"localhost:{port}" in away["reason"]
        async with run_server(line_config, tmp_path / "line", exits=None) as line:
            await wait_for_state(cell, "rdk:component:sensor/line:scale", "ready")
            line.signal(signal.SIGKILL)
            lost = await wait_for_state(cell, "rdk:component:sensor/line:scale", "unhealthy")
            print(lost["reason"])
            assert "remote line" in lost["reason"]
        async with run_server(line_config, tmp_path / "line"):
            began = time.monotonic()
            await wait_for_state(cell, "rdk:component:sensor/line:scale", "ready")
            print(f"back after {time.monotonic() - began:.2f} s")


@on_shared_loop
async def test_vision_of_a_remote_and_vision_of_its_camera(line: Server, cell: Server) -> None:
    """The detector may be on either side of the connection."""
    await wait_for_state(cell, "rdk:service:vision/line:red", "ready")
    await wait_for_state(cell, "rdk:service:vision/own", "ready")
    async with connect_sdk(cell.port) as robot, connect_sdk(line.port) as direct:
        expected = await VisionClient.from_robot(direct, "red").get_detections_from_camera("top")
        for service in ("line:red", "own"):
            vision = VisionClient.from_robot(robot, service)
            found = await vision.get_detections_from_camera("line:top")
            assert len(found) == len(expected)


@on_shared_loop
async def test_api_of_a_module_of_a_remote(cell: Server) -> None:
    """This server knows neither the API nor its messages."""
    await check_echo(cell.port)


async def check_echo(port: int) -> None:
    """Call the service `line:echo` of a server, in each of the four ways."""
    channel = Channel("127.0.0.1", port)
    try:
        echo = EchoClient("line:echo", channel)
        assert (await echo.unary("hello", metadata={"x-kept": "1"})).text == "hello"
        assert [each.number async for each in echo.server_stream(3)] == [0, 1, 2]
        assert (await echo.client_stream("abc")).text == "abc"
        assert [each.text async for each in echo.bidi("abc")] == [*"abc"]
        with pytest.raises(GRPCError) as failed:
            await echo.unary(status=Status.ABORTED.value)
        assert failed.value.status is Status.ABORTED
        with pytest.raises((GRPCError, TimeoutError)):
            await echo.unary(pause=60, timeout=0.5)
    finally:
        channel.close()


async def test_remote_made_with_the_sdk(tmp_path: Path) -> None:
    """It has neither sessions nor a login, and answers what it does not have with errors."""
    port = free_port()
    program = (sys.executable, sdk_server.__file__)
    async with start_server([str(port)], program=program) as there:
        async with run_server({"remotes": [remote("lab", port)]}, tmp_path) as cell:
            await wait_for_state(cell, "rdk:component:sensor/lab:thermometer", "ready")
            async with connect_sdk(cell.port) as robot:
                thermometer = Sensor.from_robot(robot, "lab:thermometer")
                assert await thermometer.get_readings() == {"celsius": 21.5}
        there.signal(signal.SIGTERM)
        await there.exit_code()


async def wait_until_it_stands(server: Server) -> float:
    """Return the seconds until the motor stands."""
    began = time.monotonic()
    async with connect_sdk(server.port) as robot:
        motor = Motor.from_robot(robot, "motor")
        await poll(motor.is_moving, lambda moving: not moving, limit(30))
    return time.monotonic() - began


@on_shared_loop
async def test_motion_ends_with_the_client_that_is_killed(line: Server, cell: Server) -> None:
    async with start_mover(cell.port, "motor") as mover:
        mover.kill()
        took = await wait_until_it_stands(line)
    print(f"the motor stands after {took:.2f} s, window {WINDOW:g} s")
    assert took < WINDOW + limit(0.5)


@on_shared_loop
async def test_motion_ends_with_the_machine_between_that_is_killed(
    line: Server, tmp_path: Path
) -> None:
    config = {"remotes": [remote("line", line.port)], **SESSIONS}
    async with run_server(config, tmp_path, exits=None) as between:
        await wait_for_state(between, "rdk:component:motor/line:motor", "ready")
        async with start_mover(between.port, "motor"):
            between.signal(signal.SIGKILL)
            took = await wait_until_it_stands(line)
    print(f"the motor stands after {took:.2f} s, window {WINDOW:g} s")
    assert took < WINDOW + limit(0.5)


async def test_login_to_a_remote(tmp_path: Path) -> None:
    for name in ("line", "cell"):
        (tmp_path / name).mkdir()
    async with run_server(login.config("operator"), tmp_path / "line") as line:
        remotes = [
            remote(name, line.port, auth=login.remote_auth("operator", key))
            for name, key in (("right", login.key_of("operator")), ("wrong", "not the key"))
        ]
        async with run_server({"remotes": remotes}, tmp_path / "cell") as cell:
            await wait_for_state(cell, "rdk:remote:/right", "ready")
            names = [each["name"] for each in (await cell.status())["resources"]]
            assert sum("/right:" in each for each in names) > 5
            refused = await wait_for_state(cell, "rdk:remote:/wrong", "unhealthy")
            assert "refused the login" in refused["reason"]
            assert "not the key" not in cell.output


async def test_machines_that_are_remotes_of_each_other(tmp_path: Path) -> None:
    ports = {name: free_port() for name in ("left", "right")}
    for name in ports:
        (tmp_path / name).mkdir()
    left, right = (
        {
            "components": [component("sensor", f"{name}-scale", readings={"of": name})],
            "remotes": [remote(other, ports[other], connection_check_interval="100ms")],
            "network": {"bind_address": f"localhost:{ports[name]}"},
        }
        for name, other in (("left", "right"), ("right", "left"))
    )
    async with (
        run_server(left, tmp_path / "left") as one,
        run_server(right, tmp_path / "right") as two,
    ):
        await wait_for_state(one, "rdk:component:sensor/right:right-scale", "ready")
        await wait_for_state(two, "rdk:component:sensor/left:left-scale", "ready")
        # Several times as long as between two looks at the other.
        await pass_time(0.5)
        names = {each["name"] for each in (await one.status())["resources"]}
        print(sorted(names))
        assert len(names) < 30
        async with connect_sdk(one.port) as robot:
            scale = Sensor.from_robot(robot, "right:right-scale")
            assert await scale.get_readings() == {"of": "right"}


@on_shared_loop
async def test_failing_modules_leave_remotes_alone(line: Server, tmp_path: Path) -> None:
    """Neither a module that is killed nor one that never starts changes what is on a remote."""
    healthy = rogue_module(tmp_path, "healthy")
    failing = {"name": "failing", "type": "local", "executable_path": "/bin/false"}
    config: dict[str, Any] = {
        "remotes": [remote("line", line.port)],
        "modules": [healthy],
        "components": [
            thing("local", "acme:healthy:thing"),
            {**component("generic", "user"), "depends_on": ["line:scale"]},
        ],
    }
    async with run_server(config, tmp_path) as cell:
        for name in ("local", "user"):
            await wait_for_state(cell, f"rdk:component:generic/{name}", "ready")
        for name in ("rdk:component:motor/line:belt", "acme:service:echo/line:echo"):
            await wait_for_state(cell, name, "ready")
        before = await remote_states(cell)
        module_pid = (await cell.status())["modules"][0]["pid"]
        psutil.Process(module_pid).kill()
        await cell.out.wait_for("rdk:component:generic/local is unhealthy", within=limit(30))
        assert await remote_states(cell) == before
        config["modules"].append(failing)
        cell.save(with_free_port(config))
        await cell.out.wait_for("failing.* before it was ready", within=limit(30))
        assert await remote_states(cell) == before
    async with run_server(config, tmp_path) as cell:
        for name, _, _ in before:
            await wait_for_state(cell, name, "ready")


async def remote_states(server: Server) -> list[tuple[str, str, float]]:
    """Return the resources that are on a remote or use one, with the times of their states."""
    return [
        (each["name"], each["state"], each["since"])
        for each in (await server.status())["resources"]
        if "line" in each["name"] or each["name"].endswith("/user")
    ]
