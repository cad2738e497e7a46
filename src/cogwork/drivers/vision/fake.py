"""A vision service that finds what its configuration says, in every picture."""

from __future__ import annotations

import numpy as np

from cogwork.core.clock import SystemClock
from cogwork.drivers.vision.attributes import FakeVisionAttributes
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.choose import EVERYTHING, Classified, detections
from cogwork.drivers.vision.frame_vision import Found, FrameVision, default_camera
from cogwork.graph.name import ResourceName
from cogwork.graph.provider import Dependencies
from cogwork.resource.frame import Frame
from cogwork.resource.labels import Labels


class FakeVision(FrameVision):
    def __init__(
        self, name: ResourceName, attributes: FakeVisionAttributes, dependencies: Dependencies
    ) -> None:
        camera = default_camera(attributes.camera_name, dependencies)
        super().__init__(name, SystemClock(), camera=camera)
        things = attributes.detections
        self._labels = Labels({number: each.label for number, each in enumerate(things)})
        self._candidates = Candidates(
            np.array([each.box for each in things], np.float32).reshape(-1, 4),
            np.array([each.confidence for each in things], np.float32),
            np.arange(len(things), dtype=np.int64),
        )
        self._classified = sorted(
            (Classified(each.label, each.confidence) for each in attributes.classifications),
            key=lambda each: -each.confidence,
        )

    @classmethod
    async def new(
        cls, name: ResourceName, attributes: FakeVisionAttributes, dependencies: Dependencies
    ) -> FakeVision:
        return cls(name, attributes, dependencies)

    @property
    def detects(self) -> bool:
        return True

    @property
    def classifies(self) -> bool:
        return True

    def why_not(self, role: str) -> str:
        return f"it is a {role}"

    async def find(self, frame: Frame) -> Found:
        found = detections(self._candidates, self._labels, EVERYTHING, frame.width, frame.height)
        return Found(found, self._classified)
