"""Real models on real photos, on computers that have them, and what others say of these."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.engine import Engine
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.choose import Classified, Detected, classifications, detections
from cogwork.drivers.vision.classify import classifier_reading
from cogwork.drivers.vision.input_plan import InputPlan, input_plan
from cogwork.drivers.vision.named import named_detector
from cogwork.drivers.vision.prepare import Preparer
from cogwork.drivers.vision.reading import ClassifierReading, DetectorReading, ModelView
from cogwork.resource.labels import read_labels

# Only looked at when onnxruntime is imported, which reports to its makers otherwise.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

MODELS = Path(__file__).parents[5] / "shared" / "models"


class Found(NamedTuple):
    label: str
    score: float
    box: tuple[float, float, float, float]
    """Left, upper, right, lower edge as parts of the picture."""


def golden(model: str) -> dict[str, list[Any]]:
    if not (MODELS / "golden_outputs.json").exists():
        pytest.skip("this computer does not have the models")
    found: dict[str, list[Any]] = json.loads((MODELS / "golden_outputs.json").read_text())[model]
    return found


def photo(name: str) -> NDArray[np.uint8]:
    pixels = cv2.imread(str(MODELS / "photos" / name))
    assert pixels is not None
    return pixels.astype(np.uint8, copy=False)


def settings(**attributes: Any) -> MlmodelVisionAttributes:
    return MlmodelVisionAttributes(mlmodel_name="model", **attributes)


@cache
def engine(file: str) -> Engine:
    if not (MODELS / file).exists():
        pytest.skip("this computer does not have the models")
    if file.endswith(".onnx"):
        from cogwork.drivers.mlmodel.onnx import OnnxEngine

        return OnnxEngine(str(MODELS / file), 1)
    from cogwork.drivers.mlmodel.tflite import TfliteEngine

    return TfliteEngine(str(MODELS / file), 1)


def view(file: str, labels: str | None = None) -> ModelView:
    facts = engine(file).facts
    names = read_labels((MODELS / labels).read_text()) if labels is not None else facts.labels
    return ModelView(facts.inputs, facts.outputs, names, facts.notes)


def detector(
    file: str, labels: str | None = None, **attributes: Any
) -> Callable[[NDArray[np.uint8]], list[Found]]:
    wanted, known = settings(**attributes), view(file, labels)
    reading = named_detector(known, wanted)
    assert isinstance(reading, DetectorReading)
    plan = input_plan(known, wanted, reading)
    assert isinstance(plan, InputPlan)
    preparer = Preparer(plan)

    def detect(pixels: NDArray[np.uint8]) -> list[Found]:
        height, width = pixels.shape[:2]
        with preparer.prepared(pixels) as (tensor, fit):
            candidates = reading.read(engine(file).run({plan.name: tensor}), fit)
        return [_found(e) for e in detections(candidates, known.labels, wanted, width, height)]

    return detect


def classifier(
    file: str, labels: str | None = None, **attributes: Any
) -> Callable[[NDArray[np.uint8], int], list[Classified]]:
    wanted, known = settings(**attributes), view(file, labels)
    reading, plan = classifier_reading(known, wanted), input_plan(known, wanted)
    assert isinstance(reading, ClassifierReading)
    assert isinstance(plan, InputPlan)
    preparer = Preparer(plan)

    def classify(pixels: NDArray[np.uint8], most: int) -> list[Classified]:
        with preparer.prepared(pixels) as (tensor, _):
            scores = reading.read(engine(file).run({plan.name: tensor}))
        return classifications(scores, known.labels, wanted, most)

    return classify


def _found(each: Detected) -> Found:
    return Found(
        each.label,
        each.confidence,
        (
            each.x_min_normalized,
            each.y_min_normalized,
            each.x_max_normalized,
            each.y_max_normalized,
        ),
    )
