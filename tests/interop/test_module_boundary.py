"""Between a machine and its modules: sockets, environment, limits, trust and motion."""

from __future__ import annotations

import asyncio
import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

from grpclib import GRPCError
from grpclib.const import Status
from tests.interop import arm_module, hungry_module
from tests.modules import make
from tests.support.machine.modular import (
    READY,
    RunningMachine,
    component,
    module,
    motor,
    node_module,
    poll,
    run_machine,
    sensor,
    service,
)
from tests.support.machine.programs import start_mover
from tests.support.machine.running import start_server
from tests.support.machine.served import refused
from tests.support.sizes import limit
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.arm.client import ArmClient  # noqa: E402
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import StopAllRequest, TransformPoseRequest  # noqa: E402
from viam.proto.common import Pose, PoseInFrame  # noqa: E402
from viam.proto.component.arm import JointPositions  # noqa: E402

WINDOW = limit(0.5)
"""Seconds of silence that end a session."""
SLACK = limit(0.4)
"""Seconds until it is seen that the motor stands: between two questions, on a busy computer."""
ONE_MEGABYTE = 1 << 20


async def test_module_sockets_are_private_and_its_environment_is_set(tmp_path: Path) -> None:
    """By default, only the user who runs the server can reach a module."""
    motors = module(
        "motors",
        make.sdk_module(tmp_path / "bin", "motor"),
        env={"ACME": "rockets", "VIAM_MODULE_NAME": "renamed"},
        module_id="acme:motors",
    )
    sensors = module("sensors", make.sdk_module(tmp_path / "bin", "sensor"), tcp_mode=True)
    config: dict[str, Any] = {
        "modules": [motors],
        "components": [motor("wheel"), sensor("heat", degrees=3)],
    }
    around = {"PYTHONHOME": "", "NOTIFY_SOCKET": "/nowhere", "FROM_OUTSIDE": "seen"}
    async with run_machine(config, tmp_path, around) as there:
        await there.wait_until_ready("wheel")
        about = await there.command("wheel", "about")
        its = about["environment"]
        socket = Path(about["arguments"][0])
        assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o700
        assert socket.is_socket()
        (parent,) = socket.parent.glob("parent-motors-*.sock")
        assert parent.is_socket()
        assert its["VIAM_MODULE_ADDRESS"] == str(socket)
        assert its["ACME"] == "rockets"
        assert its["VIAM_MODULE_NAME"] == "renamed"
        assert its["VIAM_MODULE_ID"] == "acme:motors"
        assert its["VIAM_HOME"] == str(tmp_path / "home")
        assert its["VIAM_MODULE_ROOT"] == about["directory"] == str(tmp_path / "bin")
        assert its["FROM_OUTSIDE"] == "seen"
        assert "NOTIFY_SOCKET" not in its
        data = Path(its["VIAM_MODULE_DATA"])
        assert data == tmp_path / "home" / "module-data" / "local" / "motors"
        assert data.is_dir()
        assert stat.S_IMODE(data.stat().st_mode) & 0o007 == 0

        children = [there.server.pid, int(about["pid"])]
        assert listening_ports(*children) == {there.server.port}

        there.save({**config, "modules": [motors, sensors]})
        await there.wait_until_ready()
        assert await there.sensor("heat").get_readings() == {"degrees": 3}
        pid = (await there.view())["modules"][1]["pid"]
        assert len(listening_ports(pid)) == 1
        assert listening_ports(there.server.pid, int(about["pid"])) == {there.server.port}
        assert all(host == "0100007F" for host, _ in listeners(pid))
        await assert_misspelled_name_is_refused(there)


async def assert_misspelled_name_is_refused(there: RunningMachine) -> None:
    with refused() as told:
        await there.sensor("heta").get_readings()
    assert told.status is Status.NOT_FOUND
    assert "heat" in told.words


def listening_ports(*pids: int) -> set[int]:
    """Return the TCP ports on which these processes listen."""
    return {port for pid in pids for _, port in listeners(pid)}


def listeners(pid: int) -> set[tuple[str, int]]:
    mine = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        if found := re.match(r"socket:\[(\d+)\]", os.readlink(descriptor)):  # noqa: PTH115
            mine.add(found[1])
    found_ports = set()
    for file in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{file}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in mine:
                host, _, port = fields[1].partition(":")
                found_ports.add((host, int(port, 16)))
    return found_ports


async def test_first_run_script_runs_before_the_first_start(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    modules = [
        module("good", make.sdk_module(good, "motor")),
        module("bad", make.sdk_module(bad, "sensor")),
    ]
    for directory, script in (
        (good, "echo downloading things; echo to $VIAM_MODULE_DATA; echo x >> $ACME_RUNS"),
        (bad, "echo there is no network >&2; exit 3"),
    ):
        (directory / "meta.json").write_text(json.dumps({"first_run": "setup.sh"}))
        (directory / "setup.sh").write_text(f"#!/bin/sh\n{script}\n")
        (directory / "setup.sh").chmod(0o755)
    modules[0]["env"] = {"ACME_RUNS": str(tmp_path / "runs")}
    config = {"modules": modules, "components": [motor("wheel"), sensor("heat")]}
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready("wheel")
        await there.server.out.wait_for(r"modmanager\.good.*first run of good: downloading things")
        await there.server.out.wait_for(r"first run of good: to .*module-data/local/good")
        reason = await there.wait_until_unhealthy("heat", "first run")
        assert "there is no network" in reason
        assert "code 3" in reason
        assert (await there.modules())["good"].state == READY
        (bad / "setup.sh").write_text("#!/bin/sh\nexit 0\n")
        await there.restart("bad")
        await there.wait_until_ready()
        pid = await there.pid_of("wheel")
        await there.restart("good")
        await poll(lambda: pid_or_zero(there, "wheel"), lambda now: now not in (pid, 0))
    assert (tmp_path / "runs").read_text() == "x\n"


async def pid_or_zero(there: RunningMachine, name: str) -> int:
    try:
        return await there.pid_of(name)
    except GRPCError as error:
        if error.status is not Status.UNAVAILABLE:
            raise
        return 0


async def test_exceeded_limits_are_named(tmp_path: Path) -> None:
    hungry = make.executable(tmp_path, Path(hungry_module.__file__))
    config = {
        "modules": [
            module("eater", hungry, limits={"memory_mb": 1500}, env={"APPETITE": "memory"}),
            module("hoarder", hungry, limits={"open_files": 64}, env={"APPETITE": "files"}),
            module("motors", make.sdk_module(tmp_path, "motor"), limits={"open_files": 50}),
        ],
        "components": [motor("wheel")],
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready("wheel")
        errors = {}
        for name in ("eater", "hoarder"):
            await there.server.out.wait_for(f"module {name} exited")
            errors[name] = (await there.modules())[name].error
            print(f"=> {name}: {errors[name]!r}")
        assert "memory limit of 1.465 GiB" in errors["eater"]
        assert "limit of 64 open files" in errors["hoarder"]
        limits = Path(f"/proc/{await there.pid_of('wheel')}/limits").read_text()
        assert re.search(r"Max open files\s+50\s+50", limits)


async def test_untrusted_environment_runs_only_trusted_namespaces(tmp_path: Path) -> None:
    config = {
        "modules": [
            module("mine", make.sdk_module(tmp_path, "motor"), module_id="acme:motors"),
            module("theirs", make.sdk_module(tmp_path, "sensor"), module_id="evil:sensors"),
            module("unnamed", make.sdk_module(tmp_path, "camera")),
        ],
        "components": [motor("wheel"), sensor("heat")],
        "network": {"bind_address": "localhost:0"},
    }
    file = tmp_path / "machine.json"
    file.write_text(json.dumps(config))
    around = {"COGWORK_HOME": str(tmp_path / "home"), "COGWORK_TRUSTED_NAMESPACES": "acme, other"}
    async with start_server(["-config", str(file), "-untrusted-env"], around) as server:
        await server.wait_until_serving()
        await server.out.wait_for("motor/wheel is ready")
        await server.out.wait_for(
            'ERROR.*module theirs is not started.*"evil".*COGWORK_TRUSTED_NAMESPACES'
        )
        await server.out.wait_for("ERROR.*module unnamed is not started")
        status = await server.status()
        states = {each["name"]: each["state"] for each in status["modules"]}
        assert states == {"mine": "ready", "theirs": "unhealthy", "unnamed": "unhealthy"}
        heat = next(each for each in status["resources"] if each["name"].endswith("heat"))
        assert heat["state"] == "unhealthy"
        assert 'module "theirs" does not run: the server was started with -untr' in heat["reason"]
        assert 'its namespace "evil" is not trusted; add it to' in heat["reason"]
        assert "COGWORK_TRUSTED_NAMESPACES" in heat["reason"]
        assert "check the spelling" not in heat["reason"]
        server.process.terminate()
        assert await server.exit_code() == 0


async def test_camera_of_a_node_module_can_be_used(tmp_path: Path) -> None:
    config = {
        "modules": [module("node", node_module(tmp_path))],
        "components": [
            component("camera", "camera", "acme:node:camera"),
            component("large", "camera", "acme:node:camera", bytes=30_000_000),
            component(
                "half",
                "camera",
                "transform",
                source="camera",
                pipeline=[{"type": "resize", "attributes": {"width_px": 4, "height_px": 4}}],
            ),
        ],
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        camera = CameraClient("camera", there.channel)
        began = time.monotonic()
        for _ in range(20):
            images, _ = await camera.get_images()
            assert len(images[0].data) >= ONE_MEGABYTE
        print(f"=> a picture of 1 MB from Node took {(time.monotonic() - began) * 50:.1f} ms")
        images, _ = await CameraClient("half", there.channel).get_images()
        assert (images[0].width, images[0].height) == (4, 4)
        images, _ = await CameraClient("large", there.channel).get_images()
        assert len(images[0].data) >= 30_000_000
        with refused() as told:
            await camera.get_point_cloud()
        assert told.status is Status.UNIMPLEMENTED
        there.save({**config, "components": config["components"][:1]})
        await there.wait_until_gone("large")
        assert (await camera.get_images())[0]


async def test_modular_motor_stops_with_its_client_and_by_stop_all(tmp_path: Path) -> None:
    config = {
        "modules": [module("motors", make.sdk_module(tmp_path, "motor"))],
        "components": [motor("motor"), motor("other")],
        "network": {"sessions": {"heartbeat_window": f"{WINDOW}s"}},
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        wheel, other = there.motor("motor"), there.motor("other")
        await other.set_power(1)
        await assert_motor_stops_with_its_client(there, wheel)
        # Its client was not killed.
        assert await other.is_moving()

        going = asyncio.ensure_future(wheel.go_for(rpm=1, revolutions=10))
        await poll(wheel.is_moving, bool)
        began = time.monotonic()
        await there.robot.StopAll(StopAllRequest())
        print(f"=> StopAll of two modular motors took {(time.monotonic() - began) * 1000:.0f} ms")
        assert not await wheel.is_moving()
        assert not await other.is_moving()
        with refused() as told:
            await going
        assert told.status is Status.CANCELLED
        assert "everything was told to stop" in told.words


async def assert_motor_stops_with_its_client(there: RunningMachine, wheel: Any) -> None:
    async with start_mover(there.server.port, "motor") as process:
        await pass_time(1.2 * WINDOW)
        assert await wheel.is_moving()
        process.kill()
        began = time.monotonic()
        await poll(wheel.is_moving, lambda moving: not moving)
        took = time.monotonic() - began
    print(f"=> a modular motor stood {took:.2f} s after its client was killed, window {WINDOW} s")
    assert took < WINDOW + SLACK


async def test_jobs_can_call_modular_resources(tmp_path: Path) -> None:
    talk = {"method": "DoCommand", "command": {"print": "by a job"}}
    config = {
        "modules": [module(name, make.sdk_module(tmp_path, name)) for name in ("motor", "echo")],
        "components": [motor("wheel")],
        "services": [service("echo", "acme:service:echo", "acme:test:echo")],
        "jobs": [
            {"name": "talk", "schedule": "100ms", "resource": "wheel", **talk},
            {"name": "look", "schedule": "100ms", "resource": "wheel", "method": "IsMoving"},
            # Of an API that only the module knows.
            {"name": "call", "schedule": "100ms", "resource": "echo", "method": "Unary"},
        ],
    }
    async with run_machine(config, tmp_path) as there:
        await there.server.out.wait_for(r"modmanager\.motor\.StdOut.*by a job", within=60)
        view = await poll(
            there.view, lambda view: all(job["successes"] for job in view["jobs"]), within=5
        )
        assert [job["name"] for job in view["jobs"]] == ["talk", "look", "call"]


async def test_frames_follow_an_arm_of_a_module(tmp_path: Path) -> None:
    arm = component("arm", "arm", "acme:test:arm")
    gripper = component("gripper", "gripper", "fake")
    config = {
        "modules": [module("arms", make.executable(tmp_path, Path(arm_module.__file__)))],
        "components": [
            {**arm, "frame": {"parent": "world", "translation": {"x": 0, "y": 0, "z": 50}}},
            {**gripper, "frame": {"parent": "arm", "translation": {"x": 10, "y": 0, "z": 0}}},
        ],
    }
    async with run_machine(config, tmp_path) as there:
        await there.wait_until_ready()
        assert await read_position(there, "gripper") == (110, 0, 50)
        await ArmClient("arm", there.channel).move_to_joint_positions(JointPositions(values=[90]))
        assert await read_position(there, "gripper") == (0, 110, 50)


async def read_position(there: RunningMachine, name: str) -> tuple[int, int, int]:
    """Return the position in the world, in whole millimeters."""
    source = PoseInFrame(reference_frame=name, pose=Pose(o_z=1))
    request = TransformPoseRequest(source=source, destination="world")
    pose = (await there.robot.TransformPose(request)).pose.pose
    return round(pose.x), round(pose.y), round(pose.z)
