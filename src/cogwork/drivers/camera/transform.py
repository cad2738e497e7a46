"""A camera that transforms the images of another camera."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from cogwork.core.clock import Clock, SystemClock
from cogwork.core.single_flight import SingleFlightGroup
from cogwork.drivers.camera.annotation_stages import ClassificationOverlay, DetectionOverlay
from cogwork.drivers.camera.attributes import (
    ClassificationsAttributes,
    CropAttributes,
    DetectionsAttributes,
    PipelineStep,
    ResizeAttributes,
    RotateAttributes,
    TransformAttributes,
)
from cogwork.drivers.camera.frame_camera import FrameCamera
from cogwork.drivers.camera.image_operations import crop, resize, rotate
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.media.image import Pixels
from cogwork.resource.annotated_camera import find_annotator
from cogwork.resource.frame import Frame, Image, SourceKey, get_frames, make_source_keys
from cogwork.resource.model import find_dependency

Stage = Callable[[Frame], Awaitable[Frame]]
"""A step of the pipeline. It may call other resources, such as a vision service."""
ImageRef = weakref.ref[Image]
"""Identifies the source image without keeping it alive (a weak reference)."""


class TransformCamera(FrameCamera):
    def __init__(
        self,
        name: ResourceName,
        attributes: TransformAttributes,
        dependencies: Dependencies,
        clock: Clock,
    ) -> None:
        # Before the first frame of the source, it is unknown whether the source has depth. Assume
        # depth if intrinsic parameters are configured, because only depth needs them.
        super().__init__(name, attributes, has_depth=attributes.intrinsic_parameters is not None)
        self._source = find_dependency(dependencies, attributes.source)
        self._clock = clock
        self._stages = [self._make_stage(step, dependencies) for step in attributes.pipeline]
        self._drawn_by = next(filter(None, map(_vision_service_name, attributes.pipeline)), None)
        self._decoded_frames: SingleFlightGroup[Frame] = SingleFlightGroup()
        self._transformed: SingleFlightGroup[tuple[ImageRef, Frame]] = SingleFlightGroup()

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
        """Name of the vision service whose results this camera or its source draws. A source on
        another machine is known to draw once it has sent an image."""
        return self._drawn_by or find_annotator(self._source)

    async def frames(self, sources: Sequence[str] = ()) -> Sequence[Frame]:
        source_frames = await get_frames(
            self._source, self.workers, self._clock, sources, self._decoded_frames
        )
        keys = make_source_keys(frame.source for frame in source_frames)
        return [
            await self._transform_latest(key, frame)
            for key, frame in zip(keys, source_frames, strict=True)
        ]

    async def close(self) -> None:
        await self._decoded_frames.aclose()
        await self._transformed.aclose()
        await super().close()

    async def _transform_latest(self, key: SourceKey, frame: Frame) -> Frame:
        reference = weakref.ref(frame.image)
        origin, transformed = await self._transformed.get(
            key, reference, lambda: asyncio.ensure_future(self._transform(frame))
        )
        is_same = origin is reference
        return transformed.with_capture_time(frame.captured_at) if is_same else transformed

    async def _transform(self, frame: Frame) -> tuple[ImageRef, Frame]:
        origin = weakref.ref(frame.image)
        for stage in self._stages:
            frame = await stage(frame)
        return origin, frame

    def _make_stage(self, step: PipelineStep, dependencies: Dependencies) -> Stage:
        match step:
            case RotateAttributes(attributes=settings):
                return self._make_pixel_stage(partial(rotate, degrees=settings.angle_degs))
            case ResizeAttributes(attributes=settings):
                return self._make_pixel_stage(
                    partial(resize, width=settings.width_px, height=settings.height_px)
                )
            case CropAttributes(attributes=settings):
                return self._make_pixel_stage(
                    partial(
                        crop,
                        x_min=settings.x_min_px,
                        y_min=settings.y_min_px,
                        x_max=settings.x_max_px,
                        y_max=settings.y_max_px,
                        overlay=settings.overlay_crop_box,
                    )
                )
            case DetectionsAttributes(attributes=settings):
                detector = find_dependency(dependencies, settings.detector_name)
                return DetectionOverlay(detector, settings, self.workers)
            case ClassificationsAttributes(attributes=settings):
                classifier = find_dependency(dependencies, settings.classifier_name)
                return ClassificationOverlay(classifier, settings, self.workers)

    def _make_pixel_stage(self, operation: Callable[[Pixels], Pixels]) -> Stage:
        async def stage(frame: Frame) -> Frame:
            pixels = await self.workers.run(operation, frame.pixels)
            if pixels is frame.pixels:
                return frame  # keep the frame, which may be encoded already
            return Frame(Image(pixels, self.workers), frame.captured_at, frame.source)

        return stage


def _vision_service_name(step: PipelineStep) -> str | None:
    match step:
        case DetectionsAttributes(attributes=settings):
            return settings.detector_name
        case ClassificationsAttributes(attributes=settings):
            return settings.classifier_name
    return None
