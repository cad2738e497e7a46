from __future__ import annotations

from typing import Any

import pytest

from cogwork.contracts.vision import VisionContract
from cogwork.drivers.mlmodel import demo

pytest.importorskip("onnxruntime")

BELT: dict[str, Any] = {
    "name": "belt",
    "api": "rdk:component:camera",
    "model": "fake",
    "attributes": {"width": 320, "height": 240, "scene": "conveyor"},
}
DEMO: dict[str, Any] = {
    "name": "parts",
    "api": "rdk:service:mlmodel",
    "model": "onnx_cpu",
    "attributes": {"model_path": f"{demo.__path__[0]}/conveyor.onnx"},
}


class TestFake(VisionContract):
    model = "fake"
    camera = "belt"
    other_resources = (BELT,)


class TestMlmodel(VisionContract):
    model = "mlmodel"
    camera = "belt"
    other_resources = (BELT, DEMO)
    attributes = {"mlmodel_name": "parts"}


class TestColorDetector(VisionContract):
    model = "color_detector"
    camera = "belt"
    other_resources = (BELT,)
    attributes = {"detect_color": "#E02020", "segment_size_px": 50}
