"""Attributes of the discovery services."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, JsonValue

from cogwork.config.schema.fields import ApiField, Attributes, Duration, LongNameField, ModelField


class Discovered(Attributes):
    """A resource whose configuration a discovery service suggests."""

    name: LongNameField
    """Suggested name of the resource."""
    api: ApiField
    """API of the resource, such as `rdk:component:camera`."""
    model: ModelField
    """Model of the resource, such as `webcam`."""
    attributes: dict[str, JsonValue] = {}
    """Attributes of the resource."""


_DEFAULT_RESOURCES: list[dict[str, Any]] = [
    {"name": "fake-camera", "api": "rdk:component:camera", "model": "fake"},
    {
        "name": "fake-sensor",
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": {"readings": {"temperature": 21.5}},
    },
]


class FakeDiscoveryAttributes(Attributes):
    """Suggests the resources that its attributes list."""

    resources: list[Discovered] = Field(
        default_factory=lambda: [Discovered.model_validate(each) for each in _DEFAULT_RESOURCES]
    )
    """Resources to report, each as it would be configured: `name`, `api`, `model` and `attributes`.
    Defaults to a fake camera and a fake sensor."""


class SystemDiscoveryAttributes(Attributes):
    """Finds devices that are connected to this computer."""

    patience: Annotated[Duration, Field(gt=0, le=60)] = 5.0
    """Timeout of the search for each kind of device. A kind that takes longer is skipped."""
