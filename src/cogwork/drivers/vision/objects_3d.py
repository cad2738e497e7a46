"""Detections in 3D: point clouds and poses of detected objects, from a depth image.

A bounding box contains more than its object. Points in the box that are nearer than most of the
area around the box count as the object.
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
from viam.proto.service.vision import Classification, Detection, Detection3D

from cogwork.core.errors import CogworkError
from cogwork.media.image import Pixels
from cogwork.resource.point_cloud import Intrinsics, depth_to_points, points_to_pcd

_MIN_POINTS = 10
_BACKGROUND_MARGIN = 0.25
"""Margin around a box that counts as background, as a fraction of the box."""
_FOREGROUND_MARGIN_MM = 4
_MAX_BYTES = 30_000_000


class TooManyPoints(CogworkError):
    """The point clouds of all objects exceed the maximum message size."""

    status = "RESOURCE_EXHAUSTED"


@dataclass(frozen=True, slots=True)
class DepthScene:
    depth: Pixels
    lens: Any
    """Intrinsic parameters, as defined by the API."""

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
class SegmentedObject:
    label: str
    confidence: float
    points: NDArray[np.float32]
    """[N, 3] in meters, relative to the camera."""

    @property
    def center(self) -> NDArray[np.float32]:
        """Center of the bounding box in millimeters."""
        center: NDArray[np.float32] = (self.points.min(0) + self.points.max(0)) * 500
        return center

    @property
    def extent(self) -> NDArray[np.float32]:
        extent: NDArray[np.float32] = (self.points.max(0) - self.points.min(0)) * 1000
        return extent


def segment_objects(
    detections: Sequence[Detection], scene: DepthScene
) -> Iterator[SegmentedObject]:
    intrinsics = scene.intrinsics
    if intrinsics is None:
        return
    for each in detections:
        rows, columns = _box_slices(scene.depth, each)
        region = scene.depth[rows, columns]
        is_foreground = region < _background_depth(scene.depth, each) - _FOREGROUND_MARGIN_MM
        if np.count_nonzero(is_foreground & (region > 0)) >= _MIN_POINTS:
            lens = replace(
                intrinsics,
                center_x=intrinsics.center_x - columns.start,
                center_y=intrinsics.center_y - rows.start,
            )
            points = depth_to_points(np.where(is_foreground, region, 0), lens)
            yield SegmentedObject(each.class_name, each.confidence, points)


def build_point_clouds(
    detections: Sequence[Detection], scene: DepthScene, camera: str
) -> list[PointCloudObject]:
    objects, size = list[PointCloudObject](), 0
    for segment in segment_objects(detections, scene):
        cloud = points_to_pcd(segment.points)
        size += len(cloud)
        if size > _MAX_BYTES:
            raise TooManyPoints(
                f"the point clouds of {len(detections)} objects exceed the maximum message size: "
                "raise default_minimum_confidence or label_confidences to report fewer objects"
            )
        geometries = GeometriesInFrame(reference_frame=camera, geometries=[_to_geometry(segment)])
        objects.append(PointCloudObject(point_cloud=cloud, geometries=geometries))
    return objects


def explain_flat_scene(detections: Sequence[Detection], scene: DepthScene) -> str:
    """Explain why no detection has a point cloud."""
    unknown = [not scene.depth[_box_slices(scene.depth, each)].any() for each in detections]
    objects = "the detected object" if len(unknown) == 1 else f"the {len(unknown)} detected objects"
    if all(unknown):
        return (
            f"no point cloud for {objects}: the depth image has no distances there; bring the "
            "camera into its range, and check that the depth and color images show the same area"
        )
    return (
        f"no point cloud for {objects}: they are not nearer to the camera than the area around "
        f"them, at least {_FOREGROUND_MARGIN_MM} mm, as on a flat picture"
    )


def build_detections_3d(
    detections: Sequence[Detection], scene: DepthScene, camera: str
) -> list[Detection3D]:
    return [
        Detection3D(
            transforms=[
                Transform(
                    reference_frame=segment.label,
                    pose_in_observer_frame=PoseInFrame(
                        reference_frame=camera, pose=_to_pose(segment)
                    ),
                    physical_object=_to_geometry(segment),
                )
            ],
            classifications=[
                Classification(class_name=segment.label, confidence=segment.confidence)
            ],
        )
        for segment in segment_objects(detections, scene)
    ]


def _background_depth(depth: Pixels, detection: Detection) -> float:
    """Return the depth around a box, or 0 if it is unknown."""
    surroundings = depth[_box_slices(depth, detection, _BACKGROUND_MARGIN)]
    known = surroundings[surroundings > 0]
    position = 3 * known.size // 4
    return float(np.partition(known, position)[position]) if known.size else 0.0


def _box_slices(depth: Pixels, detection: Detection, margin: float = 0.0) -> tuple[slice, slice]:
    """Return the rows and columns of a box, with a margin."""
    height, width = depth.shape[:2]
    return (
        _padded_slice(
            detection.y_min_normalized * height, detection.y_max_normalized * height, margin, height
        ),
        _padded_slice(
            detection.x_min_normalized * width, detection.x_max_normalized * width, margin, width
        ),
    )


def _padded_slice(least: float, most: float, margin: float, end: int) -> slice:
    room = margin * (most - least)
    return slice(max(0, int(least - room)), min(end, int(np.ceil(most + room)) + 1))


def _to_pose(segment: SegmentedObject) -> Pose:
    x, y, z = (float(value) for value in segment.center)
    return Pose(x=x, y=y, z=z, o_z=1)


def _to_geometry(segment: SegmentedObject) -> Geometry:
    x, y, z = (float(value) for value in segment.extent)
    box = RectangularPrism(dims_mm=Vector3(x=x, y=y, z=max(z, 1.0)))
    return Geometry(center=_to_pose(segment), box=box, label=segment.label)
