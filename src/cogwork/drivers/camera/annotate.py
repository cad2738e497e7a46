"""Stages of a transform camera that ask a vision service, and draw what it says."""

from __future__ import annotations

from typing import Any

from cogwork.core.workers import Workers
from cogwork.drivers.camera.attributes import ClassificationsBy, DetectionsBy
from cogwork.drivers.camera.frame_camera import FrameImage
from cogwork.resource.frame import Frame, Picture
from cogwork.resource.image import Pixels
from cogwork.resource.overlay import Boxed, with_boxes, with_labels
from cogwork.resource.vision_service import FindsInFrames


class DrawnDetections:
    def __init__(self, detector: Any, by: DetectionsBy, workers: Workers) -> None:
        self._detector = detector
        self._by = by
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        boxes = [
            Boxed(each.class_name, each.confidence, each.x_min, each.y_min, each.x_max, each.y_max)
            for each in await self._found(frame)
            if _wanted(each, self._by)
        ]
        return _shown(
            frame, await self._workers.run(with_boxes, frame.pixels, boxes), self._workers
        )

    async def _found(self, frame: Frame) -> Any:
        if isinstance(self._detector, FindsInFrames):
            return await self._detector.detections_in(frame)
        return await self._detector.get_detections(await _image(frame))


class DrawnClassifications:
    def __init__(self, classifier: Any, by: ClassificationsBy, workers: Workers) -> None:
        self._classifier = classifier
        self._by = by
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        labels = [
            (each.class_name, each.confidence)
            for each in await self._found(frame)
            if _wanted(each, self._by)
        ]
        drawn = await self._workers.run(with_labels, frame.pixels, labels)
        return _shown(frame, drawn, self._workers)

    async def _found(self, frame: Frame) -> Any:
        most = self._by.max_classifications
        if isinstance(self._classifier, FindsInFrames):
            return await self._classifier.classifications_in(frame, most)
        return await self._classifier.get_classifications(await _image(frame), most)


def _wanted(found: Any, by: DetectionsBy | ClassificationsBy) -> bool:
    known = {label.lower() for label in by.valid_labels}
    return found.confidence >= by.confidence_threshold and (
        not known or found.class_name.lower() in known
    )


def _shown(frame: Frame, pixels: Pixels, workers: Workers) -> Frame:
    return Frame(Picture(pixels, workers), frame.captured_at, frame.source)


async def _image(frame: Frame) -> FrameImage:
    kind = frame.usual_type
    return FrameImage(frame, await frame.encoded(kind), kind)
