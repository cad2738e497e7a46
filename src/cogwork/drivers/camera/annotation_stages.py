"""Stages of a transform camera that draw the results of a vision service."""

from __future__ import annotations

from typing import Any

from cogwork.core.workers import Workers
from cogwork.drivers.camera.attributes import ClassificationsBy, DetectionsBy
from cogwork.drivers.camera.frame_camera import encode_frame
from cogwork.media.image import Pixels
from cogwork.resource.frame import Frame, Image
from cogwork.resource.overlay import draw_boxes, draw_labels
from cogwork.resource.services.vision import FrameAnalyzer


class DetectionOverlay:
    def __init__(self, detector: Any, settings: DetectionsBy, workers: Workers) -> None:
        self._detector = _as_frame_analyzer(detector)
        self._settings = settings
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        detections = [
            each
            for each in await self._detector.detect_in_frame(frame)
            if _passes_filter(each, self._settings)
        ]
        drawn = await self._workers.run(draw_boxes, frame.pixels, detections)
        return _make_frame(frame, drawn, self._workers)


class ClassificationOverlay:
    def __init__(self, classifier: Any, settings: ClassificationsBy, workers: Workers) -> None:
        self._classifier = _as_frame_analyzer(classifier)
        self._settings = settings
        self._workers = workers

    async def __call__(self, frame: Frame) -> Frame:
        if frame.is_depth:
            return frame
        most = self._settings.max_classifications
        classifications = [
            each
            for each in await self._classifier.classify_frame(frame, most)
            if _passes_filter(each, self._settings)
        ]
        drawn = await self._workers.run(draw_labels, frame.pixels, classifications)
        return _make_frame(frame, drawn, self._workers)


class EncodingAnalyzer:
    """Adapts a vision service that takes only encoded images."""

    def __init__(self, vision: Any) -> None:
        self._vision = vision

    async def detect_in_frame(self, frame: Frame) -> Any:
        return await self._vision.get_detections(await encode_frame(frame))

    async def classify_frame(self, frame: Frame, most: int) -> Any:
        return await self._vision.get_classifications(await encode_frame(frame), most)


def _as_frame_analyzer(vision: Any) -> FrameAnalyzer | EncodingAnalyzer:
    return vision if isinstance(vision, FrameAnalyzer) else EncodingAnalyzer(vision)


def _passes_filter(found: Any, settings: DetectionsBy | ClassificationsBy) -> bool:
    known = {label.lower() for label in settings.valid_labels}
    return found.confidence >= settings.confidence_threshold and (
        not known or found.class_name.lower() in known
    )


def _make_frame(frame: Frame, pixels: Pixels, workers: Workers) -> Frame:
    return Frame(Image(pixels, workers), frame.captured_at, frame.source)
