"""Converts the configuration of a resource to the message for its module."""

from __future__ import annotations

from viam.gen.app.v1 import robot_pb2 as app

from cogwork.config.schema.frame import FrameConfig
from cogwork.config.schema.machine import ResourceConfig
from cogwork.logs.levels import Level
from cogwork.resource.messages.pose_proto import geometry_to_proto
from cogwork.resource.messages.structs import to_struct


def resource_to_proto(config: ResourceConfig, level: Level | None = None) -> app.ComponentConfig:
    """Convert a component or a service: the API uses the same message for both."""
    message = app.ComponentConfig(
        name=config.name,
        namespace=config.api.namespace,
        type=config.api.subtype,
        api=str(config.api),
        model=str(config.model),
        attributes=to_struct(config.attributes),
        depends_on=config.depends_on,
        service_configs=[
            app.ResourceLevelServiceConfig(type=each.type, attributes=to_struct(each.attributes))
            for each in config.service_configs
        ],
    )
    if config.frame is not None:
        message.frame.CopyFrom(_frame_to_proto(config.frame, config.name))
    if level is not None:
        message.log_configuration.level = level.name.lower()
    return message


def _frame_to_proto(frame: FrameConfig, name: str) -> app.Frame:
    """Convert a frame. `name` is the label of its geometry if the geometry has none."""
    geometry = geometry_to_proto(frame.geometry, name) if frame.geometry is not None else None
    translation, rotation = frame.translation, frame.pose.rotation
    return app.Frame(
        parent=frame.parent,
        translation=app.Translation(x=translation.x, y=translation.y, z=translation.z),
        orientation=app.Orientation(
            quaternion=app.Orientation.Quaternion(
                w=rotation.w, x=rotation.x, y=rotation.y, z=rotation.z
            )
        ),
        geometry=geometry,
    )
