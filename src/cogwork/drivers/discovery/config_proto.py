"""Converts discovered resources to protobuf messages, whose content users paste into a
configuration."""

from __future__ import annotations

from viam.proto.app.robot import ComponentConfig

from cogwork.drivers.discovery.attributes import Discovered
from cogwork.resource.messages.structs import to_struct


def to_component_config(found: Discovered) -> ComponentConfig:
    return ComponentConfig(
        name=found.name,
        # Older clients identify the API by `namespace` and `type`, newer ones by `api`.
        namespace=found.api.namespace,
        type=found.api.subtype,
        api=str(found.api),
        model=str(found.model),
        attributes=to_struct(found.attributes),
    )
