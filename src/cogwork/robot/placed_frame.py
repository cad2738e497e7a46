"""A frame of the machine: its pose, and the component that it belongs to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from viam.gen.common.v1 import common_pb2 as common

from cogwork.config.schema.frame import FrameConfig
from cogwork.config.schema.machine import ComponentConfig
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.messages.pose_proto import geometry_to_proto
from cogwork.spatial.frame_tree import FramePart
from cogwork.spatial.kinematics import Chain
from cogwork.spatial.pose import Pose

ARM: Final = Api.parse("rdk:component:arm")
GANTRY: Final = Api.parse("rdk:component:gantry")
JOINTED: Final = (ARM, GANTRY)
"""APIs of components that move the frames attached to them."""
_UNKNOWN_CHAIN: Final = Chain("not loaded yet", ())


@dataclass(frozen=True, slots=True)
class PlacedFrame:
    name: str
    parent: str
    pose: Pose
    """Pose relative to the parent."""
    component: ResourceName | None
    """The component that the frame belongs to; None for a frame without a component, such as the
    world of a remote."""
    geometry: common.Geometry | None = None
    """The space that the component occupies."""

    @property
    def has_joints(self) -> bool:
        """Whether the component moves the frames attached to it."""
        return self.component is not None and self.component.api in JOINTED

    @property
    def part(self) -> FramePart:
        chain = _UNKNOWN_CHAIN if self.has_joints else None
        return FramePart(self.name, self.parent, self.pose, chain)


def place_component(component: ComponentConfig, frame: FrameConfig) -> PlacedFrame:
    resource = component.full_name
    name = frame.id or resource.short
    geometry = None if frame.geometry is None else geometry_to_proto(frame.geometry, name)
    return PlacedFrame(name, frame.parent, frame.pose, resource, geometry)
