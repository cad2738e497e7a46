"""Depth pictures as point clouds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cogwork.resource.image import Pixels

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
    """How a camera without distortion maps the world to pixels."""

    width: int
    height: int
    focal_x: float
    focal_y: float
    center_x: float
    center_y: float


Points = NDArray[np.float32]
"""[N, 3] in metres, seen from the camera: x to the right, y down, z ahead. Or [N, 4]: the fourth is
a colour, red, green and blue in one number."""


def to_pcd(depth: Pixels, intrinsics: Intrinsics, colours: Pixels | None = None) -> bytes:
    """Takes time: call it in a thread."""
    return cloud_of(points_of(depth, intrinsics, colours))


def points_of(depth: Pixels, intrinsics: Intrinsics, colours: Pixels | None = None) -> Points:
    """Pixels without a distance have no point."""
    height, width = depth.shape
    across = (np.arange(width) - intrinsics.center_x) / intrinsics.focal_x
    down = (np.arange(height) - intrinsics.center_y) / intrinsics.focal_y
    seen = depth > 0
    z = depth[seen].astype(np.float32) / np.float32(1000)
    points: Points = np.empty((len(z), 3 if colours is None else 4), "<f4")
    points[:, 0] = _everywhere(across[None, :], depth)[seen] * z
    points[:, 1] = _everywhere(down[:, None], depth)[seen] * z
    points[:, 2] = z
    if colours is not None:
        blue, green, red = colours[seen].astype("<u4").T
        points.view("<u4")[:, 3] = red << 16 | green << 8 | blue
    return points


def cloud_of(points: Points) -> bytes:
    """A PCD file."""
    count, fields = points.shape
    return b"".join((_header(count, coloured=fields == 4), points.tobytes()))


def _everywhere(line: NDArray[np.floating[Any]], depth: Pixels) -> NDArray[np.float32]:
    """The same for every row, or every column; takes no memory."""
    return np.broadcast_to(line.astype(np.float32), depth.shape)


def _header(points: int, *, coloured: bool) -> bytes:
    return _HEADER.format(
        points=points,
        extra_field=" rgb" if coloured else "",
        extra_size=" 4" if coloured else "",
        extra_type=" I" if coloured else "",
        extra_count=" 1" if coloured else "",
    ).encode()
