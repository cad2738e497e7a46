"""Reference computations with 4x4 numpy matrices and scipy rotations."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from cogwork.spatial.pose import Pose, Quaternion, Vector

Matrix = npt.NDArray[np.float64]


def make_matrix(point: Sequence[float], rotation: Rotation) -> Matrix:
    matrix = np.eye(4)
    matrix[:3, :3] = rotation.as_matrix()
    matrix[:3, 3] = point
    return matrix


def pose_matrix(pose: Pose) -> Matrix:
    return make_matrix(pose.point, to_scipy(pose.rotation))


def to_scipy(rotation: Quaternion) -> Rotation:
    return Rotation.from_quat([rotation.x, rotation.y, rotation.z, rotation.w])


def to_quaternion(rotation: Rotation) -> Quaternion:
    x, y, z, w = (float(part) for part in rotation.as_quat())
    return Quaternion(w, x, y, z)


def max_difference(one: Pose, other: Matrix) -> float:
    """Return the largest difference of any entry: millimeters, or parts of a rotation."""
    return float(np.abs(pose_matrix(one) - other).max())


def rotation_difference(one: Quaternion, other: Rotation) -> float:
    return float(np.abs(to_scipy(one).as_matrix() - other.as_matrix()).max())


def random_point(rng: random.Random, reach: float = 1000.0) -> Vector:
    x, y, z = (rng.uniform(-reach, reach) for _ in range(3))
    return x, y, z


def random_rotation(rng: random.Random) -> Rotation:
    return Rotation.from_quat([rng.gauss(0, 1) for _ in range(4)])


def random_pose(rng: random.Random) -> Pose:
    return Pose(random_point(rng), to_quaternion(random_rotation(rng)))


TYPES = ("ov_degrees", "ov_radians", "euler_angles", "axis_angles", "quaternion")


def random_orientation(kind: str, rng: random.Random) -> tuple[Mapping[str, float], Rotation]:
    """Return a rotation in configuration form and the scipy rotation of the same numbers."""
    if kind == "quaternion":
        w, x, y, z = (rng.uniform(-3, 3) for _ in range(4))
        return {"w": w, "x": x, "y": y, "z": z}, Rotation.from_quat([x, y, z, w])
    if kind == "euler_angles":
        roll, pitch, yaw = (rng.uniform(-4, 4) for _ in range(3))
        rotation = Rotation.from_euler("ZYX", [yaw, pitch, roll])
        return {"roll": roll, "pitch": pitch, "yaw": yaw}, rotation
    x, y, z = random_point(rng, 2.0)
    th = rng.uniform(-7, 7)
    length = math.hypot(x, y, z)
    if kind == "axis_angles":
        rotation = Rotation.from_rotvec(np.array([x, y, z]) / length * th)
        return {"x": x, "y": y, "z": z, "th": th}, rotation
    rotation = Rotation.from_euler("ZYZ", [math.atan2(y, x), math.acos(z / length), th])
    angle = math.degrees(th) if kind == "ov_degrees" else th
    return {"x": x, "y": y, "z": z, "th": angle}, rotation
