"""The smallest entry of a configuration that uses a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cogwork.config.schema.schema_text import JsonSchema
from cogwork.graph.name import Api, ModelName

_TEXTS = {
    "board": "my-board",
    "base": "my-base",
    "movement_sensor": "my-movement-sensor",
    "mlmodel_name": "my-mlmodel",
    "source": "my-camera",
    "pin": "GPIO17",
    "port": "/dev/ttyUSB0",
    "model_path": "model.onnx",
    "video_path": "rtsp://camera.local/stream",
    "detect_color": "#ff8000",
}
"""Texts for attributes whose type does not tell what to write."""
_ATTRIBUTES: Mapping[str, dict[str, Any]] = {
    "rdk:component:base wheeled": {
        "left": ["left-motor"],
        "right": ["right-motor"],
        "width_mm": 300,
        "wheel_circumference_mm": 200,
    },
    "rdk:component:camera image_file": {"color_image_file_path": "belt.jpg"},
    "rdk:component:camera transform": {
        "source": "my-camera",
        "pipeline": [{"type": "rotate", "attributes": {"angle_degs": 90}}],
    },
    "rdk:component:encoder incremental": {
        "board": "my-board",
        "pins": {"a": "GPIO17", "b": "GPIO27"},
    },
    "rdk:component:motor gpio": {
        "board": "my-board",
        "pins": {"dir": "GPIO17", "pwm": "GPIO18"},
    },
    "rdk:component:movement_sensor wheeled-odometry": {
        "base": "my-base",
        "left_motors": ["left-motor"],
        "right_motors": ["right-motor"],
    },
    "rdk:component:switch gpio": {"board": "my-board", "pins": ["GPIO17"]},
    "rdk:service:mlmodel tensorflow_cpu": {"model_path": "saved_model"},
    "rdk:service:mlmodel tflite_cpu": {"model_path": "model.tflite"},
    "rdk:service:mlmodel torch_cpu": {"model_path": "model.pt"},
}
"""Attributes of models that the schema does not describe well enough."""


def make_example(api: Api, model: ModelName, schema: JsonSchema | None) -> dict[str, Any]:
    """Return an entry of the section `components` or `services`.

    `schema` describes the attributes; None if they are unknown.
    """
    entry = {"name": f"my-{api.subtype.replace('_', '-')}", "api": str(api), "model": model.short}
    attributes = _ATTRIBUTES.get(f"{api} {model.short}")
    if attributes is None and schema is not None:
        attributes = _make_required(schema, schema.get("$defs", {}))
    return {**entry, "attributes": attributes} if attributes else entry


def _make_required(schema: JsonSchema, definitions: JsonSchema) -> dict[str, Any]:
    return {
        key: _make_value(key, schema["properties"][key], definitions)
        for key in schema.get("required", ())
    }


def _make_value(key: str, member: JsonSchema, definitions: JsonSchema) -> Any:
    if "$ref" in member:
        return _make_required(definitions[member["$ref"].rpartition("/")[2]], definitions)
    if choices := member.get("enum") or ([member["const"]] if "const" in member else []):
        return choices[0]
    if "anyOf" in member:
        return _make_value(key, member["anyOf"][0], definitions)
    match member.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return member.get("minimum", 1)
        case "array":
            return [_make_value(key, member.get("items", {}), definitions)]
        case "object":
            return {}
    return _TEXTS.get(key, f"my-{key.replace('_', '-')}")
