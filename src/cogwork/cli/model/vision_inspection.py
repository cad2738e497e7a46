"""The interpretation of a model file by a vision service: roles, evidence, a suggested
configuration, and the results on an image."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogwork.core.clock import SystemClock
from cogwork.core.errors import CogworkError
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import Workers
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.capabilities import ModelCapabilities
from cogwork.drivers.vision.mlmodel import MlmodelVision, NoCapability
from cogwork.graph.name import Api, ResourceName
from cogwork.media.image import Pixels, encode
from cogwork.media.image_header import JPEG
from cogwork.resource.frame import Frame, decode_image
from cogwork.resource.overlay import draw_boxes, draw_labels

if TYPE_CHECKING:
    from viam.proto.service.vision import Classification, Detection

_VISION_API = Api.parse("rdk:service:vision")
_MODEL_API = Api.parse("rdk:service:mlmodel")
_MIN_CONFIDENCE = 0.4
"""Minimum confidence of results that are reported and drawn."""
_MAX_LABELS = 5


async def inspect_vision(
    model: Any, path: Path, engine: str, labels: Path | None, image: Path | None
) -> dict[str, Any]:
    """Return the result as JSON values, with the annotated image as JPEG under `picture`."""
    settings = MlmodelVisionAttributes.model_construct(
        mlmodel_name="model", default_minimum_confidence=_MIN_CONFIDENCE
    )
    name = ResourceName(_VISION_API, "inspected")
    try:
        vision = await MlmodelVision.new(name, settings, {ResourceName(_MODEL_API, "model"): model})
    except NoCapability as error:
        return {**error.capabilities.to_dict(), "entry": None, **_NO_RESULT}
    try:
        described = dict(await vision.do_command({"inspect": True}))
        described["entry"] = _suggest_config(path, engine, labels, vision.capabilities)
        described |= await _run_on_image(vision, image) if image is not None else _NO_RESULT
        return described
    finally:
        await vision.close()


_NO_RESULT: dict[str, Any] = {
    "found": None,
    "picture": None,
    "minimum_confidence": _MIN_CONFIDENCE,
}


async def _run_on_image(vision: MlmodelVision, image: Path) -> dict[str, Any]:
    workers = Workers("picture")
    try:
        data = await workers.run(image.read_bytes)
        frame = Frame(await workers.run(decode_image, data, workers), SystemClock().time())
        if vision.is_detector:
            return _report_boxes(frame.pixels, await vision.detect_in_frame(frame))
        return _report_labels(frame.pixels, await vision.classify_frame(frame, _MAX_LABELS))
    except OSError as error:
        raise CogworkError(f"cannot read {image}: {os_reason(error)}") from error
    finally:
        workers.close()


def _report_boxes(pixels: Pixels, detections: Sequence[Detection]) -> dict[str, Any]:
    found = [
        {
            "label": each.class_name,
            "confidence": each.confidence,
            "box": [each.x_min, each.y_min, each.x_max, each.y_max],
        }
        for each in detections
    ]
    return {**_NO_RESULT, "found": found, "picture": encode(draw_boxes(pixels, detections), JPEG)}


def _report_labels(pixels: Pixels, classifications: Sequence[Classification]) -> dict[str, Any]:
    found = [{"label": each.class_name, "confidence": each.confidence} for each in classifications]
    picture = encode(draw_labels(pixels, classifications), JPEG)
    return {**_NO_RESULT, "found": found, "picture": picture}


def _suggest_config(
    path: Path, engine: str, labels: Path | None, roles: ModelCapabilities
) -> dict[str, Any]:
    """Add the detected settings, so that other releases interpret the model in the same way."""
    name = path.stem.replace(".", "-")
    attributes: dict[str, Any] = {
        "mlmodel_name": name,
        "default_minimum_confidence": _MIN_CONFIDENCE,
    }
    if roles.detector is not None and roles.plan is not None:
        attributes["family"] = roles.detector.family
        attributes["letterbox"] = roles.plan.letterbox
    if roles.plan is not None and roles.plan.dtype.kind == "f":
        attributes["input_image_mean_value"] = [round(each, 9) for each in roles.plan.mean]
        attributes["input_image_std_dev"] = [round(each, 9) for each in roles.plan.std]
    if roles.plan is not None and roles.plan.bgr:
        attributes["input_image_bgr"] = True
    model = {"model_path": str(path.absolute())}
    if labels is not None:
        model["label_path"] = str(labels.absolute())
    return {
        "services": [
            {
                "name": name,
                "api": "rdk:service:mlmodel",
                "model": engine,
                "attributes": model,
            },
            {
                "name": f"{name}-vision",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": attributes,
            },
        ]
    }
