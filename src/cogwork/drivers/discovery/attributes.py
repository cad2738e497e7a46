"""What the discovery services read from their configuration."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from cogwork.config.fields import ApiField, Attributes, Duration, LongNameField, ModelField


class Discovered(Attributes):
    """A resource that can be configured."""

    name: LongNameField
    """What it is called, unless somebody changes that."""
    api: ApiField
    """Such as `rdk:component:camera`."""
    model: ModelField
    """Such as `webcam`."""
    attributes: dict[str, JsonValue] = {}
    """What it is configured with."""


_USUAL: list[dict[str, Any]] = [
    {"name": "fake-camera", "api": "rdk:component:camera", "model": "fake"},
    {
        "name": "fake-sensor",
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": {"readings": {"temperature": 21.5}},
    },
]


class FakeDiscoveryAttributes(Attributes):
    resources: list[Discovered] = Field(
        default_factory=lambda: [Discovered.model_validate(each) for each in _USUAL]
    )
    """What it finds, each as it would be configured: `name`, `api`, `model` and `attributes`. A
    fake camera and a fake sensor when left out."""


class SystemDiscoveryAttributes(Attributes):
    patience: Annotated[Duration, Field(gt=0, le=60)] = 5.0
    """How long the computer gets to tell about each kind of device. A kind that takes longer is
    left out."""
