"""Machines whose remotes are behind a cloud: real servers, and the SDK's unmodified client."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from tests.interop.test_fleet_commands import fleet, fleet_json, make_machine
from tests.interop.test_remotes import (
    LINE,
    SESSIONS,
    WINDOW,
    check_echo,
    make_line_config,
    remote,
    wait_for_state,
    wait_until_it_stands,
)
from tests.interop.test_sdk_client import component
from tests.interop.test_two_machines import EXAMPLE
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.cloud.fleet import make_part, run_cloud
from tests.support.machine import login
from tests.support.machine.programs import start_mover
from tests.support.machine.running import Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.media.rtsp_server import free_port
from tests.support.sizes import limit
from viam.components.camera import Camera
from viam.components.motor import Motor
from viam.components.sensor import Sensor

on_shared_loop = pytest.mark.asyncio(loop_scope="module")

SCALE = "rdk:component:sensor/line:scale"


def webrtc_remote(name: str, port: int, **more: Any) -> dict[str, Any]:
    """A machine is its own signaling server, and answers to any name."""
    address = f"{name}.fleet.test"
    return remote(name, port, managed_by=f"localhost:{port}", **{"address": address, **more})


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for name in ("line", "cell", "hall", "cloud"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def line(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A machine that is a remote of others, in most tests of this file."""
    directory = tmp_path_factory.mktemp("line")
    async with run_server(make_line_config(directory), directory) as server:
        await wait_for_state(server, "acme:service:echo/echo", "ready")
        yield server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cell(line: Server, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    config = {"remotes": [webrtc_remote("line", line.port)], **SESSIONS}
    async with run_server(config, tmp_path_factory.mktemp("cell")) as server:
        await wait_for_state(server, "rdk:component:motor/line:motor", "ready")
        await wait_for_state(server, "acme:service:echo/line:echo", "ready")
        yield server


@on_shared_loop
async def test_client_uses_the_resources_of_a_remote(line: Server, folders: Path) -> None:
    config = {"remotes": [webrtc_remote("line", line.port, prefix="one-")]}
    async with run_server(config, folders / "cell") as cell:
        await wait_for_state(cell, "rdk:component:motor/line:one-belt", "ready")
        async with connect_sdk(cell.port) as robot, connect_sdk(line.port) as there:
            scale = Sensor.from_robot(robot, "line:one-scale")
            assert await scale.get_readings() == {"weight": 3}
            images, _ = await Camera.from_robot(robot, "line:one-top").get_images()
            expected, _ = await Camera.from_robot(there, "top").get_images()
            assert [len(each.data) for each in images] == [len(each.data) for each in expected]
            await Motor.from_robot(robot, "line:one-belt").set_power(0.5)
            assert await Motor.from_robot(there, "belt").is_powered() == (True, 0.5)
            await robot.stop_all()
            assert await Motor.from_robot(there, "belt").is_powered() == (False, 0.0)


@on_shared_loop
async def test_remote_of_a_remote(cell: Server, folders: Path) -> None:
    config = {"remotes": [webrtc_remote("cell", cell.port)]}
    async with run_server(config, folders / "hall") as hall:
        await wait_for_state(hall, "rdk:component:sensor/cell:line:scale", "ready")
        async with connect_sdk(hall.port) as robot:
            scale = Sensor.from_robot(robot, "cell:line:scale")
            assert await scale.get_readings() == {"weight": 3}


@on_shared_loop
async def test_api_of_a_module_of_a_remote(cell: Server) -> None:
    """This server knows neither the API nor its messages."""
    await check_echo(cell.port)


async def test_remote_that_is_away_is_explained_and_comes_back(folders: Path) -> None:
    port = free_port()
    line_config = {**LINE, "network": {"bind_address": f"localhost:{port}"}}
    async with run_server({"remotes": [webrtc_remote("line", port)]}, folders / "cell") as cell:
        away = await wait_for_state(cell, "rdk:remote:/line", "unhealthy")
        assert f"the cloud localhost:{port}: it cannot be reached" in away["reason"]
        async with run_server(line_config, folders / "line", exits=None) as line:
            await wait_for_state(cell, SCALE, "ready")
            line.signal(signal.SIGKILL)
            began = time.monotonic()
            lost = await wait_for_state(cell, SCALE, "unhealthy")
            print(f"lost after {time.monotonic() - began:.2f} s: {lost['reason']}")
        async with run_server(line_config, folders / "line"):
            began = time.monotonic()
            await wait_for_state(cell, SCALE, "ready")
            print(f"back after {time.monotonic() - began:.2f} s")


@on_shared_loop
async def test_remote_returns_after_the_webrtc_process_was_killed(cell: Server) -> None:
    children = psutil.Process(cell.pid).children()
    (process,) = [each for each in children if "cogwork.webrtc.main" in each.cmdline()]
    process.kill()
    await wait_for_state(cell, SCALE, "unhealthy")
    await wait_for_state(cell, SCALE, "ready")


@on_shared_loop
async def test_motion_ends_with_the_client_that_is_killed(line: Server, cell: Server) -> None:
    await wait_for_state(cell, "rdk:component:motor/line:motor", "ready")
    async with start_mover(cell.port, "motor") as mover:
        mover.kill()
        took = await wait_until_it_stands(line)
    print(f"the motor stands after {took:.2f} s, window {WINDOW:g} s")
    assert took < 2 * WINDOW + limit(0.5)


@on_shared_loop
async def test_motion_ends_with_the_machine_between_that_is_killed(
    line: Server, folders: Path
) -> None:
    config = {"remotes": [webrtc_remote("line", line.port)], **SESSIONS}
    async with run_server(config, folders / "cell", exits=None) as between:
        await wait_for_state(between, "rdk:component:motor/line:motor", "ready")
        async with start_mover(between.port, "motor"):
            between.signal(signal.SIGKILL)
            took = await wait_until_it_stands(line)
    print(f"the motor stands after {took:.2f} s, window {WINDOW:g} s")
    assert took < 2 * WINDOW + limit(0.5)


async def test_login_to_a_remote(folders: Path) -> None:
    async with run_server(login.config("operator"), folders / "line") as line:
        remotes = [
            webrtc_remote(name, line.port, auth=login.remote_auth("operator", key))
            for name, key in (("right", login.key_of("operator")), ("wrong", "not the key"))
        ]
        async with run_server({"remotes": remotes}, folders / "cell") as cell:
            await wait_for_state(cell, "rdk:remote:/right", "ready")
            names = [each["name"] for each in (await cell.status())["resources"]]
            assert sum("/right:" in each for each in names) > 5
            refused = await wait_for_state(cell, "rdk:remote:/wrong", "unhealthy")
            assert "refused the login" in refused["reason"]
            assert "not the key" not in cell.output


async def test_remote_without_webrtc_there_is_explained(folders: Path) -> None:
    async with run_server(LINE, folders / "line", arguments=["-webrtc=false"]) as line:
        config = {"remotes": [webrtc_remote("line", line.port)]}
        async with run_server(config, folders / "cell") as cell:
            away = await wait_for_state(cell, "rdk:remote:/line", "unhealthy")
            assert "remove managed_by" in away["reason"]


async def test_remote_behind_a_cloud(folders: Path) -> None:
    async with run_cloud(folders / "cloud") as cloud:
        owner = await cloud.connect()
        part = await owner.app_client.get_robot_part(await make_part(owner.app_client))
        owner.close()
        line_config: dict[str, Any] = {
            **LINE,
            "cloud": {
                "id": part.id,
                "secret": part.secret,
                "fqdn": part.fqdn,
                "signaling_address": cloud.address,
                "signaling_insecure": True,
            },
            "auth": {"handlers": [{"type": "api-key", "config": {"keys": ["a"], "a": "secret"}}]},
        }
        key = {"type": "api-key", "payload": cloud.key}
        there = {
            "name": "line",
            "address": part.fqdn,
            "managed_by": cloud.address,
            "insecure": True,
            "auth": {"entity": cloud.key_id, "credentials": key},
        }
        async with run_server({"remotes": [there]}, folders / "cell") as cell:
            away = await wait_for_state(cell, "rdk:remote:/line", "unhealthy")
            assert "appears to be offline" in away["reason"]
            for _ in range(2):  # it comes back after it was stopped
                async with run_server(line_config, folders / "line"):
                    await wait_for_state(cell, SCALE, "ready")
                    async with connect_sdk(cell.port) as robot:
                        scale = Sensor.from_robot(robot, "line:scale")
                        assert await scale.get_readings() == {"weight": 3}
                await wait_for_state(cell, SCALE, "unhealthy")


async def test_guide_about_a_board_behind_a_router(
    folders: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands and the file of the guide, with a cloud that has no certificate."""
    monkeypatch.setenv("COGWORK_HOME", str(folders / "home"))
    cloud = CloudProcess(folders / "cloud")
    await cloud.initialize()
    async with cloud.serve():
        key = ("--key-id", cloud.key_id, "--key-file", "-")
        await fleet("login", f"http://{cloud.address}", *key, typed=cloud.key)
        await make_machine(folders / "board.json", "board")
        (folders / "wanted.json").write_text(
            json.dumps({"components": [component("camera", "top")]})
        )
        await fleet("config", "edit", "board", "--file", str(folders / "wanted.json"), "--yes")
        made = await fleet_json("key", "create", "computer", "--machine", "board")
        variables = {
            "BOARD_NAME": (await fleet_json("connect", "board"))["name"],
            "BOARD_KEY_ID": made["id"],
            "BOARD_KEY": made["key"],
        }
        config = json.loads((EXAMPLE / "elsewhere.json").read_text())
        config["remotes"][0] |= {"managed_by": cloud.address, "insecure": True}
        del config["network"]
        async with (
            run_server((folders / "board.json").read_text(), folders / "line", serves=False),
            run_server(config, folders / "cell", environment=variables) as computer,
        ):
            await wait_for_state(computer, "rdk:component:camera/board:top", "ready")
            async with connect_sdk(computer.port) as robot:
                images, _ = await Camera.from_robot(robot, "board:top").get_images()
                assert images
