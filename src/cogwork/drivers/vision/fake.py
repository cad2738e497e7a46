"""A vision service that reports the configured results for every image."""

from __future__ import annotations

import numpy as np
from viam.proto.service.vision import Classification

from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.frame_vision import VisionResult
from cogwork.drivers.vision.model_free_detector import ModelFreeDetector
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class FakeVision(ModelFreeDetector):
    def __init__(
        self, name: ResourceName, attributes: FakeVisionAttributes, dependencies: Dependencies
    ) -> None:
        super().__init__(name, attributes, dependencies)
        things = attributes.detections
        self.labels = Labels({number: each.label for number, each in enumerate(things)})
        self._candidates = Candidates(
            np.array([each.box for each in things], np.float32).reshape(-1, 4),
            np.array([each.confidence for each in things], np.float32),
            np.arange(len(things), dtype=np.int64),
        )
        self._classifications = sorted(
            attributes.classifications, key=lambda each: -each.confidence
        )

    @property
    def is_classifier(self) -> bool:
        return True

    def explain_unsupported(self, role: str) -> str:
        return f"it is a {role}"

    async def analyze_frame(self, frame: Frame) -> VisionResult:
        return VisionResult(
            self.to_detections(self._candidates, frame),
            [
                Classification(class_name=each.label, confidence=each.confidence)
                for each in self._classifications
            ],
        )
