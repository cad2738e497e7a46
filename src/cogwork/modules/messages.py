"""A resource's configuration as the message that a module gets."""

from __future__ import annotations

from viam.gen.app.v1 import robot_pb2 as app

from cogwork.config.frame import Frame
from cogwork.config.schema import ResourceConfig
from cogwork.logs.levels import Level
from cogwork.resource.structs import to_struct


def resource_message(config: ResourceConfig, level: Level | None = None) -> app.ComponentConfig:
    """Of a service, too: there is but one message for both."""
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
        message.frame.CopyFrom(_frame(config.frame))
    if level is not None:
        message.log_configuration.level = level.name.lower()
    return message


def _frame(frame: Frame) -> app.Frame:
    place, turned = frame.translation, frame.pose.turned
    return app.Frame(
        parent=frame.parent,
        translation=app.Translation(x=place.x, y=place.y, z=place.z),
        orientation=app.Orientation(
            quaternion=app.Orientation.Quaternion(w=turned.w, x=turned.x, y=turned.y, z=turned.z)
        ),
    )
