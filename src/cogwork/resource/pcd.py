"""Point clouds of others, moved to where they are seen from elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cogwork.core.errors import InvalidRequest
from cogwork.spatial.orientation import to_matrix
from cogwork.spatial.pose import Pose

_LONGEST_HEADER = 4096
_LARGEST = 1 << 25
"""Bytes of points: what a message carries."""
_LARGEST_TEXT = 1 << 20
"""Bytes of points in text, each of which takes Python's time: others would wait for it."""
_KINDS = {("F", 4): "<f4", ("F", 8): "<f8"} | {
    (kind, size): f"<{letter}{size}"
    for kind, letter in (("I", "i"), ("U", "u"))
    for size in (1, 2, 4, 8)
}


@dataclass(frozen=True, slots=True)
class _Header:
    fields: np.dtype[np.void]
    points: int
    form: str
    """`binary` or `ascii`."""
    size: int
    """Bytes of the header itself."""


def moved(cloud: bytes, pose: Pose) -> bytes:
    """The points of a PCD file, of one frame, as they are seen from another in which that frame has
    the pose. Everything else about them stays. Takes time: call it in a thread."""
    header = _header(cloud)
    points = _points(cloud, header)
    places = np.stack([points[axis].astype(np.float64) for axis in ("x", "y", "z")], axis=1)
    # Clouds are in metres, frames in millimetres.
    there = places @ np.array(to_matrix(pose.turned)).T + np.array(pose.point) / 1000
    for axis, column in zip(("x", "y", "z"), there.T, strict=True):
        points[axis] = column
    return b"".join((_binary_header(cloud, header), points.tobytes()))


def _header(cloud: bytes) -> _Header:
    lines: dict[str, list[str]] = {}
    at = 0
    while "DATA" not in lines:
        end = cloud.find(b"\n", at, _LONGEST_HEADER)
        if end < 0:
            raise InvalidRequest("that is no PCD file: its header has no DATA line")
        key, *values = cloud[at:end].decode("ascii", "replace").split() or ["#"]
        lines[key] = values
        at = end + 1
    try:
        return _Header(_fields(lines), int(lines["POINTS"][0]), lines["DATA"][0], at)
    except (KeyError, IndexError, ValueError) as error:
        raise InvalidRequest(f"that is no PCD file that can be read: {error}") from None


def _fields(lines: dict[str, list[str]]) -> np.dtype[np.void]:
    names = lines["FIELDS"]
    sizes, kinds = (lines[key] for key in ("SIZE", "TYPE"))
    counts = [int(count) for count in lines.get("COUNT", ["1"] * len(names))]
    for axis in ("x", "y", "z"):
        if [(name, count) for name, count in zip(names, counts, strict=True) if name == axis] != [
            (axis, 1)
        ]:
            raise ValueError(f"its points do not have one {axis}")
    # Files have several fields called `_`, to fill the space between others.
    columns = [
        (
            name if name in ("x", "y", "z") else f"{name}{place}",
            _KINDS[kind, int(size)],
            () if count == 1 else (count,),
        )
        for place, (name, size, kind, count) in enumerate(
            zip(names, sizes, kinds, counts, strict=True)
        )
    ]
    return np.dtype(columns)


def _points(cloud: bytes, header: _Header) -> NDArray[np.void]:
    size = header.points * header.fields.itemsize
    if not 0 <= size <= _LARGEST:
        raise InvalidRequest(f"{size} bytes of points are more than a message carries")
    if header.form == "binary":
        data = cloud[header.size : header.size + size]
        if len(data) < size:
            raise InvalidRequest(f"the PCD file ends early: {size - len(data)} bytes are missing")
        return np.frombuffer(data, header.fields).copy()
    if header.form == "ascii":
        return _written_points(cloud[header.size :], header)
    raise InvalidRequest(f'a PCD file with "{header.form}" data is not read; send binary or ascii')


def _written_points(text: bytes, header: _Header) -> NDArray[np.void]:
    if len(text) > _LARGEST_TEXT or _has_several(header.fields):
        raise InvalidRequest("a PCD file that large, or with fields of several values, goes binary")
    try:
        rows = [tuple(row.split()) for row in text.decode("ascii").splitlines()[: header.points]]
        points = np.array(rows, dtype=header.fields)
    except (ValueError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"the points of the PCD file cannot be read: {error}") from None
    if len(points) < header.points:
        raise InvalidRequest(f"the PCD file has {len(points)} points of {header.points}")
    return points


def _has_several(fields: np.dtype[np.void]) -> bool:
    return any(fields[name].shape for name in fields.names or ())


def _binary_header(cloud: bytes, header: _Header) -> bytes:
    lines = cloud[: header.size].splitlines()[:-1]
    return b"\n".join([*lines, b"DATA binary\n"])
