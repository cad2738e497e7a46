"""A vision service on top of an ML model: preprocess, infer, decode, filter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from numpy.typing import NDArray
from viam.proto.service.vision import Classification, Detection

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.errors import CogworkError, InvalidRequest
from cogwork.drivers.mlmodel.engine import RunFunction
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import ImageFit
from cogwork.drivers.vision.capabilities import ModelCapabilities, determine_capabilities
from cogwork.drivers.vision.decoding.decoder import Tensors
from cogwork.drivers.vision.decoding.model_view import load_model_view
from cogwork.drivers.vision.frame_vision import FrameVision, VisionResult, find_default_camera
from cogwork.drivers.vision.postprocessing.explanation import (
    Explanation,
    FilteredClassification,
    FilteredDetection,
    StepTimes,
    explain_candidates,
    explain_scores,
)
from cogwork.drivers.vision.postprocessing.label_filter import (
    select_candidates,
    select_classifications,
    to_detections,
)
from cogwork.drivers.vision.preprocessing.input_plan import blank_image
from cogwork.drivers.vision.preprocessing.preprocessor import Preprocessor
from cogwork.drivers.vision.settings_check import find_ignored_labels, find_wrong_remaps
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.image import Pixels, decode_reduced
from cogwork.media.image_header import read_header
from cogwork.resource.frame import Frame
from cogwork.resource.model import find_dependency

T = TypeVar("T")

_TIMING_WINDOW = 20
"""Number of images that the times in the status are averaged over."""


class NoCapability(CogworkError):
    """The model is neither a detector nor a classifier, for the reasons given."""

    status = "FAILED_PRECONDITION"

    def __init__(
        self, model: str, capabilities: ModelCapabilities, fault: str | None = None
    ) -> None:
        """`fault` describes settings without effect, which may be why no capability was found."""
        super().__init__(
            f'model "{model}" does not fulfill any method of the vision service. It is neither a '
            f"detector ({capabilities.explain_unsupported('detector')}), nor a classifier "
            f"({capabilities.explain_unsupported('classifier')}), nor a 3D segmenter"
            f"{f'; {fault}' if fault else ''}"
        )
        self.capabilities = capabilities


@dataclass(slots=True)
class Timing:
    """Seconds per step, averaged over the last images."""

    images: int = 0
    prepare: float = 0.0
    infer: float = 0.0
    read: float = 0.0
    last: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def record(self, prepare: float, infer: float, read: float) -> None:
        self.images += 1
        share = 1 / min(self.images, _TIMING_WINDOW)
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
        capabilities: ModelCapabilities,
        camera: tuple[str, Any] | None,
        clock: Clock,
        fault: str | None = None,
        ignored_settings: Sequence[str] = (),
    ) -> None:
        super().__init__(name, clock, camera=camera)
        self._attributes = attributes
        self._model = model
        self._capabilities = capabilities
        assert capabilities.plan is not None  # a model without a plan has no role
        self._plan = capabilities.plan
        self._preprocessor = Preprocessor(self._plan)
        self._timing = Timing()
        self.fault = fault
        """What is wrong with the names that are mapped, in sentences; None if nothing is."""
        self.ignored_settings = tuple(ignored_settings)
        """The settings that have no effect on this model, in sentences."""
        self._drops_detections = False

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: MlmodelVisionAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> MlmodelVision:
        model = find_dependency(dependencies, attributes.mlmodel_name)
        camera = find_default_camera(attributes.camera_name, dependencies)
        view = await load_model_view(model, attributes)
        capabilities = determine_capabilities(view, attributes)
        fault = "; ".join(find_wrong_remaps(view, attributes)) or None
        if not capabilities.has_any:
            raise NoCapability(attributes.mlmodel_name, capabilities, fault)
        clock = clock or SystemClock()
        ignored = tuple(find_ignored_labels(attributes, view.labels))
        vision = cls(name, attributes, model, capabilities, camera, clock, fault, ignored)
        try:
            await vision.probe()
        except BaseException:
            await vision.close()
            raise
        return vision

    @property
    def capabilities(self) -> ModelCapabilities:
        return self._capabilities

    @property
    def is_detector(self) -> bool:
        return self._capabilities.detector is not None

    @property
    def is_classifier(self) -> bool:
        return self._capabilities.classifier is not None

    def explain_unsupported(self, role: str) -> str:
        return self._capabilities.explain_unsupported(role)

    async def probe(self) -> None:
        """Run the model on a black image, and drop the roles whose outputs cannot be decoded."""
        image = blank_image(self._plan)
        self._capabilities = await self._run_with_engine(
            lambda run: self._probe_capabilities(image, run)
        )
        if not self._capabilities.has_any:
            raise NoCapability(self._attributes.mlmodel_name, self._capabilities, self.fault)
        self.logger.info(
            "model %s %s; it receives images in this format: %s",
            self._attributes.mlmodel_name,
            self._capabilities,
            self._plan,
        )
        for each in (self.fault, *self.ignored_settings):
            if each is not None:
                self.logger.warning("%s", each)

    async def analyze_frame(self, frame: Frame) -> VisionResult:
        return await self._run_with_engine(
            lambda run: self._analyze_pixels(frame.pixels, frame.width, frame.height, run)
        )

    async def explain_frame(self, frame: Frame) -> VisionResult:
        return await self._run_with_engine(
            lambda run: self._analyze_pixels(
                frame.pixels, frame.width, frame.height, run, explain=True
            )
        )

    async def analyze_image(self, data: bytes) -> VisionResult:
        """Decode and analyze the image in the engine's thread. Decode it at a reduced size if that
        is enough for the model."""
        return await self._run_with_engine(lambda run: self._analyze_bytes(data, run))

    async def do_command(self, command: Mapping[str, Any], **_: Any) -> Mapping[str, Any]:
        if command.get("inspect"):
            return self._capabilities.to_dict()
        raise InvalidRequest(
            f'vision service "{self.name}" supports one command, which explains how the outputs '
            'are decoded: {"inspect": true}'
        )

    async def get_status(self, **_: Any) -> Mapping[str, Any]:
        timing = self._timing
        return {
            "model": self._attributes.mlmodel_name,
            "pictures": timing.images,
            "skipped": self.skipped,
            "milliseconds": {
                "prepare": round(timing.prepare * 1e3, 3),
                "infer": round(timing.infer * 1e3, 3),
                "read": round(timing.read * 1e3, 3),
            },
            "last_milliseconds": dict(
                zip(("prepare", "infer", "read"), (1e3 * t for t in timing.last), strict=True)
            ),
            **self.point_cloud_status,
            **self._capabilities.to_dict(),
        }

    def _analyze_bytes(self, data: bytes, run: RunFunction) -> VisionResult:
        header = read_header(data)
        width = self._plan.width or header.width
        height = self._plan.height or header.height
        pixels = decode_reduced(data, header, width, height)
        return self._analyze_pixels(pixels, header.width, header.height, run)

    def _analyze_pixels(
        self,
        pixels: Pixels,
        width: int,
        height: int,
        run: RunFunction,
        *,
        explain: bool = False,
    ) -> VisionResult:
        """Analyze pixels in the engine's thread without intermediate copies. `pixels` may be a
        reduced version of an image of the given size."""
        start = time.perf_counter()
        with self._preprocessor.prepared(pixels) as (tensor, fit):
            prepared = time.perf_counter()
            tensors = run({self._plan.name: tensor})
            inferred = time.perf_counter()
            outputs = self._capabilities.rename_outputs(tensors)
            found = self._decode(outputs, fit, width, height)
            ended = time.perf_counter()
            if explain:
                times = StepTimes(prepared - start, inferred - prepared, ended - inferred)
                explanation = self._explain(outputs, fit, width, height, times)
                found = replace(found, explanation=explanation)
        self._timing.record(prepared - start, inferred - prepared, ended - inferred)
        return found

    def _decode(self, outputs: Tensors, fit: ImageFit, width: int, height: int) -> VisionResult:
        capabilities, settings = self._capabilities, self._attributes
        detections: list[Detection] = []
        classifications: list[Classification] = []
        if capabilities.detector is not None:
            candidates = capabilities.detector.decode(outputs, fit)
            selected, dropped = select_candidates(candidates, capabilities.labels, settings)
            self._report_dropped(dropped)
            detections = to_detections(selected, capabilities.labels, width, height)
        if capabilities.classifier is not None:
            scores = capabilities.classifier.decode(outputs)
            classifications = select_classifications(scores, capabilities.labels, settings, 0)
        return VisionResult(detections, classifications)

    def _explain(
        self, outputs: Tensors, fit: ImageFit, width: int, height: int, times: StepTimes
    ) -> Explanation:
        """Decode the outputs again without the minimum confidences.

        Decoders apply the minimum confidences first to save time, so the results that they
        removed are unknown.
        """
        capabilities, settings = self._capabilities, self._attributes
        detections: list[FilteredDetection] = []
        classifications: list[FilteredClassification] = []
        if capabilities.detector is not None and capabilities.unfiltered_detector is not None:
            candidates = capabilities.unfiltered_detector.decode(outputs, fit)
            detections = explain_candidates(
                candidates, capabilities.labels, settings, width, height
            )
        if capabilities.classifier is not None:
            scores = capabilities.classifier.decode(outputs)
            classifications = explain_scores(scores, capabilities.labels, settings)
        return Explanation(detections, classifications, settings, times)

    def _report_dropped(self, count: int) -> None:
        """Log when the service begins to drop detections, but not for each image."""
        if count > 0 and not self._drops_detections:
            self.logger.warning(
                "%d detections of an image were dropped: `max_detections` is %d",
                count,
                self._attributes.max_detections,
            )
        self._drops_detections = count > 0

    def _probe_capabilities(self, image: Pixels, run: RunFunction) -> ModelCapabilities:
        with self._preprocessor.prepared(image) as (tensor, fit):
            tensors = self._capabilities.rename_outputs(run({self._plan.name: tensor}))
            return self._capabilities.verify(tensors, fit)

    async def _run_with_engine(self, work: Callable[[RunFunction], T]) -> T:
        if isinstance(self._model, EngineModel):
            return await self._model.run_with_engine(work)
        # A remote model is awaited on the event loop; the steps around it run in a thread.
        loop = asyncio.get_running_loop()
        replies: list[Future[dict[str, NDArray[Any]]]] = []
        is_cancelled = False

        def run(tensors: Tensors) -> dict[str, NDArray[Any]]:
            copies = {name: tensor.copy() for name, tensor in tensors.items()}
            infer: Coroutine[Any, Any, dict[str, NDArray[Any]]] = self._model.infer(copies)
            reply = asyncio.run_coroutine_threadsafe(infer, loop)
            replies.append(reply)
            if is_cancelled:
                reply.cancel()
            return reply.result()

        try:
            return await self.workers.run(work, run)
        except asyncio.CancelledError:
            # Cancel the requests to the model. Otherwise, the worker thread would wait for the
            # replies.
            is_cancelled = True
            for reply in replies:
                reply.cancel()
            raise
