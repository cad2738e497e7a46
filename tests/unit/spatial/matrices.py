"""Another way to reckon: 4x4 matrices of numpy, and the rotations of scipy."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from cogwork.spatial.pose import Pose, Quaternion, Vector

Matrix = npt.NDArray[np.float64]


def matrix_of(point: Sequence[float], rotation: Rotation) -> Matrix:
    made = np.eye(4)
    made[:3, :3] = rotation.as_matrix()
    made[:3, 3] = point
    return made


def pose_matrix(pose: Pose) -> Matrix:
    return matrix_of(pose.point, scipy_of(pose.rotation))


def scipy_of(turned: Quaternion) -> Rotation:
    return Rotation.from_quat([turned.x, turned.y, turned.z, turned.w])


def quaternion_of(rotation: Rotation) -> Quaternion:
    x, y, z, w = (float(part) for part in rotation.as_quat())
    return Quaternion(w, x, y, z)


def apart(one: Pose, other: Matrix) -> float:
    """The largest difference of any entry: millimetres, or parts of a rotation."""
    return float(np.abs(pose_matrix(one) - other).max())


def turned_apart(one: Quaternion, other: Rotation) -> float:
    return float(np.abs(scipy_of(one).as_matrix() - other.as_matrix()).max())


def random_point(rng: random.Random, reach: float = 1000.0) -> Vector:
    x, y, z = (rng.uniform(-reach, reach) for _ in range(3))
    return x, y, z


def random_rotation(rng: random.Random) -> Rotation:
    return Rotation.from_quat([rng.gauss(0, 1) for _ in range(4)])


def random_pose(rng: random.Random) -> Pose:
    return Pose(random_point(rng), quaternion_of(random_rotation(rng)))


TYPES = ("ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion")


def random_orientation(kind: str, rng: random.Random) -> tuple[Mapping[str, float], Rotation]:
    """A rotation as a configuration writes it, and what scipy makes of the same numbers."""
    if kind == "quaternion":
        w, x, y, z = (rng.uniform(-3, 3) for _ in range(4))
        return {"w": w, "x": x, "y": y, "z": z}, Rotation.from_quat([x, y, z, w])
    if kind == "euler_angles":
        roll, pitch, yaw = (rng.uniform(-4, 4) for _ in range(3))
        turned = Rotation.from_euler("ZYX", [yaw, pitch, roll])
        return {"roll": roll, "pitch": pitch, "yaw": yaw}, turned
    x, y, z = random_point(rng, 2.0)
    th = rng.uniform(-7, 7)
    length = math.hypot(x, y, z)
    if kind == "axis_angles":
        turned = Rotation.from_rotvec(np.array([x, y, z]) / length * th)
        return {"x": x, "y": y, "z": z, "th": th}, turned
    turned = Rotation.from_euler("ZYZ", [math.atan2(y, x), math.acos(z / length), th])
    written = math.degrees(th) if kind == "ov_degrees" else th
    return {"x": x, "y": y, "z": z, "th": written}, turned
