r"""Models that return nonsense, a million boxes or nothing, and images of noise: callers get a
clear answer in bounded time, and other clients are not affected."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from grpclib.client import Channel
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tests.support.machine.running import Config
from tests.support.machine.served import refused
from tests.support.machine.watched import LONGEST_TURN, MIB, WatchedServer, run_watched
from tests.support.models.onnx_models import FLOAT, INT64, model, save_model
from tests.support.models.vision_models import constant
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.media.video import CameraMimeType, ViamImage  # noqa: E402
from viam.proto.service.vision import Detection  # noqa: E402
from viam.services.vision import VisionClient  # noqa: E402

LONGEST = limit(2.0)
"""Seconds of one call."""
MOST_AT_ONCE = 500.0
"""MiB that the server may take for it."""
MOST_KEPT = 100.0
"""MiB that may be left of it."""
AT_ONCE = size(ci=4, full=64)
MILLION = 1_000_000
RANDOM = np.random.default_rng(7)

Outputs = Mapping[str, NDArray[Any]]


def detector_outputs(count: int, **others: Any) -> Outputs:
    """Return outputs of a detector: confident boxes all over the image."""
    corners = np.sort(RANDOM.random((1, count, 2, 2), np.float32), axis=2)
    return {
        "location": corners.reshape(1, count, 4),
        "category": RANDOM.integers(0, 90, (1, count)).astype(np.float32),
        "score": RANDOM.uniform(0.5, 1, (1, count)).astype(np.float32),
        **others,
    }


def inverted_boxes() -> NDArray[np.float32]:
    boxes = detector_outputs(50)["location"][..., ::-1]
    return np.ascontiguousarray(boxes)


def infinite_boxes() -> NDArray[np.float32]:
    boxes = np.full((1, 50, 4), np.nan, np.float32)
    boxes[0, 10:20] = np.inf
    boxes[0, 20:30] = -np.inf
    boxes[0, 30:40, 1] = 3e38
    boxes[0, 40:] = (0.25, 0.25, 0.75, 0.75)  # these are fine
    return boxes


def yolo_outputs(count: int) -> Outputs:
    """Return outputs of YOLO v8: centers and sizes in pixels, and 3 classes."""
    rows = RANDOM.uniform(20, 60, (1, 7, count)).astype(np.float32)
    rows[:, 4:] = RANDOM.uniform(0.3, 1, (1, 3, count))
    return {"output0": rows}


def model_failing_on_bright_images() -> Any:
    """It works with black images, which it is tried with, and fails with any other."""
    return model(
        [
            helper.make_node("Cast", ["image"], ["numbers"], to=INT64),
            helper.make_node("ReduceMax", ["numbers"], ["brightest"], keepdims=0),
            helper.make_node("Gather", ["only", "brightest"], ["one"], axis=0),
            helper.make_node("Reshape", ["one", "shape"], ["probability"]),
        ],
        [("image", TensorProto.UINT8, [1, 8, 8, 3])],
        [("probability", FLOAT, [1, 3])],
        {
            "only": np.array([[0.2, 0.3, 0.5]], np.float32),
            "shape": np.array([1, 3], np.int64),
        },
    )


MODELS: dict[str, Any] = {
    "million": lambda: constant(detector_outputs(MILLION)),
    "million-many": lambda: constant(detector_outputs(MILLION)),
    "million-yolo": lambda: constant(yolo_outputs(MILLION), side=64),
    "nowhere": lambda: constant(detector_outputs(50, location=infinite_boxes())),
    "inside-out": lambda: constant(detector_outputs(50, location=inverted_boxes())),
    "no-numbers": lambda: constant(
        detector_outputs(50, score=np.full((1, 50), np.nan, np.float32))
    ),
    "odd-classes": lambda: constant(
        detector_outputs(50, category=np.full((1, 50), 1e30, np.float32))
    ),
    "empty": lambda: constant(detector_outputs(0), open_rows=True),
    "capricious": model_failing_on_bright_images,
}
PINNED: dict[str, dict[str, Any]] = {
    "million": {"max_detections": 300},
    "million-yolo": {"family": "yolo_v8", "letterbox": False, "max_detections": 300},
}


def config(directory: Path) -> Config:
    services = []
    for name, make in MODELS.items():
        file = save_model(directory / f"{name}.onnx", make())
        services += [
            {
                "name": f"{name}-model",
                "api": "rdk:service:mlmodel",
                "model": "onnx_cpu",
                "attributes": {"model_path": str(file)},
            },
            {
                "name": name,
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": {
                    "mlmodel_name": f"{name}-model",
                    "camera_name": "eye",
                    **PINNED.get(name, {}),
                },
            },
        ]
    eye = {
        "name": "eye",
        "api": "rdk:component:camera",
        "model": "fake",
        "attributes": {"scene": "conveyor", "width": 320, "height": 240},
    }
    return {"components": [eye], "services": services}


class Scene:
    def __init__(self, server: WatchedServer, channel: Channel) -> None:
        self.server = server
        self.channel = channel
        self.most = 0.0
        """MiB that the server took, at its peak."""

    def client(self, name: str) -> VisionClient:
        return VisionClient(name, self.channel)

    async def measure_memory(self) -> None:
        while True:
            self.most = max(self.most, self.server.process.memory_info().rss / MIB)
            await pass_time(0.005)

    async def call_once_and_together(
        self, name: str, call: Any, times: int = AT_ONCE, longest: float = LONGEST
    ) -> list[Any]:
        """Make one timed call, then many at once; return all results."""
        before = await self.server.size()
        self.most = 0.0
        detector_outputs: list[Any] = []

        async def call_one() -> None:
            detector_outputs[:] = [await call()]

        async def call_many() -> None:
            detector_outputs[1:] = await asyncio.gather(*(call() for _ in range(times)))

        phase = await self.server.attack(name, call_one, longest=longest)
        assert phase.took < longest, name
        phase = await self.server.attack(f"{name} at once", call_many)
        most = self.most - before
        print(f"  peak {most:6.1f} MiB")
        assert phase.busy < LONGEST_TURN, f"a turn of the loop took {phase.busy:.0f} ms"
        assert phase.bystander.failed == 0
        assert most < MOST_AT_ONCE
        return detector_outputs


async def test_nonsense_results_are_handled_in_bounded_time_and_memory(tmp_path: Path) -> None:
    async with run_watched(tmp_path, config(tmp_path)) as server:
        channel = Channel("127.0.0.1", server.server.port)
        here = Scene(server, channel)
        weighing = asyncio.ensure_future(here.measure_memory())
        try:
            for name in MODELS:  # what is loaded at the first use is no growth
                if name != "capricious":
                    await here.client(name).get_detections_from_camera("", timeout=60)
            first = await server.size()
            await check_a_million_boxes(here)
            await check_impossible_boxes(here)
            await check_failing_model(here)
            await check_noise(here)
            assert await server.size() - first < MOST_KEPT
            assert server.server.err.lines == []
        finally:
            weighing.cancel()
            await asyncio.wait([weighing])
            channel.close()


async def check_a_million_boxes(here: Scene) -> None:
    for name, most in (("million", 300), ("million-many", 10_000), ("million-yolo", 300)):
        client = here.client(name)
        for found in await here.call_once_and_together(
            name,
            lambda client=client: client.get_detections_from_camera("", timeout=30),
            2 if most > 1000 else AT_ONCE,  # each of them is told all of it
        ):
            assert 0 < len(found) <= most
            check_detections(found)
            assert sorted(found, key=lambda each: -each.confidence) == found
            if name != "million-yolo":
                assert len(found) == most
                assert found[0].confidence > 0.999  # the surest of all of them
    client = here.client("million-many")

    async def expect_too_many_clouds() -> None:
        with refused() as told:
            await client.get_object_point_clouds("", timeout=30)
        assert told.words.startswith(
            "the point clouds of 10000 objects exceed the maximum message size"
        )

    # Thousands of clouds are built before they are too many.
    await here.call_once_and_together(
        "10,000 in space", expect_too_many_clouds, 1, longest=5 * LONGEST
    )


async def check_impossible_boxes(here: Scene) -> None:
    wanted = {"nowhere": 10, "inside-out": 50, "no-numbers": 0, "odd-classes": None, "empty": 0}
    for name, count in wanted.items():
        client = here.client(name)
        for found in await here.call_once_and_together(
            name, lambda client=client: client.get_detections_from_camera("", timeout=60)
        ):
            check_detections(found)
            assert count is None or len(found) == count, name


def check_detections(found: list[Detection]) -> None:
    for each in found:
        assert 0 <= each.x_min <= each.x_max < 320
        assert 0 <= each.y_min <= each.y_max < 240
        assert 0 <= each.confidence <= 1
        assert 0 <= each.x_min_normalized <= each.x_max_normalized <= 1
        assert each.class_name


async def check_failing_model(here: Scene) -> None:
    client = here.client("capricious")
    for _ in range(3):
        with refused() as told:
            await client.get_classifications_from_camera("", 1, timeout=60)
        assert told.words.startswith("the model failed on these tensors: ")
        black = cv2.imencode(".png", np.zeros((8, 8, 3), np.uint8))[1].tobytes()
        image = ViamImage(black, CameraMimeType.PNG)
        (found,) = await client.get_classifications(image, 1)
        assert found.confidence == pytest.approx(0.5)


async def check_noise(here: Scene) -> None:
    """Send the largest images of noise, and bytes that are not images."""
    client = here.client("inside-out")
    grains = RANDOM.integers(0, 256, (3340, 3340, 3), np.uint8)
    done, data = cv2.imencode(".png", grains, (cv2.IMWRITE_PNG_COMPRESSION, 1))
    assert done
    assert 31 * MIB < len(data) <= 32 * MIB
    image = ViamImage(data.tobytes(), CameraMimeType.PNG)

    async def detect() -> None:
        assert len(await client.get_detections(image, timeout=30)) == 50

    phase = await here.server.attack("32 MiB of noise", detect)
    assert phase.busy < LONGEST_TURN
    for kind, start in (("nothing", b""), ("a JPEG", b"\xff\xd8"), ("a PNG", image.data[:100])):
        image._data = start + RANDOM.bytes(32_000_000)

        async def refuse(word: str = kind.split()[-1]) -> None:
            with refused() as told:
                await client.get_detections(image, timeout=30)
            assert "image" in told.words or word in told.words

        phase = await here.server.attack(f"32 MB as {kind}", refuse, longest=LONGEST)
        assert phase.took < LONGEST
        assert phase.busy < LONGEST_TURN
