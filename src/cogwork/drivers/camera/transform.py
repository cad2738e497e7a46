"""A camera that shows what another one sees, changed."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.newest import NewestOfEach
from cogwork.drivers.camera.annotate import DrawnClassifications, DrawnDetections
from cogwork.drivers.camera.attributes import (
    ClassificationsAttributes,
    CropAttributes,
    DetectionsAttributes,
    ResizeAttributes,
    RotateAttributes,
    Step,
    TransformAttributes,
)
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.transforms import crop, resize, rotate
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame, Picture, Place, frames_of, places
from cogwork.resource.image import Pixels
from cogwork.resource.model import named

Stage = Callable[[Frame], Awaitable[Frame]]
"""One thing done to a picture. It may ask others, such as a vision service."""
Origin = weakref.ref[Picture]
"""Which picture was changed; it is not kept for that."""


class TransformCamera(FrameCamera):
    def __init__(
        self,
        name: ResourceName,
        attributes: TransformAttributes,
        dependencies: Dependencies,
        clock: Clock,
    ) -> None:
        # Whether its source sees depth shows in the pictures; a lens is only given for that.
        super().__init__(name, attributes, has_depth=attributes.intrinsic_parameters is not None)
        self._source = named(dependencies, attributes.source)
        self._clock = clock
        self._stages = [self._stage(step, dependencies) for step in attributes.pipeline]
        self._drawn_by = next(filter(None, map(_drawer, attributes.pipeline)), None)
        self._decoded: NewestOfEach[Frame] = NewestOfEach()
        self._changed: NewestOfEach[tuple[Origin, Frame]] = NewestOfEach()

    @classmethod
    async def new(
        cls,
        name: ResourceName,
        attributes: TransformAttributes,
        dependencies: Dependencies,
        clock: Clock | None = None,
    ) -> TransformCamera:
        return cls(name, attributes, dependencies, clock or SystemClock())

    @property
    def drawn_by(self) -> str | None:
        """Whose findings its pictures show, wherever in a chain of cameras they were drawn."""
        return self._drawn_by or getattr(self._source, "drawn_by", None)

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        seen = await frames_of(self._source, self.workers, self._clock, sources, self._decoded)
        each = zip(places(frame.source for frame in seen), seen, strict=True)
        return [await self._newest(place, frame) for place, frame in each]

    async def close(self) -> None:
        await self._decoded.aclose()
        await self._changed.aclose()
        await super().close()

    async def _newest(self, place: Place, seen: Frame) -> Frame:
        wanted = weakref.ref(seen.picture)
        origin, changed = await self._changed.of(
            place, wanted, lambda: asyncio.ensure_future(self._change(seen))
        )
        return changed.seen_at(seen.captured_at) if origin is wanted else changed

    async def _change(self, frame: Frame) -> tuple[Origin, Frame]:
        origin = weakref.ref(frame.picture)
        for stage in self._stages:
            frame = await stage(frame)
        return origin, frame

    def _stage(self, step: Step, dependencies: Dependencies) -> Stage:
        match step:
            case RotateAttributes(attributes=by):
                return self._on_pixels(partial(rotate, degrees=by.angle_degs))
            case ResizeAttributes(attributes=to):
                return self._on_pixels(partial(resize, width=to.width_px, height=to.height_px))
            case CropAttributes(attributes=to):
                return self._on_pixels(
                    partial(
                        crop,
                        x_min=to.x_min_px,
                        y_min=to.y_min_px,
                        x_max=to.x_max_px,
                        y_max=to.y_max_px,
                        overlay=to.overlay_crop_box,
                    )
                )
            case DetectionsAttributes(attributes=by):
                detector = named(dependencies, by.detector_name)
                return DrawnDetections(detector, by, self.workers)
            case ClassificationsAttributes(attributes=by):
                classifier = named(dependencies, by.classifier_name)
                return DrawnClassifications(classifier, by, self.workers)

    def _on_pixels(self, change: Callable[[Pixels], Pixels]) -> Stage:
        async def stage(frame: Frame) -> Frame:
            pixels = await self.workers.run(change, frame.pixels)
            if pixels is frame.pixels:
                return frame  # with what it is already encoded as
            return Frame(Picture(pixels, self.workers), frame.captured_at, frame.source)

        return stage


def _drawer(step: Step) -> str | None:
    match step:
        case DetectionsAttributes(attributes=by):
            return by.detector_name
        case ClassificationsAttributes(attributes=by):
            return by.classifier_name
    return None
