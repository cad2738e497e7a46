"""A simulated world of objects that appear, move and disappear. Pure: a function of time."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from google.protobuf.field_mask_pb2 import FieldMask
from viam.proto.common import (
    Capsule,
    Geometry,
    Pose,
    RectangularPrism,
    Sphere,
    Transform,
    Vector3,
)
from viam.proto.service.worldstatestore import (
    StreamTransformChangesResponse,
    TransformChangeType,
)

from cogwork.drivers.pose_tracker.paths import circle_pose
from cogwork.drivers.world_state_store.attributes import FakeWorldStateStoreAttributes
from cogwork.resource.messages.pose_proto import to_pose_in_frame
from cogwork.resource.messages.structs import to_struct

Transforms = Mapping[bytes, Transform]
"""Transforms by UUID."""

_COLORS = (
    {"r": 230, "g": 80, "b": 60},
    {"r": 60, "g": 160, "b": 230},
    {"r": 90, "g": 200, "b": 90},
)
_SHAPES = ("box", "ball", "pill")


@dataclass(frozen=True, slots=True)
class SimulatedWorld:
    name: str
    """The seed: the same name yields the same objects at the same times."""
    attributes: FakeWorldStateStoreAttributes

    def transforms_at(self, seconds: float) -> Transforms:
        """Return the objects at that time. At time 0 the world is already populated."""
        lifetime, interval = self.attributes.lifetime, self.attributes.interval
        # An object exists from its birth until just before the end of its lifetime.
        first = math.floor((seconds - lifetime) / interval) + 1
        last = math.floor(seconds / interval)
        transforms = (self._transform_at(number, seconds) for number in range(first, last + 1))
        return {transform.uuid: transform for transform in transforms}

    def _transform_at(self, number: int, seconds: float) -> Transform:
        age = seconds - number * self.attributes.interval
        kind = _SHAPES[number % len(_SHAPES)]
        # The golden angle keeps successive objects apart in space.
        turns = number * 0.381966 + age / self.attributes.lifetime
        height = 100.0 * (number % 5)
        pose = circle_pose((0.0, 0.0, height), self.attributes.radius_mm, turns)
        # Labels of the initial objects start at 1.
        label = f"{kind}-{number + math.ceil(self.attributes.lifetime / self.attributes.interval)}"
        return Transform(
            uuid=uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name}/{number}").bytes,
            reference_frame=label,
            pose_in_observer_frame=to_pose_in_frame(pose, self.attributes.reference_frame),
            physical_object=_make_geometry(kind, label),
            metadata=to_struct({"color": _COLORS[number % len(_COLORS)], "opacity": 0.8}),
        )


def diff_transforms(
    before: Transforms, after: Transforms
) -> Iterator[StreamTransformChangesResponse]:
    """Yield the changes that turn `before` into `after`."""
    for key, old in before.items():
        if key not in after:
            yield _removal(key)
        elif fields := list(_changed_fields(old, after[key])):
            yield StreamTransformChangesResponse(
                change_type=TransformChangeType.TRANSFORM_CHANGE_TYPE_UPDATED,
                transform=after[key],
                updated_fields=FieldMask(paths=fields),
            )
    for key, new in after.items():
        if key not in before:
            yield StreamTransformChangesResponse(
                change_type=TransformChangeType.TRANSFORM_CHANGE_TYPE_ADDED, transform=new
            )


def _removal(key: bytes) -> StreamTransformChangesResponse:
    return StreamTransformChangesResponse(
        change_type=TransformChangeType.TRANSFORM_CHANGE_TYPE_REMOVED,
        transform=Transform(uuid=key),
        updated_fields=FieldMask(paths=["uuid"]),
    )


def _changed_fields(old: Transform, new: Transform) -> Iterator[str]:
    """Yield the paths of the fields that differ; only the pose ever changes."""
    here, there = old.pose_in_observer_frame.pose, new.pose_in_observer_frame.pose
    for field in Pose.DESCRIPTOR.fields_by_name:
        if getattr(here, field) != getattr(there, field):
            yield f"pose_in_observer_frame.pose.{field}"


def _make_geometry(kind: str, label: str) -> Geometry:
    shape = Geometry(center=Pose(o_z=1.0), label=label)
    match kind:
        case "box":
            shape.box.CopyFrom(RectangularPrism(dims_mm=Vector3(x=100.0, y=80.0, z=60.0)))
        case "ball":
            shape.sphere.CopyFrom(Sphere(radius_mm=40.0))
        case _:
            shape.capsule.CopyFrom(Capsule(radius_mm=25.0, length_mm=120.0))
    return shape
