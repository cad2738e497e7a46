"""Transform PCD point clouds to another frame."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest
from cogwork.spatial.orientation import to_matrix
from cogwork.spatial.pose import Pose

_MAX_HEADER_SIZE = 4096
_MAX_DATA_SIZE = 1 << 25
"""Maximum size of the points in bytes: the limit of a message."""
_MAX_TEXT_SIZE = 1 << 20
"""Maximum size of ASCII points in bytes; parsing holds the GIL and delays other threads."""
_DTYPES = {("F", 4): "<f4", ("F", 8): "<f8"} | {
    (kind, size): f"<{letter}{size}"
    for kind, letter in (("I", "i"), ("U", "u"))
    for size in (1, 2, 4, 8)
}


@dataclass(frozen=True, slots=True)
class _PcdHeader:
    fields: np.dtype[np.void]
    points: int
    encoding: str
    """`binary` or `ascii`."""
    size: int
    """Size of the header in bytes."""


def transform_cloud(cloud: bytes, pose: Pose) -> bytes:
    """Transform the points of a PCD file to another frame. Other fields stay the same.

    `pose` is the pose of the cloud's frame in the other frame. This is slow: call it in a thread.
    """
    header = _parse_header(cloud)
    points = _parse_points(cloud, header)
    positions = np.stack([points[axis].astype(np.float64) for axis in ("x", "y", "z")], axis=1)
    # Clouds are in meters, frames in millimeters.
    moved = positions @ np.array(to_matrix(pose.rotation)).T + np.array(pose.point) / 1000
    for axis, column in zip(("x", "y", "z"), moved.T, strict=True):
        points[axis] = column
    return b"".join((_binary_header(cloud, header), points.tobytes()))


def _parse_header(cloud: bytes) -> _PcdHeader:
    lines: dict[str, list[str]] = {}
    at = 0
    while "DATA" not in lines:
        end = cloud.find(b"\n", at, _MAX_HEADER_SIZE)
        if end < 0:
            raise InvalidRequest("the point cloud is not a PCD file: its header has no DATA line")
        key, *values = cloud[at:end].decode("ascii", "replace").split() or ["#"]
        lines[key] = values
        at = end + 1
    try:
        return _PcdHeader(_parse_fields(lines), int(lines["POINTS"][0]), lines["DATA"][0], at)
    except (KeyError, IndexError, ValueError, OverflowError) as error:
        raise InvalidRequest(f"the header of the PCD file is invalid: {error}") from None


def _parse_fields(lines: dict[str, list[str]]) -> np.dtype[np.void]:
    names = lines["FIELDS"]
    sizes, kinds = (lines[key] for key in ("SIZE", "TYPE"))
    counts = [int(count) for count in lines.get("COUNT", ["1"] * len(names))]
    for axis in ("x", "y", "z"):
        if [(name, count) for name, count in zip(names, counts, strict=True) if name == axis] != [
            (axis, 1)
        ]:
            raise ValueError(f"the points need exactly one field {axis}, with one value")
    # Files may have several padding fields called `_`.
    columns = [
        (
            name if name in ("x", "y", "z") else f"{name}{place}",
            _DTYPES[kind, int(size)],
            () if count == 1 else (count,),
        )
        for place, (name, size, kind, count) in enumerate(
            zip(names, sizes, kinds, counts, strict=True)
        )
    ]
    return np.dtype(columns)


def _parse_points(cloud: bytes, header: _PcdHeader) -> NDArray[np.void]:
    size = header.points * header.fields.itemsize
    if not 0 <= size <= _MAX_DATA_SIZE:
        raise InvalidRequest(
            f"the PCD file has {size} bytes of points; the limit is {_MAX_DATA_SIZE}"
        )
    if header.encoding == "binary":
        data = cloud[header.size : header.size + size]
        if len(data) < size:
            raise InvalidRequest(f"the PCD file is truncated: {size - len(data)} bytes are missing")
        return np.frombuffer(data, header.fields).copy()
    if header.encoding == "ascii":
        return _parse_ascii_points(cloud[header.size :], header)
    raise InvalidRequest(
        f'PCD files with "{header.encoding}" data are not supported; send binary or ascii'
    )


def _parse_ascii_points(text: bytes, header: _PcdHeader) -> NDArray[np.void]:
    if len(text) > _MAX_TEXT_SIZE or _has_array_fields(header.fields):
        raise InvalidRequest(
            f"ASCII PCD files over {_MAX_TEXT_SIZE} bytes, or with fields of several values, are "
            "not supported; send binary"
        )
    try:
        rows = [tuple(row.split()) for row in text.decode("ascii").splitlines()[: header.points]]
        points = np.array(rows, dtype=header.fields)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"the points of the PCD file cannot be parsed: {error}") from None
    if len(points) < header.points:
        raise InvalidRequest(
            f"the PCD file is truncated: it has {len(points)} of {header.points} points"
        )
    return points


def _has_array_fields(fields: np.dtype[np.void]) -> bool:
    return any(fields[name].shape for name in fields.names or ())


def _binary_header(cloud: bytes, header: _PcdHeader) -> bytes:
    # Split as in _parse_header, because a carriage return does not end a line.
    lines = cloud[: header.size].removesuffix(b"\n").split(b"\n")[:-1]
    return b"\n".join([*lines, b"DATA binary\n"])
