"""Convert depth images to point clouds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.media.image import Pixels

_HEADER = """\
VERSION .7
FIELDS x y z{extra_field}
SIZE 4 4 4{extra_size}
TYPE F F F{extra_type}
COUNT 1 1 1{extra_count}
WIDTH {points}
HEIGHT 1
VIEWPOINT 0 0 0 1 0 0 0
POINTS {points}
DATA binary
"""


@dataclass(frozen=True, slots=True)
class Intrinsics:
    """The intrinsic parameters of a pinhole camera without distortion, in pixels."""

    width: int
    height: int
    focal_x: float
    focal_y: float
    center_x: float
    center_y: float


Points = NDArray[np.float32]
"""The points, [N, 3] in meters relative to the camera: x to the right, y down, z forward. In an [N,
4] array, the fourth value is a packed RGB color."""


def depth_to_pcd(depth: Pixels, intrinsics: Intrinsics, colors: Pixels | None = None) -> bytes:
    """Convert a depth image to a PCD file. This is slow: call it in a thread."""
    return points_to_pcd(depth_to_points(depth, intrinsics, colors))


def depth_to_points(depth: Pixels, intrinsics: Intrinsics, colors: Pixels | None = None) -> Points:
    """Convert a depth image to points. Pixels without a distance are skipped."""
    height, width = depth.shape
    across = (np.arange(width) - intrinsics.center_x) / intrinsics.focal_x
    down = (np.arange(height) - intrinsics.center_y) / intrinsics.focal_y
    valid = depth > 0
    z = depth[valid].astype(np.float32) / np.float32(1000)
    points: Points = np.empty((len(z), 3 if colors is None else 4), "<f4")
    points[:, 0] = _broadcast(across[None, :], depth)[valid] * z
    points[:, 1] = _broadcast(down[:, None], depth)[valid] * z
    points[:, 2] = z
    if colors is not None:
        blue, green, red = colors[valid].astype("<u4").T
        points.view("<u4")[:, 3] = red << 16 | green << 8 | blue
    return points


def points_to_pcd(points: Points) -> bytes:
    """Return the points as a binary PCD file."""
    count, fields = points.shape
    return b"".join((_format_header(count, colored=fields == 4), points.tobytes()))


def _broadcast(line: NDArray[np.floating[Any]], depth: Pixels) -> NDArray[np.float32]:
    """Repeat a line for every row or column, without using memory."""
    return np.broadcast_to(line.astype(np.float32), depth.shape)


def _format_header(points: int, *, colored: bool) -> bytes:
    return _HEADER.format(
        points=points,
        extra_field=" rgb" if colored else "",
        extra_size=" 4" if colored else "",
        extra_type=" I" if colored else "",
        extra_count=" 1" if colored else "",
    ).encode()
