r"""Calls of modular resources through the server, of every kind.

The modules use the unmodified SDK, or are written in Node without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from grpclib import GRPCError
from grpclib.client import Channel
from grpclib.const import Status
from grpclib.events import RecvInitialMetadata, RecvTrailingMetadata, listen
from tests.interop import colors_module, sdk_modules
from tests.modules import make
from tests.modules.sdk.echo.api import EchoClient
from tests.modules.sdk.echo.echo_pb2 import EchoRequest
from tests.support.machine import modular
from tests.support.machine.modular import (
    RunningMachine,
    board,
    component,
    module,
    motor,
    run_machine,
    sensor,
    service,
)
from tests.support.machine.running import DEADLINE
from tests.support.machine.served import refused
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, run_others

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.components.board.client import BoardClient  # noqa: E402
from viam.components.camera.client import CameraClient  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import (  # noqa: E402
    CancelOperationRequest,
    GetOperationsRequest,
)
from viam.services.mlmodel.client import MLModelClient  # noqa: E402
from viam.services.vision import VisionClient  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="module")

LARGE = 30_000_000
"""Bytes of one message."""
MUCH = size(ci=200, full=2000)
"""Megabytes that are not read and must not pile up anywhere."""
ROOM = 64.0
"""Megabytes that server or module may grow by meanwhile: windows and data in transit."""

FORWARDED = ["x-mark", "x-one", "x-raw-bin"]
"""Headers of a client that the modules get."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def there(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningMachine]:
    """Start one machine for all tests, because starting it takes longest."""
    directory = tmp_path_factory.mktemp("calls")
    names = ("camera", "motor", "mlmodel", "sensor", "echo")
    config = {
        "modules": [
            *(
                module(name, make.sdk_module(directory, name), forward_headers=FORWARDED)
                for name in names
            ),
            module("colors", make.executable(directory, Path(colors_module.__file__))),
        ],
        "components": [
            component(
                "camera", "camera", "acme:test:camera", width=40, height=30, color=[255, 0, 0]
            ),
            component("drawing", "camera", "fake", width=640, height=480),
            component(
                "turned",
                "camera",
                "transform",
                source="camera",
                pipeline=[{"type": "rotate", "attributes": {"angle_degs": 90}}],
            ),
            board(),
            sensor("sensor", level=7),
            motor("motor", needs=["board"], pin="5"),
            motor("second", needs=["sensor"]),
            motor("third", needs=["second"]),
        ],
        "services": [
            service("doubler", "rdk:service:mlmodel", "acme:test:doubler"),
            service("colors", "rdk:service:mlmodel", "acme:test:colors"),
            service("eye", "rdk:service:vision", "mlmodel", mlmodel_name="colors"),
            service("echo", "acme:service:echo", "acme:test:echo"),
        ],
    }
    async with run_machine(config, directory) as there:
        await there.wait_until_ready()
        # Open its connection now: it outlives a test.
        await there.modules()
        yield there


@pytest.fixture
def echo(there: RunningMachine) -> EchoClient:
    return EchoClient("echo", there.channel)


async def test_unmodified_client_uses_unmodified_modules(there: RunningMachine) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", sdk_modules.__file__, str(there.server.port)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await asyncio.wait_for(process.communicate(), DEADLINE)
    await run_others()
    report = said.decode().rpartition("report ")[2]
    assert json.loads(report) == {
        "names": [
            "board/board",
            "camera/camera",
            "camera/drawing",
            "camera/turned",
            "echo/echo",
            "mlmodel/colors",
            "mlmodel/doubler",
            "motion/builtin",
            "motor/motor",
            "motor/second",
            "motor/third",
            "sensor/sensor",
            "vision/eye",
        ],
        "models": [
            "acme:test:camera",
            "acme:test:colors",
            "acme:test:doubler",
            "acme:test:echo",
            "acme:test:motor",
            "acme:test:sensor",
        ],
        "camera": {
            "images": [["color", "image/jpeg", 40, 30]],
            "is dated": True,
            "none of it": 0,
            "mime types": ["image/jpeg"],
            "point cloud": ["UNIMPLEMENTED", 'camera "camera" has no point clouds'],
        },
        "motor": {
            "moving": [True, False],
            "position": 0.0,
            "reports position": True,
            "raised": ["UNKNOWN", "RuntimeError - ouch"],
            "too slow": "DEADLINE_EXCEEDED",
        },
        "sensor": {"level": 7.0},
        "doubled": [3.0, -4.0],
        "echo": {
            "unary": ["one", {"x-mark": "here"}],
            "server stream": [0, 1, 2],
            "client stream": ["abc", 3, 30],
            "both ways": ["x", "y"],
            "refused": ["NOT_FOUND", "no such thing"],
        },
        "modules of ours": [],
    }, said.decode()


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
async def test_status_and_message_of_an_error_are_kept(echo: EchoClient, status: Status) -> None:
    with refused() as told:
        await echo.unary("why, in ünicode", status=status.value)
    assert (told.status, told.words) == (status, "why, in ünicode")


async def test_error_in_the_middle_of_a_stream_is_passed_on(echo: EchoClient) -> None:
    with refused() as told:
        async with echo.client.BiDi.open() as stream:
            await stream.send_message(EchoRequest(name="echo", text="first"))
            reply = await stream.recv_message()
            assert reply is not None
            assert reply.text == "first"
            await stream.send_message(
                EchoRequest(name="echo", text="enough", status=Status.ABORTED.value)
            )
            await stream.recv_message()
    assert (told.status, told.words) == (Status.ABORTED, "enough")


async def test_metadata_passes_in_both_directions(there: RunningMachine) -> None:
    first: dict[str, Any] = {}
    last: dict[str, Any] = {}

    async def on_initial_metadata(event: RecvInitialMetadata) -> None:
        first.update(event.metadata)

    async def on_trailing_metadata(event: RecvTrailingMetadata) -> None:
        last.update(event.metadata)

    with separate_client(there) as echo:
        listen(echo.channel, RecvInitialMetadata, on_initial_metadata)
        listen(echo.channel, RecvTrailingMetadata, on_trailing_metadata)
        given: Any = {"x-one": "1", "x-raw-bin": b"\0\xff", "x-other": "2"}
        reply = await echo.unary("", metadata=given)
    assert dict(reply.metadata) == {"x-one": "1", "x-raw-bin": str(b"\0\xff")}
    assert first.get("x-said-first") == "echo"
    assert last.get("x-said-last") == "echo"


async def test_deadline_is_passed_to_the_module(echo: EchoClient) -> None:
    assert (await echo.unary()).remaining == -1
    # The value on the wire is rounded up.
    assert 4 < (await echo.unary(timeout=5)).remaining < 5.1


async def test_cancellation_reaches_the_module(echo: EchoClient) -> None:
    before = (await echo.unary()).cancelled
    waiting: list[asyncio.Future[Any]] = []
    waiting += [asyncio.ensure_future(echo.unary(pause=60)) for _ in range(3)]
    waiting.append(asyncio.ensure_future(_collect(echo.server_stream(5, pause=60))))
    await modular.poll(echo.unary, lambda reply: reply.running == len(waiting) + 1)
    for each in waiting:
        assert not each.done()
        each.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    await _wait_until_cancelled(echo, before + 4)


async def test_expired_deadline_reaches_the_module(echo: EchoClient) -> None:
    before = (await echo.unary()).cancelled
    began = time.monotonic()
    # Client and server watch the same deadline, and either may report it first.
    with pytest.raises((TimeoutError, GRPCError)) as over:
        await echo.unary(pause=60, timeout=0.2)
    assert getattr(over.value, "status", Status.DEADLINE_EXCEEDED) is Status.DEADLINE_EXCEEDED
    assert time.monotonic() - began < limit(2)
    await _wait_until_cancelled(echo, before + 1)


async def test_operations_are_listed_and_cancelled(there: RunningMachine, echo: EchoClient) -> None:
    before = (await echo.unary()).cancelled
    for waiting, method in (
        (asyncio.ensure_future(there.command("motor", "hang", 60)), "MotorService/DoCommand"),
        (asyncio.ensure_future(echo.unary(pause=60)), "EchoService/Unary"),
    ):
        operation = await modular.poll(partial(_find_operation, there, method), bool)
        await there.robot.CancelOperation(CancelOperationRequest(id=operation))
        with refused() as told:
            await waiting
        assert told.status is Status.CANCELLED
        assert operation in told.words
    await _wait_until_cancelled(echo, before + 1)


async def _find_operation(there: RunningMachine, method: str) -> str:
    """Return the id of the operation that calls this method, or an empty string."""
    listed = await there.robot.GetOperations(GetOperationsRequest())
    return next((each.id for each in listed.operations if each.method.endswith(method)), "")


async def _wait_until_cancelled(echo: EchoClient, count: int) -> None:
    await modular.poll(echo.unary, lambda reply: reply.cancelled >= count)


async def _collect(replies: AsyncIterator[Any]) -> list[Any]:
    return [each async for each in replies]


async def test_slow_client_pauses_the_module(there: RunningMachine, echo: EchoClient) -> None:
    pids = await _pids(there, "echo")
    before = {each: modular.resident_mb(pid) for each, pid in pids.items()}
    async with echo.client.ServerStream.open() as stream:
        request = EchoRequest(name="echo", times=MUCH, size=1 << 20)
        await stream.send_message(request, end=True)
        await stream.recv_message()
        await _wait_until_quiet(*pids.values())
        grown = {each: modular.resident_mb(pid) - before[each] for each, pid in pids.items()}
        # Other clients of the same resource are served meanwhile.
        with separate_client(there) as other:
            assert (await other.unary("still there", timeout=DEADLINE)).text == "still there"
        left = [len(reply.data) async for reply in stream]
    print(f"{MUCH} MB unread: {_format_growth(grown)}")
    assert left == [1 << 20] * (MUCH - 1)
    assert max(grown.values()) < ROOM


async def test_slow_module_pauses_the_client(there: RunningMachine, echo: EchoClient) -> None:
    pids = await _pids(there, "echo")
    before = {each: modular.resident_mb(pid) for each, pid in pids.items()}
    data, sent = bytes(1 << 20), 0
    async with echo.client.ClientStream.open() as stream:
        # It reads nothing else while it pauses over the first message.
        await stream.send_message(EchoRequest(name="echo", pause=60))
        with contextlib.suppress(asyncio.TimeoutError):
            while sent < MUCH:
                message = EchoRequest(name="echo", data=data)
                await asyncio.wait_for(stream.send_message(message), 1)
                sent += 1
        grown = {each: modular.resident_mb(pid) - before[each] for each, pid in pids.items()}
        await stream.cancel()
    print(f"{sent} MB sent: {_format_growth(grown)}")
    assert sent < MUCH
    assert max(grown.values()) < ROOM
    assert (await echo.unary("still there")).text == "still there"


@contextlib.contextmanager
def separate_client(there: RunningMachine) -> Iterator[EchoClient]:
    """Yield a client with its own connection: unread data fills the one that it comes by."""
    channel = Channel(modular.HOST, there.server.port)
    try:
        yield EchoClient("echo", channel)
    finally:
        channel.close()


async def _pids(there: RunningMachine, name: str) -> dict[str, int]:
    children = Path(f"/proc/{there.server.pid}/task/{there.server.pid}/children").read_text()
    for pid in map(int, children.split()):
        if f"sdk/{name}" in Path(f"/proc/{pid}/cmdline").read_text():
            return {"the server": there.server.pid, "the module": pid}
    raise AssertionError(f"the server has no child {name}")


def _format_growth(grown: Mapping[str, float]) -> str:
    return ", ".join(f"{each} grew by {megabytes:.0f} MB" for each, megabytes in grown.items())


async def _wait_until_quiet(*pids: int) -> None:
    """Wait until the memory of the processes stays constant."""
    before = -1.0
    async with asyncio.timeout(DEADLINE):
        while (now := sum(map(modular.resident_mb, pids))) != before:
            before = now
            await pass_time(0.3)


async def test_messages_of_30_megabytes_pass(there: RunningMachine, echo: EchoClient) -> None:
    data = bytes(range(256)) * (LARGE // 256)
    assert (await echo.unary(data=data)).data == data
    command = {"text": "x" * LARGE}
    assert await there.sensor("sensor").do_command(command) == command
    got = [len(each.data) async for each in echo.server_stream(2, size=LARGE)]
    assert got == [LARGE, LARGE]
    assert (await echo.client_stream(["", ""], data)).received == 2 * len(data)


async def test_concurrent_calls_get_their_own_replies(echo: EchoClient) -> None:
    texts = [str(number) for number in range(200)]
    replies = await asyncio.gather(*(echo.unary(text) for text in texts))
    assert [each.text for each in replies] == texts
    streams = [_collect(echo.bidi([f"{text} {n}" for n in range(3)])) for text in texts[:20]]
    for text, got in zip(texts, await asyncio.gather(*streams), strict=False):
        assert [each.text for each in got] == [f"{text} {n}" for n in range(3)]


async def test_unknown_and_missing_names_are_refused(there: RunningMachine) -> None:
    with refused() as told:
        await EchoClient("ecko", there.channel).unary()
    assert told.status is Status.NOT_FOUND
    assert "acme:service:echo" in told.words
    with refused() as told:
        await EchoClient("", there.channel).unary()
    assert told.status is Status.INVALID_ARGUMENT
    assert "must be the name of a resource" in told.words


async def test_modular_resources_can_depend_on_builtin_and_modular_ones(
    there: RunningMachine,
) -> None:
    pin = await BoardClient("board", there.channel).gpio_pin_by_name("5")
    await pin.set(True)
    assert await there.motor("motor").get_position() == 1
    await pin.set(False)
    assert await there.motor("motor").get_position() == 0
    assert await there.motor("second").get_position() == 7
    assert await there.motor("third").get_position() == 8
    assert (await there.command("third", "about"))["dependencies"] == ["second"]


async def test_builtin_resource_can_depend_on_a_modular_one(there: RunningMachine) -> None:
    images, _ = await CameraClient("turned", there.channel).get_images()
    assert (images[0].width, images[0].height) == (30, 40)


async def test_builtin_vision_service_uses_a_model_of_a_module(there: RunningMachine) -> None:
    eye = VisionClient("eye", there.channel)
    found = await eye.get_classifications_from_camera("camera", 3)
    assert found[0].class_name == "0"
    assert found[0].confidence > 0.95
    assert found[1].confidence < 0.05
    drawn = await eye.get_classifications_from_camera("drawing", 3)
    assert len(drawn) == 3
    began = time.monotonic()
    for _ in range(10):
        await eye.get_classifications_from_camera("camera", 3)
    print(
        f"a picture of a module by a model of a module: {(time.monotonic() - began) * 100:.1f} ms"
    )


async def test_tensors_of_all_types_pass(there: RunningMachine) -> None:
    model = MLModelClient("doubler", there.channel)
    for kind in (np.float32, np.int8, np.uint16, np.float64):
        given = np.arange(12, dtype=kind).reshape(3, 4)
        result = await model.infer({"input": given})
        assert np.array_equal(result["output"], given.astype(np.float32) * 2)


async def test_calls_in_progress_fail_when_the_module_restarts(there: RunningMachine) -> None:
    """This test is the last one: it replaces the process."""
    with separate_client(there) as echo:
        reading = asyncio.ensure_future(_collect(echo.server_stream(9, pause=60)))
        asking = asyncio.ensure_future(echo.unary(pause=60))
        await asyncio.wait({reading, asking}, timeout=0.2)
        await there.restart("echo")
        for error in await asyncio.gather(reading, asking, return_exceptions=True):
            assert isinstance(error, GRPCError)
            assert error.status is Status.UNAVAILABLE
            assert "try again" in (error.message or "")
        await there.wait_until_ready("echo")
        assert (await echo.unary("again")).text == "again"
