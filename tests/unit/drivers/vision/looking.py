"""Runs real models on real photos."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray
from tests.support.models.real_models import model_path, photo_path

from cogwork.drivers.mlmodel.engine import Engine
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.decoding.classifier import match_classifier
from cogwork.drivers.vision.decoding.decoder import ClassifierDecoder, DetectorDecoder, ModelView
from cogwork.drivers.vision.decoding.named_outputs import match_named_detector
from cogwork.drivers.vision.postprocessing.label_filter import (
    select_candidates,
    select_classifications,
    to_detections,
)
from cogwork.drivers.vision.preprocessing.input_plan import InputPlan, plan_input
from cogwork.drivers.vision.preprocessing.preprocessor import Preprocessor
from cogwork.resource.labels import Labels, parse_labels

if TYPE_CHECKING:
    from viam.proto.service.vision import Classification, Detection

# This is read when onnxruntime is imported, which otherwise sends telemetry.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"


class Found(NamedTuple):
    label: str
    score: float
    box: tuple[float, float, float, float]
    """Left, upper, right, lower edge as parts of the picture."""


def photo(name: str) -> NDArray[np.uint8]:
    pixels = cv2.imread(str(photo_path(name)))
    assert pixels is not None
    return pixels.astype(np.uint8, copy=False)


def settings(**attributes: Any) -> MlmodelVisionAttributes:
    return MlmodelVisionAttributes(mlmodel_name="model", **attributes)


@cache
def engine(file: str) -> Engine:
    path = str(model_path(file))
    if file.endswith(".onnx"):
        from cogwork.drivers.mlmodel.onnx import OnnxEngine

        return OnnxEngine(path, 1)
    from cogwork.drivers.mlmodel.tflite import TfliteEngine

    return TfliteEngine(path, 1)


def view(file: str, labels: str | None = None) -> ModelView:
    facts = engine(file).info
    names = parse_labels(model_path(labels).read_text()) if labels is not None else facts.labels
    return ModelView(facts.inputs, facts.outputs, names, facts.properties)


def select_detections(
    candidates: Candidates,
    labels: Labels | None,
    wanted: MlmodelVisionAttributes,
    width: int,
    height: int,
) -> list[Detection]:
    """Select as the vision service does."""
    selected = select_candidates(candidates, labels, wanted).candidates
    return to_detections(selected, labels, width, height)


def detector(
    file: str, labels: str | None = None, **attributes: Any
) -> Callable[[NDArray[np.uint8]], list[Found]]:
    wanted, known = settings(**attributes), view(file, labels)
    reading = match_named_detector(known, wanted)
    assert isinstance(reading, DetectorDecoder)
    plan = plan_input(known, wanted, reading)
    assert isinstance(plan, InputPlan)
    preparer = Preprocessor(plan)

    def detect(pixels: NDArray[np.uint8]) -> list[Found]:
        height, width = pixels.shape[:2]
        with preparer.prepared(pixels) as (tensor, fit):
            candidates = reading.decode(engine(file).run({plan.name: tensor}), fit)
        return [
            _to_found(e) for e in select_detections(candidates, known.labels, wanted, width, height)
        ]

    return detect


def classifier(
    file: str, labels: str | None = None, **attributes: Any
) -> Callable[[NDArray[np.uint8], int], list[Classification]]:
    wanted, known = settings(**attributes), view(file, labels)
    reading, plan = match_classifier(known, wanted), plan_input(known, wanted)
    assert isinstance(reading, ClassifierDecoder)
    assert isinstance(plan, InputPlan)
    preparer = Preprocessor(plan)

    def classify(pixels: NDArray[np.uint8], most: int) -> list[Classification]:
        with preparer.prepared(pixels) as (tensor, _):
            scores = reading.decode(engine(file).run({plan.name: tensor}))
        return select_classifications(scores, known.labels, wanted, most)

    return classify


def _to_found(each: Detection) -> Found:
    return Found(
        each.class_name,
        each.confidence,
        (
            each.x_min_normalized,
            each.y_min_normalized,
            each.x_max_normalized,
            each.y_max_normalized,
        ),
    )
