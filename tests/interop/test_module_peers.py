"""The test modules behave as described, checked before the tests that use them."""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import pytest
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.reflection.v1.reflection_pb2 import (
    ServerReflectionRequest,
    ServerReflectionResponse,
)
from PIL import Image
from tests.modules import bare, make
from tests.modules.bare import Bare, Parent, config
from tests.modules.node.install import NoNode
from tests.modules.sdk.echo.api import EchoClient
from tests.support.machine.served import refused
from tests.support.waiting import poll, wait_until
from viam.components.camera.client import CameraClient
from viam.components.generic.client import GenericClient
from viam.components.motor.client import MotorClient
from viam.components.sensor import Sensor
from viam.components.sensor.client import SensorClient
from viam.gen.module.v1.module_pb2 import ReadyResponse
from viam.services.mlmodel import MLModelClient

CAMERA = "rdk:component:camera"
GENERIC = "rdk:component:generic"
MOTOR = "rdk:component:motor"
SENSOR = "rdk:component:sensor"


class Gauge(Sensor):
    """A sensor of the machine that modules can depend on."""

    async def get_readings(self, **_: Any) -> Mapping[str, Any]:
        return {"revolutions": 12.5}


@pytest.fixture
def directory() -> Iterable[Path]:
    # A socket's path may have 103 characters; pytest's directories are long.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="peer-") as directory:
        yield Path(directory)


@pytest.fixture
async def parent(directory: Path) -> AsyncIterator[Parent]:
    async with bare.parent(directory, Gauge("gauge")) as serving:
        yield serving


@contextlib.asynccontextmanager
async def start_ready_module(
    name: str, directory: Path, parent: Parent, *arguments: str, **environment: str
) -> AsyncIterator[Bare]:
    executable = make.sdk_module(directory, name)
    async with bare.module(executable, directory, *arguments, environment=environment) as module:
        assert (await module.ready(parent)).ready
        yield module


def start_bad_module(
    mode: str, directory: Path, **environment: str
) -> contextlib.AbstractAsyncContextManager[Bare]:
    executable = make.sdk_module(directory, "bad")
    return bare.module(executable, directory, environment={"MODE": mode, **environment})


def models_by_service(answer: ReadyResponse) -> dict[str, list[str]]:
    return {each.subtype.proto_service: list(each.models) for each in answer.handlermap.handlers}


async def list_services(module: Bare, *, alpha: bool = False) -> set[str]:
    """Return the services that the reflection of the module lists."""
    reply = await call_reflection(module, ServerReflectionRequest(list_services=""), alpha=alpha)
    return {each.name for each in reply.list_services_response.service}


async def fetch_descriptors(module: Bare, symbol: str) -> list[bytes]:
    reply = await call_reflection(module, ServerReflectionRequest(file_containing_symbol=symbol))
    return list(reply.file_descriptor_response.file_descriptor_proto)


async def call_reflection(
    module: Bare, request: ServerReflectionRequest, *, alpha: bool = False
) -> ServerReflectionResponse:
    """Call the reflection service; both versions have the same messages."""
    version = "v1alpha" if alpha else "v1"
    ask: Any = module.carrier.stream_stream(
        f"/grpc.reflection.{version}.ServerReflection/ServerReflectionInfo",
        request_serializer=ServerReflectionRequest.SerializeToString,
        response_deserializer=ServerReflectionResponse.FromString,
    )
    (reply,) = [each async for each in ask(iter([request]), timeout=10)]
    return reply  # type: ignore[no-any-return]


class TestSdk:
    async def test_camera_module_serves_and_reconfigures(
        self, directory: Path, parent: Parent
    ) -> None:
        async with start_ready_module("camera", directory, parent) as module:
            assert parent.asked == 1
            small = config("front", CAMERA, "acme:test:camera", {"width": 32, "height": 16})
            await module.add(small)
            camera = CameraClient("front", module.channel)

            images, metadata = await camera.get_images()
            assert _size(images[0].data) == (32, 16)
            assert metadata.captured_at.seconds > 0
            assert (await camera.get_properties()).supports_pcd is False
            with refused():
                await camera.get_point_cloud()

            await module.reconfigure(
                config("front", CAMERA, "acme:test:camera", {"bytes": 1_000_000})
            )
            images, _ = await camera.get_images()
            assert _size(images[0].data) == (64, 48)
            assert len(images[0].data) == 1_000_000

            with refused() as error:
                await module.validate(config("front", CAMERA, "acme:test:camera", {"width": 0}))
            assert '"width" must be above 0' in error.words

            await module.remove(small)
            with refused() as error:
                await camera.get_images()
            assert error.status is Status.NOT_FOUND
            assert await module.stop() == 0

    async def test_motor_module_uses_its_dependency(self, directory: Path, parent: Parent) -> None:
        async with start_ready_module("motor", directory, parent, GREETING="hello") as module:
            arm = config("arm", MOTOR, "acme:test:motor", {"needs": ["gauge"], "wants": ["x"]})
            answer = await module.validate(arm)
            assert list(answer.dependencies) == ["gauge"]
            assert list(answer.optional_dependencies) == ["x"]

            await module.add(arm, [f"{SENSOR}/gauge"])
            motor = MotorClient("arm", module.channel)
            assert await motor.get_position() == 12.5

            about = (await motor.do_command({"about": True}))["about"]
            assert isinstance(about, dict)
            assert about["environment"]["GREETING"] == "hello"
            assert about["pid"] == module.process.pid
            assert about["dependencies"] == ["gauge"]

    async def test_motor_module_turns_and_stops(self, directory: Path, parent: Parent) -> None:
        async with start_ready_module("motor", directory, parent) as module:
            await module.add(config("arm", MOTOR, "acme:test:motor"))
            motor = MotorClient("arm", module.channel)

            await motor.go_for(6000, 2)
            assert await motor.get_position() == 2
            turning = asyncio.create_task(motor.go_for(1, 100))
            await poll(motor.is_moving)
            await motor.stop()
            await turning
            assert await motor.get_position() < 3

    async def test_motor_module_misbehaves_on_command(
        self, directory: Path, parent: Parent
    ) -> None:
        async with start_ready_module("motor", directory, parent, "--log-level=debug") as module:
            await module.add(config("arm", MOTOR, "acme:test:motor"))
            motor = MotorClient("arm", module.channel)

            await motor.do_command({"print": "to stdout"})
            await module.out.wait_for("^to stdout$")
            await motor.do_command({"print_error": "to stderr"})
            await module.err.wait_for("^to stderr$")
            await motor.do_command({"log": "words"})
            for level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"):
                entry = await parent.logged("words", level)
                assert entry.logger_name == f"{MOTOR}/arm"
            with refused() as error:
                await motor.do_command({"raise": "ouch"})
            assert "ouch" in error.words
            with refused() as error:
                await motor.do_command({"hang": 60}, timeout=0.2)
            assert error.status is Status.DEADLINE_EXCEEDED

            child = (await motor.do_command({"spawn": "deaf"}))["spawn"]
            assert isinstance(child, float)
            assert os.getpgid(int(child)) == module.process.pid
            with refused():
                await motor.do_command({"exit": 9})
            assert await module.exit_code() == 9

    async def test_mlmodel_module_infers(self, directory: Path, parent: Parent) -> None:
        async with start_ready_module("mlmodel", directory, parent) as module:
            await module.add(config("twice", "rdk:service:mlmodel", "acme:test:doubler"))
            model = MLModelClient("twice", module.channel)
            given = np.array([1.5, -2.0], dtype=np.float32)
            output = (await model.infer({"input": given}))["output"]
            assert output.tolist() == [3.0, -4.0]
            assert output.dtype == np.float32
            assert (await model.metadata()).input_info[0].name == "input"

    async def test_sensor_module_returns_its_readings(
        self, directory: Path, parent: Parent
    ) -> None:
        async with start_ready_module("sensor", directory, parent) as module:
            attributes = {"readings": {"a": 1, "b": ["x", True]}}
            await module.add(config("s", SENSOR, "acme:test:sensor", attributes))
            sensor = SensorClient("s", module.channel)
            assert await sensor.get_readings() == {"a": 1, "b": ["x", True]}

    async def test_echo_module_serves_a_custom_api_with_all_streaming_kinds(
        self, directory: Path, parent: Parent
    ) -> None:
        executable = make.sdk_module(directory, "echo")
        async with bare.module(executable, directory) as module:
            service = "acme.service.echo.v1.EchoService"
            assert models_by_service(await module.ready(parent)) == {service: ["acme:test:echo"]}
            assert service in await list_services(module, alpha=True)
            await module.add(config("e", "acme:service:echo", "acme:test:echo"))
            echo = EchoClient("e", module.channel)

            reply = await echo.unary("hi", timeout=30, metadata={"x-who": "me"})
            assert reply.text == "hi"
            assert reply.metadata["x-who"] == "me"
            assert 0 < reply.remaining < 31
            replies = [each async for each in echo.server_stream(3, size=100_000)]
            assert [(each.number, len(each.data)) for each in replies] == [
                (0, 100_000),
                (1, 100_000),
                (2, 100_000),
            ]
            reply = await echo.client_stream(["a", "b", "c"], data=bytes(10))
            assert (reply.text, reply.number, reply.received) == ("abc", 3, 30)
            assert [each.text async for each in echo.bidi(["x", "y"])] == ["x", "y"]

            with refused() as error:
                await echo.unary("no", status=Status.ALREADY_EXISTS.value)
            assert (error.status, error.words) == (Status.ALREADY_EXISTS, "no")
            assert (await echo.unary()).remaining == -1
            with refused():
                await echo.unary(pause=60, timeout=0.2)

            async def is_cancelled() -> bool:
                return (await echo.unary()).cancelled == 1

            await poll(is_cancelled)


class TestBadModule:
    async def test_unknown_mode_exits(self, directory: Path) -> None:
        async with start_bad_module("helpful", directory) as module:
            assert await module.exit_code() == 1
            assert 'MODE is "helpful"' in module.err.text

    async def test_exit_at_start_mode(self, directory: Path) -> None:
        async with start_bad_module("exit-at-start", directory) as module:
            assert await module.exit_code() == 3
            await module.err.wait_for("RuntimeError: the device is not there")

    async def test_hang_at_start_mode(self, directory: Path) -> None:
        async with start_bad_module("hang-at-start", directory) as module:
            with pytest.raises(TimeoutError):
                await module.serves(within=0.5)
            assert module.process.returncode is None

    @pytest.mark.parametrize("hang", ["", "blocking"])
    async def test_hang_in_ready_mode(self, directory: Path, parent: Parent, hang: str) -> None:
        async with start_bad_module("hang-in-ready", directory, HANG=hang) as module:
            await module.serves()
            with refused() as error:
                await module.ready(parent, within=0.5)
            assert error.status is Status.DEADLINE_EXCEEDED

    async def test_not_ready_mode_becomes_ready_after_three_calls(
        self, directory: Path, parent: Parent
    ) -> None:
        async with start_bad_module("not-ready", directory) as module:
            answers = [(await module.ready(parent)).ready for _ in range(5)]
            assert answers == [False, False, False, True, True]

    async def test_exits_after_ready(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("exit-after-ready", directory) as module:
            assert (await module.ready(parent)).ready
            assert await module.exit_code() == 4

    async def test_no_reflection_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("no-reflection", directory) as module:
            assert (await module.ready(parent)).ready
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await list_services(module, alpha=True)
            # grpc.aio reports INTERNAL for a call that ends while it is being sent.
            assert error.value.code() in {
                grpc.StatusCode.UNIMPLEMENTED,
                grpc.StatusCode.INTERNAL,
            }

    async def test_others_model_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("others-model", directory) as module:
            answer = models_by_service(await module.ready(parent))
            assert answer["viam.component.sensor.v1.SensorService"] == ["acme:test:sensor"]

    @pytest.mark.parametrize("where", ["add", "reconfigure", "remove", "call"])
    async def test_hang_in_resource_call_modes(
        self, directory: Path, parent: Parent, where: str
    ) -> None:
        thing = config("t", GENERIC, "acme:bad:thing")
        async with start_bad_module(f"hang-in-{where}", directory) as module:
            await module.ready(parent)
            if where != "add":
                await module.add(thing)
            with refused() as error:
                match where:
                    case "add":
                        await module.add(thing, within=0.3)
                    case "reconfigure":
                        await module.reconfigure(thing, within=0.3)
                    case "remove":
                        await module.remove(thing, within=0.3)
                    case _:
                        await GenericClient("t", module.channel).do_command({}, timeout=0.3)
            assert error.status is Status.DEADLINE_EXCEEDED

    @pytest.mark.parametrize("where", ["add", "reconfigure", "call"])
    async def test_exit_in_resource_call_modes(
        self, directory: Path, parent: Parent, where: str
    ) -> None:
        thing = config("t", GENERIC, "acme:bad:thing")
        async with start_bad_module(f"exit-in-{where}", directory) as module:
            await module.ready(parent)
            with refused() as error:
                await module.add(thing)
                if where == "reconfigure":
                    await module.reconfigure(thing)
                await GenericClient("t", module.channel).do_command({})
            assert error.status is Status.UNAVAILABLE
            assert await module.exit_code() == 5
            await module.err.wait_for(f"exits in {where}")

    async def test_ignore_sigterm_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("ignore-sigterm", directory) as module:
            await module.ready(parent)
            await module.add(config("t", GENERIC, "acme:bad:thing"))
            module.process.send_signal(signal.SIGTERM)
            thing = GenericClient("t", module.channel)
            assert await thing.do_command({"still": "here"}) == {"still": "here"}
            assert module.process.returncode is None

    async def test_fork_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("fork", directory) as module:
            await module.ready(parent)

            await wait_until(lambda: len(_group(module.process.pid)) == 1 + 32)

        # Killing the group works, though a busy system takes a moment.
        await wait_until(lambda: not _group(module.process.pid))

    async def test_flood_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("flood", directory, FLOOD=str(1 << 20)) as module:
            await module.ready(parent)

            await wait_until(lambda: sum(len(line) + 1 for line in module.err.lines) >= 1 << 20)

    async def test_stop_mode(self, directory: Path, parent: Parent) -> None:
        async with start_bad_module("stop", directory) as module:
            await module.ready(parent)

            async def is_stopped() -> bool:
                return _state(module.process.pid) == "T"

            await poll(is_stopped)


class TestNodeModule:
    async def test_node_camera_serves_large_images(self, directory: Path, parent: Parent) -> None:
        try:
            executable = await asyncio.to_thread(make.node_module, directory)
        except NoNode as missing:
            pytest.skip(str(missing))
        async with bare.module(executable, directory) as module:
            service = "viam.component.camera.v1.CameraService"
            assert models_by_service(await module.ready(parent)) == {service: ["acme:node:camera"]}
            assert parent.asked == 1
            await module.out.wait_for("the machine has 1 resources")
            assert service in await list_services(module)
            assert service in await list_services(module, alpha=True)
            assert b"GetImages" in (await fetch_descriptors(module, service))[0]

            front = config("front", CAMERA, "acme:node:camera")
            await module.validate(front)
            await module.add(front)
            camera = CameraClient("front", module.channel)
            images, metadata = await camera.get_images()
            assert len(images[0].data) == 1 << 20
            assert _size(images[0].data) == (8, 8)
            assert metadata.captured_at.seconds > 0

            smaller = config("front", CAMERA, "acme:node:camera", {"bytes": 5000})
            await module.reconfigure(smaller)
            images, _ = await camera.get_images()
            assert len(images[0].data) == 5000
            with refused() as error:
                await module.validate(config("front", CAMERA, "acme:node:camera", {"bytes": 3}))
            assert error.status is Status.INVALID_ARGUMENT

            await module.remove(front)
            with refused() as error:
                await camera.get_images()
            assert error.status is Status.NOT_FOUND
            assert await module.stop() == 0


class TestStubModule:
    async def test_stub_accepts_all_calls(self, directory: Path, parent: Parent) -> None:
        thing = config("t", GENERIC, "acme:stub:thing")
        async with bare.module(make.stub(directory), directory) as module:
            service = "viam.component.generic.v1.GenericService"
            assert models_by_service(await module.ready(parent)) == {service: ["acme:stub:thing"]}
            await module.validate(thing)
            await module.add(thing)
            await module.reconfigure(thing)
            generic = GenericClient("t", module.channel)
            for number in range(300):
                assert await generic.do_command({"n": number}) == {"n": number}
            assert await generic.do_command({"long": "x" * 40_000}) == {"long": "x" * 40_000}
            with pytest.raises(grpc.aio.AioRpcError) as error:
                await list_services(module, alpha=True)
            assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED
            await module.remove(thing)
            assert await module.stop() == -signal.SIGTERM

    async def test_stub_understands_compressed_headers(self, directory: Path) -> None:
        async with bare.module(make.stub(directory), directory) as module:
            await module.serves()
            channel = Channel(path=module.address)
            try:
                generic = GenericClient("t", channel)
                for number in range(100):
                    assert await generic.do_command({"n": number}) == {"n": number}
            finally:
                channel.close()

    async def test_exits_after_ready(self, directory: Path, parent: Parent) -> None:
        environment = {"STUB_EXIT": "ready"}
        async with bare.module(make.stub(directory), directory, environment=environment) as module:
            assert (await module.ready(parent)).ready
            assert await module.exit_code() == 7

    async def test_stub_exits_after_a_resource_is_added(
        self, directory: Path, parent: Parent
    ) -> None:
        environment = {"STUB_EXIT": "add"}
        async with bare.module(make.stub(directory), directory, environment=environment) as module:
            assert (await module.ready(parent)).ready
            await module.add(config("t", GENERIC, "acme:stub:thing"))
            assert await module.exit_code() == 7


def _size(jpeg: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(jpeg)) as image:
        image.load()
        return image.size


def _group(leader: int) -> list[int]:
    """Return the running processes of a group."""
    numbers = (int(each.name) for each in Path("/proc").glob("[0-9]*"))
    return [each for each in numbers if _group_of(each) == leader and _state(each) not in "ZX"]


def _group_of(number: int) -> int | None:
    try:
        return os.getpgid(number)
    except ProcessLookupError:
        return None


def _state(number: int) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(") ")[2][0]
    except (FileNotFoundError, ProcessLookupError):
        return "X"
