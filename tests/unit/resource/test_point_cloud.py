from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray
from tests.support.media.pictures import color_image, depth_image

from cogwork.resource.point_cloud import Intrinsics, depth_to_pcd

LENS = Intrinsics(96, 64, focal_x=80.0, focal_y=90.0, center_x=47.5, center_y=31.5)
KINDS = {"F": "f", "I": "i", "U": "u"}


def read_pcd(data: bytes) -> NDArray[Any]:
    """Parse a PCD file by its format description into a structured array."""
    fields: dict[str, list[str]] = {}
    rest = data
    while "DATA" not in fields:
        line, _, rest = rest.partition(b"\n")
        key, *values = line.decode("ascii").split()
        fields[key] = values
    assert fields["DATA"] == ["binary"]
    assert fields["VERSION"] in (["0.7"], [".7"])
    assert fields["COUNT"] == ["1"] * len(fields["FIELDS"])
    assert " ".join(fields["VIEWPOINT"]) == "0 0 0 1 0 0 0"
    count = int(fields["POINTS"][0])
    assert int(fields["WIDTH"][0]) * int(fields["HEIGHT"][0]) == count
    kind = np.dtype(
        [
            (name, f"<{KINDS[letter]}{width}")
            for name, letter, width in zip(
                fields["FIELDS"], fields["TYPE"], fields["SIZE"], strict=True
            )
        ]
    )
    assert len(rest) == count * kind.itemsize
    return np.frombuffer(rest, kind)


def test_pcd_bytes_without_color() -> None:
    depth = np.array([[0, 2000], [0, 0]], np.uint16)
    assert depth_to_pcd(depth, Intrinsics(2, 2, 1.0, 1.0, 0.0, 0.0)) == (
        b"VERSION .7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\nWIDTH 1\nHEIGHT 1\n"
        b"VIEWPOINT 0 0 0 1 0 0 0\nPOINTS 1\nDATA binary\n"
        b"\0\0\0\x40\0\0\0\0\0\0\0\x40"  # (2, 0, 2)
    )


def test_points_are_in_meters() -> None:
    depth = np.zeros((64, 96), np.uint16)
    lens = Intrinsics(96, 64, 80.0, 90.0, 40.0, 30.0)
    depth[30, 40] = 1500  # at the optical center
    depth[30, 80] = 2000  # half a focal length to the right
    depth[60, 40] = 3000  # a third of a focal length down
    points = read_pcd(depth_to_pcd(depth, lens))
    found = [tuple(round(float(each), 5) for each in point) for point in points]
    assert found == [(0, 0, 1.5), (1, 0, 2), (0, 1, 3)]


def test_pixels_without_distance_have_no_point() -> None:
    depth = depth_image()
    depth[10:20, :] = 0
    points = read_pcd(depth_to_pcd(depth, LENS))
    assert len(points) == np.count_nonzero(depth)
    assert points["z"].min() > 0
    assert len(read_pcd(depth_to_pcd(np.zeros((64, 96), np.uint16), LENS))) == 0
    assert len(read_pcd(depth_to_pcd(np.zeros((64, 96), np.uint16), LENS, color_image()))) == 0


def test_colors_are_stored_as_rgb() -> None:
    depth = np.array([[1000, 0], [1000, 1000]], np.uint16)
    bgr = np.array([[[3, 2, 1], [9, 9, 9]], [[255, 0, 0], [0, 128, 255]]], np.uint8)
    points = read_pcd(depth_to_pcd(depth, Intrinsics(2, 2, 1.0, 1.0, 0.0, 0.0), bgr))
    assert points.dtype.names == ("x", "y", "z", "rgb")
    assert [f"{value:06x}" for value in points["rgb"]] == ["010203", "0000ff", "ff8000"]


def test_colors_do_not_change_the_points() -> None:
    plain, colored = (
        read_pcd(depth_to_pcd(depth_image(), LENS)),
        read_pcd(depth_to_pcd(depth_image(), LENS, color_image())),
    )
    for axis in "xyz":
        assert np.array_equal(plain[axis], colored[axis])


def test_points_of_a_plane_are_coplanar() -> None:
    """All points of a tilted wall lie on one plane."""
    columns, rows = np.meshgrid(np.arange(96), np.arange(64))
    across = (columns - LENS.center_x) / LENS.focal_x
    down = (rows - LENS.center_y) / LENS.focal_y
    normal, distance = np.array([0.2, -0.3, 1.0]), 2.0
    meters = distance / (normal[0] * across + normal[1] * down + normal[2])
    points = read_pcd(depth_to_pcd(np.round(meters * 1000).astype(np.uint16), LENS))
    seen = np.stack([points["x"], points["y"], points["z"]], axis=1).astype(np.float64)
    assert len(seen) == 96 * 64
    assert np.abs(seen @ normal - distance).max() < 0.001  # depth_image are whole millimeters


@given(
    npst.arrays(np.uint16, npst.array_shapes(min_dims=2, max_dims=2, max_side=12)),
    st.floats(1, 5000),
    st.floats(1, 5000),
    st.floats(-50, 50),
    st.floats(-50, 50),
)
def test_points_project_back_to_their_pixels(
    depth: NDArray[np.uint16], fx: float, fy: float, cx: float, cy: float
) -> None:
    lens = Intrinsics(depth.shape[1], depth.shape[0], fx, fy, cx, cy)
    points = read_pcd(depth_to_pcd(depth, lens))
    rows, columns = np.nonzero(depth)
    z = points["z"].astype(np.float64)
    assert np.allclose(z * 1000, depth[rows, columns])
    assert np.allclose(points["x"] / z * fx + cx, columns, atol=0.01)
    assert np.allclose(points["y"] / z * fy + cy, rows, atol=0.01)


@pytest.mark.parametrize("colored", [False, True])
def test_conversion_of_a_720p_image_is_fast(colored: bool) -> None:
    depth = np.full((720, 1280), 1500, np.uint16)
    lens = Intrinsics(1280, 720, 900.0, 900.0, 640.0, 360.0)
    started = time.thread_time()
    depth_to_pcd(depth, lens, color_image(1280, 720) if colored else None)
    assert time.thread_time() - started < 0.5
