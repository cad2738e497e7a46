"""Base class of the built-in vision services: implements the SDK's interface on frames."""

from __future__ import annotations

import abc
import asyncio
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from viam.media.video import ViamImage
from viam.proto.common import PointCloudObject
from viam.proto.service.vision import Classification, Detection, Detection3D
from viam.services.vision import CaptureAllResult, Vision

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.core.single_flight import SingleFlight, SingleFlightGroup
from cogwork.core.workers import Workers
from cogwork.drivers.camera.frame_camera import encode_frame
from cogwork.drivers.vision.objects_3d import (
    DepthScene,
    build_detections_3d,
    build_point_clouds,
    explain_flat_scene,
)
from cogwork.drivers.vision.postprocessing.explanation import Explanation
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.annotated_camera import find_annotator
from cogwork.resource.frame import Frame, Image, decode_image, get_frames
from cogwork.resource.model import find_dependency, logger_of
from cogwork.resource.services.vision import EXPLAIN, FrameAnalyzer, NoCamera


class UnsuitableCamera(CogworkError):
    """The camera cannot be used for this vision call."""

    status = "FAILED_PRECONDITION"


@dataclass(frozen=True, slots=True)
class VisionQuery:
    """The kinds of results that a call asks for."""

    detections: bool = False
    classifications: bool = False
    objects: bool = False
    detections_3d: bool = False
    skip_unsupported: bool = False
    """Whether results that the model does not support are omitted instead of raising an error."""
    explain: bool = False
    """Whether to explain what was filtered out, if the service can."""


@dataclass(frozen=True, slots=True)
class VisionResult:
    """The results for one image as messages of the API, built once and shared by all callers."""

    detections: Sequence[Detection] = ()
    """The detections, highest confidence first."""
    classifications: Sequence[Classification] = ()
    """The classifications, highest confidence first."""
    objects: Sequence[PointCloudObject] = ()
    detections_3d: Sequence[Detection3D] = ()
    explanation: Explanation | None = None
    """None if no caller asked for an explanation, or if the service has none."""

    def top_classifications(self, most: int) -> list[Classification]:
        """Return the first `most` classifications, or all if `most` is not positive."""
        return list(self.classifications[: most if most > 0 else None])


class FrameVision(Vision, FrameAnalyzer):
    """A vision service that implements `analyze_frame`; all other calls build on it."""

    def __init__(
        self,
        name: ResourceName,
        clock: Clock,
        *,
        camera: tuple[str, Any] | None = None,
    ) -> None:
        """`camera` is the default camera: its name, and the camera itself or None if it is not
        ready."""
        super().__init__(name.name, logger=logger_of(name))
        self.workers = Workers(f"vision {name.short}", threads=2)
        self._clock = clock
        self._camera = camera
        # Weak keys: entries live as long as the camera or the image.
        self._decoded_frames: weakref.WeakKeyDictionary[Any, SingleFlightGroup[Frame]]
        self._decoded_frames = weakref.WeakKeyDictionary()
        self._results_by_image: weakref.WeakKeyDictionary[Image, SingleFlight[VisionResult]]
        self._results_by_image = weakref.WeakKeyDictionary()
        self._explained_by_image: weakref.WeakKeyDictionary[Image, SingleFlight[VisionResult]]
        self._explained_by_image = weakref.WeakKeyDictionary()
        self._latest_by_camera: SingleFlightGroup[tuple[Frame, VisionResult]] = SingleFlightGroup()
        self._latest_explained: SingleFlightGroup[tuple[Frame, VisionResult]] = SingleFlightGroup()
        self._flat_scene: str | None = None
        """Why no object in the last depth image has a point cloud."""
        self.skipped = 0
        """Number of images that were skipped because an older one was still being analyzed."""

    @property
    def point_cloud_status(self) -> Mapping[str, str]:
        """The part of the status that explains an empty list of point clouds."""
        return {"no_point_clouds": self._flat_scene} if self._flat_scene is not None else {}

    @property
    def default_camera(self) -> str | None:
        return self._camera[0] if self._camera is not None else None

    @property
    @abc.abstractmethod
    def is_detector(self) -> bool: ...

    @property
    @abc.abstractmethod
    def is_classifier(self) -> bool: ...

    @abc.abstractmethod
    def explain_unsupported(self, role: str) -> str:
        """Explain why the service is not a `detector` or `classifier`."""

    @abc.abstractmethod
    async def analyze_frame(self, frame: Frame) -> VisionResult:
        """Return all results for the frame, for both roles."""

    async def explain_frame(self, frame: Frame) -> VisionResult:
        """Return the results for the frame, with an explanation if the service can give one."""
        return await self.analyze_frame(frame)

    async def detect_in_frame(self, frame: Frame) -> list[Detection]:
        self._check_supported(VisionQuery(detections=True))
        return list((await self._analyze_once(frame)).detections)

    async def classify_frame(self, frame: Frame, most: int) -> list[Classification]:
        self._check_supported(VisionQuery(classifications=True))
        return (await self._analyze_once(frame)).top_classifications(most)

    async def analyze_image(self, data: bytes) -> VisionResult:
        """Analyze an encoded JPEG or PNG image."""
        image = await self.workers.run(decode_image, data, self.workers)
        return await self.analyze_frame(Frame(image, self._clock.time()))

    async def get_detections(self, image: ViamImage, **_: Any) -> list[Detection]:
        self._check_supported(VisionQuery(detections=True))
        return list((await self.analyze_image(image.data)).detections)

    async def get_classifications(
        self, image: ViamImage, count: int = 0, **_: Any
    ) -> list[Classification]:
        self._check_supported(VisionQuery(classifications=True))
        return (await self.analyze_image(image.data)).top_classifications(count)

    async def get_detections_from_camera(
        self, camera_name: str, *, camera: Any = None, **_: Any
    ) -> list[Detection]:
        query = VisionQuery(detections=True)
        _frame, result = await self._analyze_camera(camera_name, camera, query)
        return list(result.detections)

    async def get_classifications_from_camera(
        self, camera_name: str, count: int = 0, *, camera: Any = None, **_: Any
    ) -> list[Classification]:
        query = VisionQuery(classifications=True)
        _frame, result = await self._analyze_camera(camera_name, camera, query)
        return result.top_classifications(count)

    async def get_object_point_clouds(
        self, camera_name: str, *, camera: Any = None, **_: Any
    ) -> list[PointCloudObject]:
        query = VisionQuery(objects=True)
        _frame, result = await self._analyze_camera(camera_name, camera, query)
        return list(result.objects)

    async def get_detections_3d(
        self, camera_name: str, *, camera: Any = None, **_: Any
    ) -> list[Detection3D]:
        query = VisionQuery(detections_3d=True)
        _frame, result = await self._analyze_camera(camera_name, camera, query)
        return list(result.detections_3d)

    async def capture_all_from_camera(
        self,
        camera_name: str,
        return_image: bool = False,
        return_classifications: bool = False,
        return_detections: bool = False,
        return_object_point_clouds: bool = False,
        return_detections_3d: bool = False,
        *,
        camera: Any = None,
        extra: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> CaptureAllResult:
        explain = extra is not None and extra.get(EXPLAIN) is True
        query = VisionQuery(
            return_detections,
            return_classifications,
            return_object_point_clouds,
            return_detections_3d,
            skip_unsupported=True,
            explain=explain,
        )
        frame, result = await self._analyze_camera(camera_name, camera, query)
        return CaptureAllResult(
            await encode_frame(frame) if return_image else None,
            list(result.classifications) if return_classifications else None,
            list(result.detections) if return_detections else None,
            list(result.objects) if return_object_point_clouds else None,
            list(result.detections_3d) if return_detections_3d else None,
            {EXPLAIN: result.explanation.to_dict(frame.captured_at)}
            if explain and result.explanation is not None
            else None,
        )

    async def get_properties(self, **_: Any) -> Vision.Properties:
        return Vision.Properties(
            classifications_supported=self.is_classifier,
            detections_supported=self.is_detector,
            object_point_clouds_supported=self.is_detector,
            default_camera=self.default_camera,
            detections_3d_supported=self.is_detector,
        )

    async def close(self) -> None:
        await self._latest_by_camera.aclose()
        await self._latest_explained.aclose()
        for found in [*self._results_by_image.values(), *self._explained_by_image.values()]:
            await found.aclose()
        for decoded in list(self._decoded_frames.values()):
            await decoded.aclose()
        self.workers.close()

    def _check_supported(self, query: VisionQuery) -> None:
        if query.skip_unsupported:
            return
        if query.classifications and not self.is_classifier:
            raise Unsupported(
                f'vision model "{self.name}" does not implement a Classifier: '
                f"{self.explain_unsupported('classifier')}"
            )
        if (query.detections or query.objects or query.detections_3d) and not self.is_detector:
            kind = "Detector" if query.detections else "3D segmenter"
            raise Unsupported(
                f'vision model "{self.name}" does not implement a {kind}: '
                f"{self.explain_unsupported('detector')}"
            )

    def _can_answer(self, query: VisionQuery) -> bool:
        return (query.detections and self.is_detector) or (
            query.classifications and self.is_classifier
        )

    async def _analyze_camera(
        self, camera_name: str, camera: Any, query: VisionQuery
    ) -> tuple[Frame, VisionResult]:
        """Return an image of the camera, and at least the results that the query asks for.

        `camera` is None if the caller knows only the name of the camera.
        """
        if camera is None:
            camera_name, camera = self._find_camera(camera_name)
        self._check_supported(query)
        in_depth = (query.objects or query.detections_3d) and self.is_detector
        decoded = self._decoded_frames.setdefault(camera, SingleFlightGroup())
        start = self._clock.monotonic() if query.explain else 0.0
        frames = await get_frames(
            camera, self.workers, self._clock, _select_sources(camera, in_depth), decoded
        )
        frame_seconds = self._clock.monotonic() - start if query.explain else 0.0
        # Only now, because a camera of a remote tells it with its images.
        _reject_annotated(camera, camera_name)
        color = next((frame for frame in frames if not frame.is_depth), None)
        if color is None:
            raise UnsuitableCamera(f'camera "{camera_name}" does not provide color images')
        if in_depth:
            scene = await self._load_depth_scene(camera, frames, query)
            # Do not call `_analyze_latest`, whose result may be of an image older than the depth
            # image.
            result = await self._analyze_once(color, query.explain)
            frame, result = color, await self._add_objects(result, scene, camera_name, query)
        elif not self._can_answer(query):
            return color, VisionResult()
        else:
            frame, result = await self._analyze_latest(camera_name, color, query.explain)
            self.skipped += frame.image is not color.image
        if query.explain and result.explanation is not None:
            explanation = replace(result.explanation, frame_seconds=frame_seconds)
            result = replace(result, explanation=explanation)
        return frame, result

    def _find_camera(self, name: str) -> tuple[str, Any]:
        """Return the default camera, the only camera that a service can find by its name."""
        if self._camera is None or name not in ("", self._camera[0]):
            raise NoCamera(f'vision service "{self.name}" has no camera "{name}"')
        if self._camera[1] is None:
            raise UnsuitableCamera(f'camera "{self._camera[0]}" is not available')
        return self._camera

    async def _analyze_once(self, frame: Frame, explain: bool = False) -> VisionResult:
        """Analyze each image once, even for several callers and through different cameras.

        A result with an explanation serves every caller. If a caller asks for an explanation and
        the result has none, analyze the image again, so that the result and its explanation come
        from the same inference.
        """
        results, analyze = self._results_by_image, self.analyze_frame
        explained = self._explained_by_image
        if explain or (explained and frame.image in explained):
            results, analyze = explained, self.explain_frame
        result = results.setdefault(frame.image, SingleFlight())
        return await result.get(None, lambda: asyncio.ensure_future(analyze(frame)))

    async def _analyze_latest(
        self, camera_name: str, frame: Frame, explain: bool
    ) -> tuple[Frame, VisionResult]:
        """Join the running analysis for the camera, or else analyze the frame."""

        async def find() -> tuple[Frame, VisionResult]:
            return frame, await self._analyze_once(frame, explain)

        latest = self._latest_explained if explain else self._latest_by_camera
        return await latest.get(camera_name, frame.image, lambda: asyncio.ensure_future(find()))

    async def _load_depth_scene(
        self, camera: Any, frames: Sequence[Frame], query: VisionQuery
    ) -> DepthScene | None:
        depth = next((frame for frame in frames if frame.is_depth), None)
        if depth is None:
            if query.skip_unsupported:
                return None
            raise UnsuitableCamera(
                "object point clouds are not available: the camera does not provide depth"
            )
        properties = await camera.get_properties()
        scene = DepthScene(depth.pixels, properties.intrinsic_parameters)
        if scene.intrinsics is None and not query.skip_unsupported:
            raise UnsuitableCamera(
                "object point clouds are not available: the camera does not report "
                f"intrinsic_parameters for {depth.width}x{depth.height}"
            )
        return scene

    async def _add_objects(
        self, result: VisionResult, scene: DepthScene | None, camera_name: str, query: VisionQuery
    ) -> VisionResult:
        if scene is None:
            return result
        found = (result.detections, scene, camera_name)
        run = self.workers.run
        objects = await run(build_point_clouds, *found) if query.objects else []
        detections_3d = await run(build_detections_3d, *found) if query.detections_3d else []
        is_flat = bool(result.detections) and not objects and not detections_3d
        reason = await run(explain_flat_scene, result.detections, scene) if is_flat else None
        self._report_flat_scene(reason)
        return replace(result, objects=objects, detections_3d=detections_3d)

    def _report_flat_scene(self, reason: str | None) -> None:
        """Log when detections begin to have no point clouds, but not for each image."""
        if reason is not None and self._flat_scene is None:
            self.logger.warning("%s", reason)
        self._flat_scene = reason


def find_default_camera(name: str | None, dependencies: Dependencies) -> tuple[str, Any] | None:
    """Return the name of the default camera and the camera itself, or None if no name is
    configured.

    The camera is None while it is not ready: calls that do not need the camera work without it.
    """
    if not name:
        return None
    try:
        return name, find_dependency(dependencies, name)
    except LookupError:
        return name, None


def _select_sources(camera: Any, in_depth: bool) -> Sequence[str]:
    """Select only the color source of a built-in depth camera if depth is not needed."""
    known: Sequence[str] = getattr(camera, "sources", ())
    return ("color",) if not in_depth and "color" in known and len(known) > 1 else ()


def _reject_annotated(camera: Any, camera_name: str) -> None:
    if (service := find_annotator(camera)) is not None:
        raise UnsuitableCamera(
            f'camera "{camera_name}" shows the results of vision service "{service}" on its '
            "images: use its source camera instead"
        )
