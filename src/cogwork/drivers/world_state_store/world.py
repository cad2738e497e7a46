"""A world of things that appear, move and vanish. Pure: it depends on the time alone."""

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

from cogwork.drivers.pose_tracker.paths import on_circle
from cogwork.drivers.world_state_store.attributes import FakeWorldStateStoreAttributes
from cogwork.resource.poses import placed
from cogwork.resource.structs import to_struct

Things = Mapping[bytes, Transform]
"""By their UUIDs."""

_COLOURS = (
    {"r": 230, "g": 80, "b": 60},
    {"r": 60, "g": 160, "b": 230},
    {"r": 90, "g": 200, "b": 90},
)
_KINDS = ("box", "ball", "pill")


@dataclass(frozen=True, slots=True)
class World:
    name: str
    """The same name has the same things at the same times."""
    attributes: FakeWorldStateStoreAttributes

    def things(self, seconds: float) -> Things:
        """There from the start are those that would have appeared before."""
        lifetime, interval = self.attributes.lifetime, self.attributes.interval
        # A thing is there from its birth, and gone when its time is over.
        first = math.floor((seconds - lifetime) / interval) + 1
        last = math.floor(seconds / interval)
        found = (self._thing(number, seconds) for number in range(first, last + 1))
        return {thing.uuid: thing for thing in found}

    def _thing(self, number: int, seconds: float) -> Transform:
        age = seconds - number * self.attributes.interval
        kind = _KINDS[number % len(_KINDS)]
        # The golden angle keeps neighbours in time apart in space.
        turns = number * 0.381966 + age / self.attributes.lifetime
        height = 100.0 * (number % 5)
        pose = on_circle((0.0, 0.0, height), self.attributes.radius_mm, turns)
        # Those that are there from the start are counted from 1.
        label = f"{kind}-{number + math.ceil(self.attributes.lifetime / self.attributes.interval)}"
        return Transform(
            uuid=uuid.uuid5(uuid.NAMESPACE_OID, f"{self.name}/{number}").bytes,
            reference_frame=label,
            pose_in_observer_frame=placed(pose, self.attributes.reference_frame),
            physical_object=_shape(kind, label),
            metadata=to_struct({"color": _COLOURS[number % len(_COLOURS)], "opacity": 0.8}),
        )


def changes(before: Things, after: Things) -> Iterator[StreamTransformChangesResponse]:
    """What makes the one into the other."""
    for key, old in before.items():
        if key not in after:
            yield _removed(key)
        elif fields := list(_changed(old, after[key])):
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


def _removed(key: bytes) -> StreamTransformChangesResponse:
    return StreamTransformChangesResponse(
        change_type=TransformChangeType.TRANSFORM_CHANGE_TYPE_REMOVED,
        transform=Transform(uuid=key),
        updated_fields=FieldMask(paths=["uuid"]),
    )


def _changed(old: Transform, new: Transform) -> Iterator[str]:
    """Only its pose ever does."""
    here, there = old.pose_in_observer_frame.pose, new.pose_in_observer_frame.pose
    for field in Pose.DESCRIPTOR.fields_by_name:
        if getattr(here, field) != getattr(there, field):
            yield f"pose_in_observer_frame.pose.{field}"


def _shape(kind: str, label: str) -> Geometry:
    shape = Geometry(center=Pose(o_z=1.0), label=label)
    match kind:
        case "box":
            shape.box.CopyFrom(RectangularPrism(dims_mm=Vector3(x=100.0, y=80.0, z=60.0)))
        case "ball":
            shape.sphere.CopyFrom(Sphere(radius_mm=40.0))
        case _:
            shape.capsule.CopyFrom(Capsule(radius_mm=25.0, length_mm=120.0))
    return shape
