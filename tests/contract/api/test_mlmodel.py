from __future__ import annotations

import pytest

from cogwork.contracts.mlmodel import MLModelContract
from cogwork.drivers.mlmodel import demo


@pytest.fixture(autouse=True)
def _engines() -> None:
    pytest.importorskip("onnxruntime")


class TestOnnx(MLModelContract):
    model = "onnx_cpu"
    attributes = {"model_path": f"{demo.__path__[0]}/conveyor.onnx"}


class TestTflite(MLModelContract):
    model = "tflite_cpu"
    attributes = {"model_path": f"{demo.__path__[0]}/conveyor.tflite"}
