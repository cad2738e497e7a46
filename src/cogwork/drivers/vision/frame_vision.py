"""What the built-in vision services share: the SDK's contract, answered from frames."""

from __future__ import annotations

import abc
import asyncio
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from viam.media.video import ViamImage
from viam.proto.common import PointCloudObject
from viam.proto.service.vision import Classification, Detection, Detection3D
from viam.services.vision import CaptureAllResult, Vision

from cogwork.core.clock import Clock
from cogwork.core.errors import CogworkError, Unsupported
from cogwork.core.newest import Newest, NewestOfEach
from cogwork.core.workers import Workers
from cogwork.drivers.camera.frame_camera import FrameImage
from cogwork.drivers.vision.choose import Classified, Detected
from cogwork.drivers.vision.objects import Scenery, objects_of, places_of
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame, Picture, frames_of, picture_of
from cogwork.resource.model import logger_of, named
from cogwork.resource.vision_service import NoCamera, Seen, Wishes

_MANY = 2000
"""Messages that would keep the loop for some milliseconds."""


class Unsuitable(CogworkError):
    """A camera that cannot be looked through."""

    status = "FAILED_PRECONDITION"


@runtime_checkable
class Draws(Protocol):
    """A camera that may show what a vision service found, drawn on its pictures."""

    @property
    def drawn_by(self) -> str | None:
        """Which service, wherever in a chain of cameras it draws."""


@dataclass(frozen=True, slots=True)
class Found:
    """In one picture. None: the service does not look for it."""

    detections: Sequence[Detected] | None = None
    """The surest first."""
    classifications: Sequence[Classified] | None = None
    """The surest first."""
    extra: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """What was found, in messages: made once, however many are told."""

    found: Found
    detections: Sequence[Detection]
    classifications: Sequence[Classification]

    @classmethod
    def of(cls, found: Found) -> Told:
        return cls(found, _boxes(found.detections or ()), _labels(found.classifications or ()))

    def surest(self, most: int) -> list[Classification]:
        """All of them if it is not above 0."""
        return list(self.classifications[: most if most > 0 else None])


class FrameVision(Vision):
    """A service that has `find`; everything else follows from it."""

    def __init__(
        self,
        name: ResourceName,
        clock: Clock,
        *,
        camera: tuple[str, Any] | None = None,
    ) -> None:
        """`camera`: the name and the camera of calls that name none."""
        super().__init__(name.name, logger=logger_of(name))
        self.workers = Workers(f"vision {name.short}", threads=2)
        self._clock = clock
        self._camera = camera
        # Of each camera, and of each picture: as long as somebody has it.
        self._decoded: weakref.WeakKeyDictionary[Any, NewestOfEach[Frame]]
        self._decoded = weakref.WeakKeyDictionary()
        self._pictures: weakref.WeakKeyDictionary[Picture, Newest[Told]]
        self._pictures = weakref.WeakKeyDictionary()
        self._newest: NewestOfEach[tuple[Frame, Told]] = NewestOfEach()
        self.skipped = 0
        """Pictures that were there to be looked at while an older one was."""

    @property
    def default_camera(self) -> str | None:
        return self._camera[0] if self._camera is not None else None

    @property
    @abc.abstractmethod
    def detects(self) -> bool: ...

    @property
    @abc.abstractmethod
    def classifies(self) -> bool: ...

    @abc.abstractmethod
    def why_not(self, role: str) -> str:
        """Why it is no `detector` or `classifier`."""

    @abc.abstractmethod
    async def find(self, frame: Frame) -> Found:
        """Everything there is to find, of both roles."""

    async def look(self, camera: Any, camera_name: str, wishes: Wishes) -> Seen:
        self._check(wishes)
        _refuse_drawn(camera, camera_name)
        in_depth = (wishes.objects or wishes.detections_3d) and self.detects
        decoded = self._decoded.setdefault(camera, NewestOfEach())
        frames = await frames_of(
            camera, self.workers, self._clock, _sources(camera, in_depth), decoded
        )
        colour = next((frame for frame in frames if not frame.is_depth), None)
        if colour is None:
            raise Unsuitable(f'camera "{camera_name}" gives no picture in colour')
        frame, told = colour, Told(Found(), (), ())
        scenery = await self._scenery(camera, frames, wishes) if in_depth else None
        if in_depth:
            # What others wait for may be of a moment before this depth.
            told = await self._told_of(colour)
        elif self._has_answers(wishes):
            frame, told = await self._newest_of(camera_name, colour)
            self.skipped += frame.picture is not colour.picture
        objects: Sequence[PointCloudObject] = ()
        places: Sequence[Detection3D] = ()
        if scenery is not None:
            detections = told.found.detections or ()
            if wishes.objects:
                objects = await self.workers.run(objects_of, detections, scenery, camera_name)
            if wishes.detections_3d:
                places = await self.workers.run(places_of, detections, scenery, camera_name)
        return Seen(
            frame,
            detections=told.detections if wishes.detections else (),
            classifications=(
                told.surest(wishes.most_classifications) if wishes.classifications else ()
            ),
            objects=objects,
            detections_3d=places,
            extra=told.found.extra,
        )

    async def detections_in(self, frame: Frame) -> list[Detection]:
        self._check(Wishes(detections=True))
        return list((await self._told_of(frame)).detections)

    async def classifications_in(self, frame: Frame, most: int) -> list[Classification]:
        self._check(Wishes(classifications=True))
        return (await self._told_of(frame)).surest(most)

    async def find_in(self, data: bytes) -> Found:
        """In somebody's JPEG or PNG."""
        picture = await self.workers.run(picture_of, data, self.workers)
        return await self.find(Frame(picture, self._clock.time()))

    async def get_detections(self, image: ViamImage, **_: Any) -> list[Detection]:
        self._check(Wishes(detections=True))
        return list((await self._told(await self.find_in(image.data))).detections)

    async def get_classifications(
        self, image: ViamImage, count: int = 0, **_: Any
    ) -> list[Classification]:
        self._check(Wishes(classifications=True))
        return (await self._told(await self.find_in(image.data))).surest(count)

    async def get_detections_from_camera(self, camera_name: str, **_: Any) -> list[Detection]:
        seen = await self._look_by_default(camera_name, Wishes(detections=True))
        return list(seen.detections)

    async def get_classifications_from_camera(
        self, camera_name: str, count: int = 0, **_: Any
    ) -> list[Classification]:
        wishes = Wishes(classifications=True, most_classifications=count)
        return list((await self._look_by_default(camera_name, wishes)).classifications)

    async def get_object_point_clouds(self, camera_name: str, **_: Any) -> list[PointCloudObject]:
        return list((await self._look_by_default(camera_name, Wishes(objects=True))).objects)

    async def get_detections_3d(self, camera_name: str, **_: Any) -> list[Detection3D]:
        seen = await self._look_by_default(camera_name, Wishes(detections_3d=True))
        return list(seen.detections_3d)

    async def capture_all_from_camera(
        self,
        camera_name: str,
        return_image: bool = False,
        return_classifications: bool = False,
        return_detections: bool = False,
        return_object_point_clouds: bool = False,
        return_detections_3d: bool = False,
        **_: Any,
    ) -> CaptureAllResult:
        wishes = Wishes(
            return_detections,
            return_classifications,
            return_object_point_clouds,
            return_detections_3d,
            optional=True,
        )
        seen = await self._look_by_default(camera_name, wishes)
        image: FrameImage | None = None
        if return_image:
            kind = seen.frame.usual_type
            image = FrameImage(seen.frame, await seen.frame.encoded(kind), kind)
        return CaptureAllResult(
            image,
            list(seen.classifications) if return_classifications else None,
            list(seen.detections) if return_detections else None,
            list(seen.objects) if return_object_point_clouds else None,
            list(seen.detections_3d) if return_detections_3d else None,
            seen.extra,
        )

    async def get_properties(self, **_: Any) -> Vision.Properties:
        return Vision.Properties(
            classifications_supported=self.classifies,
            detections_supported=self.detects,
            object_point_clouds_supported=self.detects,
            default_camera=self.default_camera,
            detections_3d_supported=self.detects,
        )

    async def close(self) -> None:
        await self._newest.aclose()
        for found in list(self._pictures.values()):
            await found.aclose()
        for decoded in list(self._decoded.values()):
            await decoded.aclose()
        self.workers.close()

    def _check(self, wishes: Wishes) -> None:
        if wishes.optional:
            return
        if wishes.classifications and not self.classifies:
            raise Unsupported(
                f'vision model "{self.name}" does not implement a Classifier: '
                f"{self.why_not('classifier')}"
            )
        if (wishes.detections or wishes.objects or wishes.detections_3d) and not self.detects:
            kind = "Detector" if wishes.detections else "3D segmenter"
            raise Unsupported(
                f'vision model "{self.name}" does not implement a {kind}: '
                f"{self.why_not('detector')}"
            )

    def _has_answers(self, wishes: Wishes) -> bool:
        return (wishes.detections and self.detects) or (wishes.classifications and self.classifies)

    async def _told(self, found: Found) -> Told:
        count = len(found.detections or ()) + len(found.classifications or ())
        return Told.of(found) if count < _MANY else await self.workers.run(Told.of, found)

    async def _told_of(self, frame: Frame) -> Told:
        """Found once for each picture, however many ask, through whichever cameras."""

        async def find() -> Told:
            return await self._told(await self.find(frame))

        told = self._pictures.setdefault(frame.picture, Newest())
        return await told.of(None, lambda: asyncio.ensure_future(find()))

    async def _newest_of(self, camera_name: str, frame: Frame) -> tuple[Frame, Told]:
        """Where the camera is quicker than the service, pictures are left out."""

        async def find() -> tuple[Frame, Told]:
            return frame, await self._told_of(frame)

        return await self._newest.of(
            camera_name, frame.picture, lambda: asyncio.ensure_future(find())
        )

    async def _scenery(
        self, camera: Any, frames: Sequence[Frame], wishes: Wishes
    ) -> Scenery | None:
        depth = next((frame for frame in frames if frame.is_depth), None)
        if depth is None:
            if wishes.optional:
                return None
            raise Unsuitable("there are no point clouds of objects: the camera does not see depth")
        properties = await camera.get_properties()
        scenery = Scenery(depth.pixels, properties.intrinsic_parameters)
        if scenery.intrinsics is None and not wishes.optional:
            raise Unsuitable(
                "there are no point clouds of objects: the camera does not tell its "
                f"intrinsic_parameters for {depth.width}x{depth.height}"
            )
        return scenery

    async def _look_by_default(self, camera_name: str, wishes: Wishes) -> Seen:
        """For callers in this process, who know no other camera than the service itself."""
        if self._camera is None or camera_name not in ("", self._camera[0]):
            raise NoCamera(f'the service "{self.name}" has not been given a camera "{camera_name}"')
        name, camera = self._camera
        return await self.look(camera, name, wishes)


def default_camera(name: str | None, dependencies: Dependencies) -> tuple[str, Any] | None:
    return (name, named(dependencies, name)) if name else None


def _sources(camera: Any, in_depth: bool) -> Sequence[str]:
    """A camera of ours that sees depth need not draw it for those who do not want it."""
    known: Sequence[str] = getattr(camera, "sources", ())
    return ("color",) if not in_depth and "color" in known and len(known) > 1 else ()


def _refuse_drawn(camera: Any, camera_name: str) -> None:
    if isinstance(camera, Draws) and camera.drawn_by is not None:
        raise Unsuitable(
            f'camera "{camera_name}" shows what vision service "{camera.drawn_by}" has drawn on '
            "its pictures: look through its source instead"
        )


def _boxes(detections: Sequence[Detected]) -> list[Detection]:
    return [
        Detection(
            x_min=each.x_min,
            y_min=each.y_min,
            x_max=each.x_max,
            y_max=each.y_max,
            confidence=each.confidence,
            class_name=each.label,
            x_min_normalized=each.x_min_normalized,
            y_min_normalized=each.y_min_normalized,
            x_max_normalized=each.x_max_normalized,
            y_max_normalized=each.y_max_normalized,
        )
        for each in detections
    ]


def _labels(classifications: Sequence[Classified]) -> list[Classification]:
    return [
        Classification(class_name=each.label, confidence=each.confidence)
        for each in classifications
    ]
