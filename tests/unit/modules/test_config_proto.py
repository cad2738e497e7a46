"""The configuration of a resource as its module gets it."""

from __future__ import annotations

from typing import Any

import pytest

from cogwork.config.schema.machine import ComponentConfig
from cogwork.logs.levels import Level
from cogwork.modules.config_proto import resource_to_proto


def make_config(**fields: Any) -> ComponentConfig:
    return ComponentConfig.model_validate(
        {"name": "lamp", "api": "rdk:component:generic", "model": "acme:lamp:led", **fields}
    )


def test_names_attributes_and_level() -> None:
    config = make_config(attributes={"watts": 3}, depends_on=["b"])
    message = resource_to_proto(config, Level.DEBUG)
    assert (message.name, message.api, message.model) == (
        *("lamp", "rdk:component:generic", "acme:lamp:led"),
    )
    assert dict(message.attributes) == {"watts": 3}
    assert list(message.depends_on) == ["b"]
    assert message.log_configuration.level == "debug"
    assert not message.HasField("frame")


def test_frame_with_its_geometry() -> None:
    box = {"type": "box", "x": 100, "y": 20, "z": 30, "translation": {"x": 5, "y": 0, "z": 0}}
    frame = {"parent": "world", "translation": {"x": 1, "y": 2, "z": 3}, "geometry": box}
    sent = resource_to_proto(make_config(frame=frame)).frame
    assert sent.parent == "world"
    assert (sent.translation.x, sent.translation.y, sent.translation.z) == (1, 2, 3)
    size = sent.geometry.box.dims_mm
    assert (size.x, size.y, size.z) == (100, 20, 30)
    assert sent.geometry.center.x == 5
    assert sent.geometry.label == "lamp"


@pytest.mark.parametrize("frame", [None, {"parent": "world"}])
def test_frame_without_a_geometry(frame: dict[str, Any] | None) -> None:
    assert not resource_to_proto(make_config(frame=frame)).frame.HasField("geometry")
