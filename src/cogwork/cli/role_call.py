"""How a vision service would read a model file: roles, evidence, a working configuration, and what
it finds in a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cogwork.core.clock import SystemClock
from cogwork.core.errors import CogworkError
from cogwork.core.workers import Workers
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.mlmodel import MlmodelVision, NoRole
from cogwork.drivers.vision.roles import Roles
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.frame import Frame, picture_of
from cogwork.resource.image import Pixels, encode
from cogwork.resource.image_header import JPEG
from cogwork.resource.overlay import Boxed, with_boxes, with_labels

_VISION = Api.parse("rdk:service:vision")
_MODEL = Api.parse("rdk:service:mlmodel")
_SURE = 0.4
"""What is less sure is not drawn."""
_MOST_LABELS = 5


async def role_call(model: Any, path: Path, engine: str, image: Path | None) -> dict[str, Any]:
    """Plain values, beside `picture`: a JPEG with what was found."""
    settings = MlmodelVisionAttributes.model_construct(
        mlmodel_name="model", default_minimum_confidence=_SURE
    )
    name = ResourceName(_VISION, "inspected")
    try:
        vision = await MlmodelVision.new(name, settings, {ResourceName(_MODEL, "model"): model})
    except NoRole as error:
        return {**error.roles.described(), "entry": None, **_NOTHING}
    try:
        described = dict(await vision.do_command({"inspect": True}))
        described["entry"] = _entry(path, engine, vision.roles)
        described |= await _found(vision, image) if image is not None else _NOTHING
        return described
    finally:
        await vision.close()


_NOTHING: dict[str, Any] = {"found": None, "picture": None}


async def _found(vision: MlmodelVision, image: Path) -> dict[str, Any]:
    workers = Workers("picture")
    try:
        data = await workers.run(image.read_bytes)
        frame = Frame(await workers.run(picture_of, data, workers), SystemClock().time())
        if vision.detects:
            return _boxes(frame.pixels, await vision.detections_in(frame))
        return _labels(frame.pixels, await vision.classifications_in(frame, _MOST_LABELS))
    except OSError as error:
        raise CogworkError(f"{image} cannot be read: {error.strerror}") from error
    finally:
        workers.close()


def _boxes(pixels: Pixels, detections: Any) -> dict[str, Any]:
    boxes = [
        Boxed(each.class_name, each.confidence, each.x_min, each.y_min, each.x_max, each.y_max)
        for each in detections
    ]
    found = [
        {
            "label": each.label,
            "confidence": each.confidence,
            "box": [each.x_min, each.y_min, each.x_max, each.y_max],
        }
        for each in boxes
    ]
    return {"found": found, "picture": encode(with_boxes(pixels, boxes), JPEG)}


def _labels(pixels: Pixels, classifications: Any) -> dict[str, Any]:
    labels = [(each.class_name, each.confidence) for each in classifications]
    found = [{"label": label, "confidence": confidence} for label, confidence in labels]
    return {"found": found, "picture": encode(with_labels(pixels, labels), JPEG)}


def _entry(path: Path, engine: str, roles: Roles) -> dict[str, Any]:
    """What was found out is pinned, so that another release reads the model the same way."""
    name = path.stem.replace(".", "-")
    attributes: dict[str, Any] = {"mlmodel_name": name, "default_minimum_confidence": _SURE}
    if roles.detector is not None and roles.plan is not None:
        attributes["family"] = roles.detector.family
        attributes["letterbox"] = roles.plan.letterbox
    if roles.plan is not None and roles.plan.dtype.kind == "f":
        attributes["input_image_mean_value"] = [round(each, 9) for each in roles.plan.mean]
        attributes["input_image_std_dev"] = [round(each, 9) for each in roles.plan.std]
    if roles.plan is not None and roles.plan.bgr:
        attributes["input_image_bgr"] = True
    return {
        "services": [
            {
                "name": name,
                "api": "rdk:service:mlmodel",
                "model": engine,
                "attributes": {"model_path": str(path.absolute())},
            },
            {
                "name": f"{name}-vision",
                "api": "rdk:service:vision",
                "model": "mlmodel",
                "attributes": attributes,
            },
        ]
    }
