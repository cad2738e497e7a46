"""Models and cameras with known results, for tests of vision services."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from tests.support.models.onnx_models import FLOAT, model, save_model

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.drivers.camera.attributes import Optics, TransformAttributes
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.transform import TransformCamera
from cogwork.drivers.mlmodel.attributes import OnnxAttributes
from cogwork.drivers.mlmodel.model_cache import ModelCache
from cogwork.drivers.mlmodel.onnx import OnnxModel
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.mlmodel import MlmodelVision
from cogwork.graph.name import Api, ResourceName
from cogwork.media.image import Pixels
from cogwork.resource.frame import Frame, Image

from viam.proto.service.mlmodel import Metadata, TensorInfo  # isort: skip
from viam.services.mlmodel import MLModel  # isort: skip

CAMERA = Api.parse("rdk:component:camera")
MODEL = Api.parse("rdk:service:mlmodel")
VISION = Api.parse("rdk:service:vision")
BOX = (0.25, 0.1, 0.75, 0.5)
"""Upper, left, lower, right edge, as models give it."""

T = TypeVar("T", bound=Any)
Rows = Sequence[tuple[int, float]]
"""The class and the score of each detection."""


def label_metadata(*labels: str) -> dict[str, str]:
    """Return labels as metadata of the file."""
    return {"names": repr(dict(enumerate(labels)))}


def echo(*labels: str, output: str = "probability") -> onnx.ModelProto:
    """Return the mean of each channel after preprocessing, as a probability."""
    node = helper.make_node("ReduceMean", ["image"], [output], axes=[2, 3], keepdims=0)
    return model(
        [node],
        [("image", FLOAT, [1, 3, 8, 8])],
        [(output, FLOAT, [1, 3])],
        notes=label_metadata(*labels) if labels else None,
    )


def bytes_echo(*labels: str) -> onnx.ModelProto:
    """Return the same for byte inputs."""
    return model(
        [
            helper.make_node("Cast", ["image"], ["floats"], to=FLOAT),
            helper.make_node("ReduceMean", ["floats"], ["means"], axes=[1, 2], keepdims=0),
            helper.make_node("Div", ["means", "full"], ["probability"]),
        ],
        [("image", TensorProto.UINT8, [1, 8, 8, 3])],
        [("probability", FLOAT, [1, 3])],
        {"full": np.array(255, np.float32)},
        label_metadata(*labels),
    )


def constant(
    outputs: Mapping[str, NDArray[Any]], *labels: str, side: int = 8, open_rows: bool = False
) -> onnx.ModelProto:
    """Return the same outputs whatever the image."""
    nodes = [helper.make_node("Identity", [f"{name}_"], [name]) for name in outputs]
    extents = {
        name: [*each.shape[:1], "n", *each.shape[2:]] if open_rows else each.shape
        for name, each in outputs.items()
    }
    return model(
        nodes,
        [("image", TensorProto.UINT8, [1, side, side, 3])],
        [
            (name, helper.np_dtype_to_tensor_dtype(each.dtype), extents[name])
            for name, each in outputs.items()
        ],
        {f"{name}_": each for name, each in outputs.items()},
        label_metadata(*labels) if labels else None,
    )


def detector(rows: Rows, *labels: str, names: Sequence[str] = ()) -> onnx.ModelProto:
    """Return a detector with these scores and one box for all."""
    location, category, score = names or ("location", "category", "score")
    return constant(
        {
            location: np.array([[BOX] * len(rows)], np.float32),
            category: np.array([[each for each, _ in rows]], np.float32),
            score: np.array([[score for _, score in rows]], np.float32),
        },
        *labels,
    )


def solid(red: int, green: int, blue: int, width: int = 16, height: int = 8) -> Pixels:
    return np.full((height, width, 3), (blue, green, red), np.uint8)


class Still(FrameCamera):
    """Shows the pixels that it is given."""

    def __init__(self, name: str = "eye", optics: Optics | None = None, **pictures: Pixels) -> None:
        super().__init__(ResourceName(CAMERA, name), optics or Optics(), sources=tuple(pictures))
        self.clock = ManualClock(1000.0)
        self.pictures = {key: Image(value, self.workers) for key, value in pictures.items()}
        self.asked: list[Sequence[str]] = []
        self._news = asyncio.Event()

    async def wait_for_requests(self, times: int) -> None:
        while len(self.asked) < times:
            self._news.clear()
            await self._news.wait()

    def show(self, pixels: Pixels, source: str = "color") -> None:
        self.pictures[source] = Image(pixels, self.workers)

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        self.check_sources(sources)
        self.asked.append(sources)
        self._news.set()
        return [
            Frame(self.pictures[source], self.clock.time(), source)
            for source in sources or self.sources
        ]


class SdkModel(MLModel):
    """A model as others write it with the SDK: it returns the mean of each channel."""

    def __init__(self, name: str = "model", **inputs: Sequence[int]) -> None:
        super().__init__(name)
        self.inputs = inputs or {"image": (1, 8, 8, 3)}
        self.data_type = "float32"
        self.labels: dict[str, Any] = {"names": ["red", "green", "blue"]}
        self.given: list[dict[str, NDArray[Any]]] = []
        self.held: asyncio.Event | None = None
        """Where it is set, it answers once the event is."""
        self.news = asyncio.Event()
        self.fault: Exception | None = None

    async def infer(
        self, input_tensors: dict[str, NDArray[Any]], *, timeout: float | None = None, **_: Any
    ) -> dict[str, NDArray[Any]]:
        self.given.append(input_tensors)
        self.news.set()
        if self.held is not None:
            await self.held.wait()
        if self.fault is not None:
            raise self.fault
        (tensor,) = input_tensors.values()
        return {"probability": tensor.mean((1, 2)).astype(np.float32)}

    async def metadata(self, *, timeout: float | None = None, **_: Any) -> Metadata:
        from cogwork.resource.messages.structs import to_struct

        return Metadata(
            name="theirs",
            input_info=[
                TensorInfo(name=name, data_type=self.data_type, shape=shape)
                for name, shape in self.inputs.items()
            ],
            output_info=[
                TensorInfo(
                    name="probability",
                    data_type="float32",
                    shape=[1, 3],
                    extra=to_struct(self.labels),
                )
            ],
        )


class Workshop:
    """Builds services and their dependencies, and closes all of them."""

    def __init__(self, directory: Path, stack: AsyncExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._models = ModelCache(SystemClock())
        self._count = 0

    async def model(self, made: onnx.ModelProto | Path, **attributes: Any) -> OnnxModel:
        if not isinstance(made, Path):
            self._count += 1
            made = save_model(self._directory / f"made-{self._count}.onnx", made)
        wanted = OnnxAttributes(model_path=str(made), num_threads=1, **attributes)
        name = ResourceName(MODEL, "model")
        built = await OnnxModel.new(name, wanted, {}, self._models)
        self._stack.push_async_callback(built.close)
        return built

    async def vision(
        self,
        made: onnx.ModelProto | Path | MLModel,
        *cameras: Any,
        name: str = "v",
        **attributes: Any,
    ) -> MlmodelVision:
        """Build a vision service; the cameras are its dependencies."""
        held = made if isinstance(made, MLModel) else await self.model(made)
        wanted = MlmodelVisionAttributes(mlmodel_name="model", **attributes)
        dependencies = {ResourceName(MODEL, "model"): held} | {
            ResourceName(CAMERA, each.name): each for each in cameras
        }
        built = await MlmodelVision.new(ResourceName(VISION, name), wanted, dependencies)
        self._stack.push_async_callback(built.close)
        return built

    def still(self, name: str = "eye", optics: Optics | None = None, **pictures: Pixels) -> Still:
        pictures = pictures or {"color": solid(255, 204, 153)}
        return self.close_later(Still(name, optics, **pictures))

    async def transform(
        self, name: str, source: Any, *steps: Mapping[str, Any], services: Sequence[Any] = ()
    ) -> TransformCamera:
        given = {"source": source.name, "pipeline": list(steps)}
        dependencies = {ResourceName(CAMERA, source.name): source} | {
            ResourceName(VISION, each.name): each for each in services
        }
        return self.close_later(
            await TransformCamera.new(
                ResourceName(CAMERA, name),
                TransformAttributes.model_validate(given),
                dependencies,
                ManualClock(1000.0),
            )
        )

    def close_later(self, resource: T) -> T:
        self._stack.push_async_callback(resource.close)
        return resource


@asynccontextmanager
async def workshop(directory: Path) -> AsyncIterator[Workshop]:
    async with AsyncExitStack() as stack:
        yield Workshop(directory, stack)
