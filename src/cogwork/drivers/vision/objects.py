"""Detections with depth: point clouds of what was found, and where it is in space.

A box holds more than its object. What stands out of the surroundings, nearer than most of what
is around the box, counts as the object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from viam.proto.common import (
    GeometriesInFrame,
    Geometry,
    PointCloudObject,
    Pose,
    PoseInFrame,
    RectangularPrism,
    Transform,
    Vector3,
)
from viam.proto.service.vision import Classification, Detection3D

from cogwork.core.errors import CogworkError
from cogwork.drivers.vision.choose import Detected
from cogwork.resource.image import Pixels
from cogwork.resource.point_cloud import Intrinsics, cloud_of, points_of

_LEAST_POINTS = 10
_MARGIN = 0.25
"""How much of a box around it counts as its surroundings."""
_STANDS_OUT = 4
"""Millimetres."""
_MOST_BYTES = 30_000_000


class TooManyPoints(CogworkError):
    """Objects that are larger together than a message may be."""

    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class Scenery:
    depth: Pixels
    lens: Any
    """As the public API has it."""

    @property
    def intrinsics(self) -> Intrinsics | None:
        lens = self.lens
        height, width = self.depth.shape[:2]
        if (lens.width_px, lens.height_px) != (width, height) or not lens.focal_x_px:
            return None
        return Intrinsics(
            width, height, lens.focal_x_px, lens.focal_y_px, lens.center_x_px, lens.center_y_px
        )


@dataclass(frozen=True, slots=True)
class Thing:
    label: str
    confidence: float
    points: NDArray[np.float32]
    """[N, 3] in metres, seen from the camera."""

    @property
    def middle(self) -> NDArray[np.float32]:
        """In millimetres."""
        middle: NDArray[np.float32] = (self.points.min(0) + self.points.max(0)) * 500
        return middle

    @property
    def extent(self) -> NDArray[np.float32]:
        extent: NDArray[np.float32] = (self.points.max(0) - self.points.min(0)) * 1000
        return extent


def things(detections: Sequence[Detected], scenery: Scenery) -> Iterator[Thing]:
    intrinsics = scenery.intrinsics
    if intrinsics is None:
        return
    for each in detections:
        rows, columns = _inside(scenery.depth, each)
        part = scenery.depth[rows, columns]
        stands_out = part < _ground(scenery.depth, each) - _STANDS_OUT
        if np.count_nonzero(stands_out & (part > 0)) >= _LEAST_POINTS:
            lens = replace(
                intrinsics,
                center_x=intrinsics.center_x - columns.start,
                center_y=intrinsics.center_y - rows.start,
            )
            points = points_of(np.where(stands_out, part, 0), lens)
            yield Thing(each.label, each.confidence, points)


def objects_of(
    detections: Sequence[Detected], scenery: Scenery, camera: str
) -> list[PointCloudObject]:
    objects, size = list[PointCloudObject](), 0
    for thing in things(detections, scenery):
        cloud = cloud_of(thing.points)
        size += len(cloud)
        if size > _MOST_BYTES:
            raise TooManyPoints(
                f"the point clouds of {len(detections)} objects are more than a message carries: "
                "have fewer, by default_minimum_confidence or label_confidences"
            )
        geometries = GeometriesInFrame(reference_frame=camera, geometries=[_geometry(thing)])
        objects.append(PointCloudObject(point_cloud=cloud, geometries=geometries))
    return objects


def places_of(detections: Sequence[Detected], scenery: Scenery, camera: str) -> list[Detection3D]:
    return [
        Detection3D(
            transforms=[
                Transform(
                    reference_frame=thing.label,
                    pose_in_observer_frame=PoseInFrame(reference_frame=camera, pose=_pose(thing)),
                    physical_object=_geometry(thing),
                )
            ],
            classifications=[Classification(class_name=thing.label, confidence=thing.confidence)],
        )
        for thing in things(detections, scenery)
    ]


def _ground(depth: Pixels, found: Detected) -> float:
    """How far what is around it is; 0 where nothing of it is seen."""
    around = depth[_inside(depth, found, _MARGIN)]
    seen = around[around > 0]
    place = 3 * seen.size // 4
    return float(np.partition(seen, place)[place]) if seen.size else 0.0


def _inside(depth: Pixels, found: Detected, margin: float = 0.0) -> tuple[slice, slice]:
    """The rows and columns of its box."""
    height, width = depth.shape[:2]
    return (
        _span(found.y_min_normalized * height, found.y_max_normalized * height, margin, height),
        _span(found.x_min_normalized * width, found.x_max_normalized * width, margin, width),
    )


def _span(least: float, most: float, margin: float, end: int) -> slice:
    room = margin * (most - least)
    return slice(max(0, int(least - room)), min(end, int(np.ceil(most + room)) + 1))


def _pose(thing: Thing) -> Pose:
    x, y, z = (float(value) for value in thing.middle)
    return Pose(x=x, y=y, z=z, o_z=1)


def _geometry(thing: Thing) -> Geometry:
    x, y, z = (float(value) for value in thing.extent)
    box = RectangularPrism(dims_mm=Vector3(x=x, y=y, z=max(z, 1.0)))
    return Geometry(center=_pose(thing), box=box, label=thing.label)
