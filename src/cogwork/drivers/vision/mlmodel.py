"""Boxes and labels from an ML model: prepare, infer, read, choose."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from numpy.typing import NDArray

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.engine import Run
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Fit
from cogwork.drivers.vision.choose import classifications, detections
from cogwork.drivers.vision.frame_vision import Found, FrameVision, default_camera
from cogwork.drivers.vision.input_plan import blank
from cogwork.drivers.vision.model_view import view_of
from cogwork.drivers.vision.prepare import Preparer
from cogwork.drivers.vision.reading import Tensors
from cogwork.drivers.vision.roles import Roles, roles_of
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.image import Pixels, decode_for
from cogwork.resource.image_header import read_header
from cogwork.resource.model import named

T = TypeVar("T")

_AVERAGED_OVER = 20
"""Pictures, for the times in the status."""


class NoRole(CogworkError):
    """A model that is neither a detector nor a classifier, and why."""

    status = "FAILED_PRECONDITION"

    def __init__(self, model: str, roles: Roles) -> None:
        super().__init__(
            f'model "{model}" does not fulfill any method of the vision service. It is neither a '
            f"detector ({roles.why_not('detector')}), nor a classifier "
            f"({roles.why_not('classifier')}), nor a 3D segmenter"
        )
        self.roles = roles


@dataclass(slots=True)
class Timing:
    """Seconds of each step, averaged over the last pictures."""

    pictures: int = 0
    prepare: float = 0.0
    infer: float = 0.0
    read: float = 0.0
    last: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def count(self, prepare: float, infer: float, read: float) -> None:
        self.pictures += 1
        share = 1 / min(self.pictures, _AVERAGED_OVER)
        self.prepare += share * (prepare - self.prepare)
        self.infer += share * (infer - self.infer)
        self.read += share * (read - self.read)
        self.last = (prepare, infer, read)


class MlmodelVision(FrameVision):
    def __init__(
        self,
        name: ResourceName,
        attributes: MlmodelVisionAttributes,
        model: Any,
        roles: Roles,
        camera: tuple[str, Any] | None,
        clock: Clock,
    ) -> None:
        super().__init__(name, clock, camera=camera)
        self._attributes = attributes
        self._model = model
        self._roles = roles
        assert roles.plan is not None  # there is no role without one
        self._plan = roles.plan
        self._preparer = Preparer(self._plan)
        self._timing = Timing()

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: MlmodelVisionAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> MlmodelVision:
        model = named(dependencies, attributes.mlmodel_name)
        camera = default_camera(attributes.camera_name, dependencies)
        roles = roles_of(await view_of(model, attributes), attributes)
        if not roles.any:
            raise NoRole(attributes.mlmodel_name, roles)
        vision = cls(name, attributes, model, roles, camera, clock or SystemClock())
        try:
            await vision.probe()
        except BaseException:
            await vision.close()
            raise
        return vision

    @property
    def roles(self) -> Roles:
        return self._roles

    @property
    def detects(self) -> bool:
        return self._roles.detector is not None

    @property
    def classifies(self) -> bool:
        return self._roles.classifier is not None

    def why_not(self, role: str) -> str:
        return self._roles.why_not(role)

    async def probe(self) -> None:
        """One run on a black picture: what cannot be read then is no role of the model's."""
        picture = blank(self._plan)
        self._roles = await self._work(lambda run: self._probed(picture, run))
        if not self._roles.any:
            raise NoRole(self._attributes.mlmodel_name, self._roles)
        self.logger.info("model %s is %s", self._attributes.mlmodel_name, self._roles)

    async def find(self, frame: Frame) -> Found:
        return await self._work(
            lambda run: self._look_at(frame.pixels, frame.width, frame.height, run)
        )

    async def find_in(self, data: bytes) -> Found:
        """Decoded where it is used, and no finer than the model looks at it."""
        return await self._work(lambda run: self._look_at_image(data, run))

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        if command.get("inspect"):
            return self._roles.described()
        raise NotImplementedError(
            'the commands of this service: {"inspect": true} tells how the model is read, and why'
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        timing = self._timing
        return {
            "model": self._attributes.mlmodel_name,
            "pictures": timing.pictures,
            "skipped": self.skipped,
            "milliseconds": {
                "prepare": round(timing.prepare * 1e3, 3),
                "infer": round(timing.infer * 1e3, 3),
                "read": round(timing.read * 1e3, 3),
            },
            "last_milliseconds": dict(
                zip(("prepare", "infer", "read"), (1e3 * t for t in timing.last), strict=True)
            ),
            **self._roles.described(),
        }

    def _look_at_image(self, data: bytes, run: Run) -> Found:
        header = read_header(data)
        width = self._plan.width or header.width
        height = self._plan.height or header.height
        pixels = decode_for(data, header, width, height)
        return self._look_at(pixels, header.width, header.height, run)

    def _look_at(self, pixels: Pixels, width: int, height: int, run: Run) -> Found:
        """In the engine's thread: from pixels to what was found, without a copy in between. The
        picture itself may be larger than its pixels here."""
        start = time.perf_counter()
        with self._preparer.prepared(pixels) as (tensor, fit):
            prepared = time.perf_counter()
            tensors = run({self._plan.name: tensor})
            inferred = time.perf_counter()
            found = self._read(tensors, fit, width, height)
        ended = time.perf_counter()
        self._timing.count(prepared - start, inferred - prepared, ended - inferred)
        return found

    def _read(self, tensors: Tensors, fit: Fit, width: int, height: int) -> Found:
        roles, settings = self._roles, self._attributes
        given = roles.renamed(tensors)
        return Found(
            detections(roles.detector.read(given, fit), roles.labels, settings, width, height)
            if roles.detector is not None
            else None,
            classifications(roles.classifier.read(given), roles.labels, settings, 0)
            if roles.classifier is not None
            else None,
        )

    def _probed(self, picture: Pixels, run: Run) -> Roles:
        with self._preparer.prepared(picture) as (tensor, fit):
            tensors = self._roles.renamed(run({self._plan.name: tensor}))
            return self._roles.tried(tensors, fit)

    async def _work(self, work: Callable[[Run], T]) -> T:
        if isinstance(self._model, EngineModel):
            return await self._model.work(work)
        # A model elsewhere is awaited; what is done before and after blocks a thread, not the loop.
        loop = asyncio.get_running_loop()
        answers: list[Future[dict[str, NDArray[Any]]]] = []
        given_up = False

        def run(tensors: Tensors) -> dict[str, NDArray[Any]]:
            copies = {name: tensor.copy() for name, tensor in tensors.items()}
            infer: Coroutine[Any, Any, dict[str, NDArray[Any]]] = self._model.infer(copies)
            answer = asyncio.run_coroutine_threadsafe(infer, loop)
            answers.append(answer)
            if given_up:
                answer.cancel()
            return answer.result()

        try:
            return await self.workers.run(work, run)
        except asyncio.CancelledError:
            # Else the thread would wait for as long as the model likes.
            given_up = True
            for answer in answers:
                answer.cancel()
            raise
