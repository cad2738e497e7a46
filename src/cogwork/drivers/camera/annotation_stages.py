"""Stages of a transform camera that draw the results of a vision service."""

from __future__ import annotations

from typing import Any

from cogwork.core.workers import Workers
from cogwork.drivers.camera.attributes import ClassificationsBy, DetectionsBy
from cogwork.drivers.camera.frame_camera import FrameImage
from cogwork.resource.frame import Frame, Image
from cogwork.resource.image import Pixels
from cogwork.resource.overlay import PixelBox, draw_boxes, draw_labels
from cogwork.resource.vision_service import FrameAnalyzer


class DetectionOverlay:
    def __init__(self, detector: Any, settings: DetectionsBy, workers: Workers) -> None:
        self._detector = detector
        self._settings = settings
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        boxes = [
            PixelBox(
                each.class_name, each.confidence, each.x_min, each.y_min, each.x_max, each.y_max
            )
            for each in await self._detect(frame)
            if _passes_filter(each, self._settings)
        ]
        return _make_frame(
            frame, await self._workers.run(draw_boxes, frame.pixels, boxes), self._workers
        )

    async def _detect(self, frame: Frame) -> Any:
        if isinstance(self._detector, FrameAnalyzer):
            return await self._detector.detect_in_frame(frame)
        return await self._detector.get_detections(await _encode_image(frame))


class ClassificationOverlay:
    def __init__(self, classifier: Any, settings: ClassificationsBy, workers: Workers) -> None:
        self._classifier = classifier
        self._settings = settings
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        labels = [
            (each.class_name, each.confidence)
            for each in await self._classify(frame)
            if _passes_filter(each, self._settings)
        ]
        drawn = await self._workers.run(draw_labels, frame.pixels, labels)
        return _make_frame(frame, drawn, self._workers)

    async def _classify(self, frame: Frame) -> Any:
        most = self._settings.max_classifications
        if isinstance(self._classifier, FrameAnalyzer):
            return await self._classifier.classify_frame(frame, most)
        return await self._classifier.get_classifications(await _encode_image(frame), most)


def _passes_filter(found: Any, settings: DetectionsBy | ClassificationsBy) -> bool:
    known = {label.lower() for label in settings.valid_labels}
    return found.confidence >= settings.confidence_threshold and (
        not known or found.class_name.lower() in known
    )


def _make_frame(frame: Frame, pixels: Pixels, workers: Workers) -> Frame:
    return Frame(Image(pixels, workers), frame.captured_at, frame.source)


async def _encode_image(frame: Frame) -> FrameImage:
    kind = frame.default_mime_type
    return FrameImage(frame, await frame.encode(kind), kind)
