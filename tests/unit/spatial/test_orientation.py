"""Orientation formats, compared with scipy and the SDK's library."""

from __future__ import annotations

import ctypes
import math
import random
from pathlib import Path

import pytest
import viam
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.unit.spatial.matrices import (
    TYPES,
    random_orientation,
    random_rotation,
    rotation_difference,
    to_quaternion,
    to_scipy,
)

from cogwork.spatial.orientation import (
    from_euler,
    from_matrix,
    from_ov,
    from_ov_degrees,
    parse_orientation,
    to_matrix,
    to_ov,
    to_ov_degrees,
)
from cogwork.spatial.pose import Quaternion

angles = st.floats(-math.pi, math.pi)
tiny = st.floats(0, 0.05) | st.floats(0, 1e-6) | st.sampled_from((0.0, 1e-12, 1e-160, 0.0141))
latitudes = st.floats(0, math.pi) | tiny | tiny.map(lambda small: math.pi - small)


@pytest.mark.parametrize("kind", TYPES)
def test_every_orientation_type_matches_scipy(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(500):
        value, expected = random_orientation(kind, rng)
        assert rotation_difference(parse_orientation(kind, value), expected) < 1e-12


@given(angles, latitudes, angles)
@example(0.0, 0.0, 0.0)
@example(2.0, math.pi, 1.0)
@example(-3.0, 0.0141, 3.1)
@example(-3.0, math.pi - 0.0141, 3.1)
def test_orientation_vector_survives_a_round_trip_near_the_poles(
    longitude: float, latitude: float, theta: float
) -> None:
    rotation = Rotation.from_euler("ZYZ", [longitude, latitude, theta])
    quaternion = to_quaternion(rotation)
    written = to_ov(quaternion)
    assert written[:3] == pytest.approx(rotation.apply([0, 0, 1]), abs=1e-12)
    assert rotation_difference(from_ov(*written), rotation) < 1e-9
    assert rotation_difference(from_ov_degrees(*to_ov_degrees(quaternion)), rotation) < 1e-9


@given(st.floats(0.02, math.pi - 0.02), angles, st.floats(-3.14, 3.14))
def test_orientation_vector_numbers_survive_away_from_the_poles(
    latitude: float, longitude: float, theta: float
) -> None:
    level = math.sin(latitude)
    direction = (level * math.cos(longitude), level * math.sin(longitude), math.cos(latitude))
    assert to_ov(from_ov(*direction, theta)) == pytest.approx((*direction, theta), abs=1e-9)


@pytest.mark.parametrize("z", [1.0, -1.0])
@pytest.mark.parametrize("theta", [-180.0, -90.0, 0.0, 30.0, 90.0, 179.0])
def test_theta_at_a_pole_assumes_longitude_zero(z: float, theta: float) -> None:
    expected = Rotation.from_euler("ZYZ", [0, math.acos(z), math.radians(theta)])
    quaternion = from_ov_degrees(0, 0, z, theta)
    assert rotation_difference(quaternion, expected) < 1e-12
    *direction, back = to_ov_degrees(quaternion)
    assert direction == pytest.approx([0, 0, z], abs=1e-12)
    assert math.remainder(back - theta, 360) == pytest.approx(0, abs=1e-9)


def test_z_axis_points_along_the_vector_near_a_pole() -> None:
    quaternion = from_ov_degrees(-0.003, 0.004, 1, 70)
    length = math.hypot(0.003, 0.004, 1)
    expected = (-0.003 / length, 0.004 / length, 1 / length)
    assert quaternion.rotate((0, 0, 1)) == pytest.approx(expected, abs=1e-12)


def test_common_orientations_match_the_published_table() -> None:
    assert from_ov_degrees(0, 0, 1, 0) == Quaternion.identity()
    assert from_ov_degrees(0, 0, 1, 90).rotate((1, 0, 0)) == pytest.approx((0, 1, 0))
    assert from_ov_degrees(1, 0, 0, 0).rotate((0, 0, 1)) == pytest.approx((1, 0, 0))
    assert from_ov_degrees(0, 0, -1, 0).rotate((0, 0, 1)) == pytest.approx((0, 0, -1))
    tilted = from_ov_degrees(0.5, 0, 0.866, 0).rotate((0, 0, 1))
    assert tilted == pytest.approx((0.5, 0, 0.866), abs=1e-4)


def test_missing_direction_means_straight_up() -> None:
    assert from_ov_degrees(0, 0, 0, 0) == Quaternion.identity()
    assert from_ov_degrees(0, 0, 0, 45) == from_ov_degrees(0, 0, 1, 45)


class PublishedLibrary:
    """The orientation vectors of the library that the SDK contains."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        for name, arguments, result in (
            ("new_quaternion", [ctypes.c_double] * 4, ctypes.c_void_p),
            ("orientation_vector_from_quaternion", [ctypes.c_void_p], ctypes.c_void_p),
            (
                "orientation_vector_get_components",
                [ctypes.c_void_p],
                ctypes.POINTER(ctypes.c_double),
            ),
        ):
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, result
        self._library = library

    def ov(self, quaternion: Quaternion) -> tuple[float, ...]:
        made = self._library.new_quaternion(quaternion.w, quaternion.x, quaternion.y, quaternion.z)
        vector = self._library.orientation_vector_from_quaternion(made)
        parts = self._library.orientation_vector_get_components(vector)
        return tuple(parts[0:4])


LIBRARY = Path(viam.__file__).parent / "rpc" / "libviam_rust_utils.so"


@pytest.mark.skipif(not LIBRARY.exists(), reason="the SDK brings its library for Linux only")
@pytest.mark.parametrize("latitude", [1.0, 2.5, 0.02, 0.0139, 0.001, 1e-5, 0.0])
def test_orientation_vectors_match_the_published_library(latitude: float) -> None:
    library = PublishedLibrary(LIBRARY)
    rng = random.Random(6)
    for number in range(100):
        down = latitude if number % 2 else math.pi - latitude
        longitude, theta = rng.uniform(-3, 3), rng.uniform(-3, 3)
        quaternion = to_quaternion(Rotation.from_euler("ZYZ", [longitude, down, theta]))
        *expected, expected_theta = library.ov(quaternion)
        *direction, theta = to_ov(quaternion)
        assert direction == pytest.approx(expected, abs=1e-12)
        assert math.remainder(theta - expected_theta, math.tau) == pytest.approx(0, abs=1e-6)


@given(angles, st.floats(-math.pi / 2, math.pi / 2), angles)
@example(1.0, math.pi / 2, 2.0)
@example(1.0, -math.pi / 2, 2.0)
def test_euler_angles_match_scipy(roll: float, pitch: float, yaw: float) -> None:
    expected = Rotation.from_euler("ZYX", [yaw, pitch, roll])
    quaternion = from_euler(roll, pitch, yaw)
    assert rotation_difference(quaternion, expected) < 1e-12


def test_matrices_survive_a_round_trip() -> None:
    rng = random.Random(7)
    halves = [Rotation.from_rotvec([math.pi if a == b else 0 for b in range(3)]) for a in range(3)]
    for expected in [*halves, Rotation.identity(), *(random_rotation(rng) for _ in range(300))]:
        quaternion = to_quaternion(expected)
        assert [value for row in to_matrix(quaternion) for value in row] == pytest.approx(
            expected.as_matrix().ravel().tolist(), abs=1e-12
        )
        assert rotation_difference(from_matrix(to_matrix(quaternion)), expected) < 1e-12


@pytest.mark.parametrize("kind", ["", *TYPES])
@pytest.mark.parametrize("value", [None, {}])
def test_empty_orientation_is_the_identity(kind: str, value: dict[str, object] | None) -> None:
    assert parse_orientation(kind, value) == Quaternion.identity()


def test_capital_field_names_are_accepted() -> None:
    quaternion = parse_orientation("quaternion", {"W": 1, "X": 2, "Y": 3, "Z": 4})
    assert rotation_difference(quaternion, Rotation.from_quat([2, 3, 4, 1])) < 1e-12
    assert to_scipy(quaternion).magnitude() > 0


@pytest.mark.parametrize(
    ("kind", "value", "words"),
    [
        ("ov_degree", {"x": 1}, 'did you mean "ov_degrees"?'),
        ("spin", {}, "ov_degrees, ov_radians, euler_angles, axis_angles and quaternion"),
        ("", {"x": 1}, "needs a type"),
        (
            "ov_degrees",
            {"theta": 5},
            '"theta" is not a field of ov_degrees; the fields are x, y, z, th',
        ),
        ("euler_angles", {"roll": "0"}, '"roll" of euler_angles is not a finite number'),
        ("euler_angles", {"yaw": True}, '"yaw" of euler_angles is not a finite number'),
        ("euler_angles", {"yaw": math.nan}, "not a finite number"),
        ("quaternion", {"w": 10**400}, "not a finite number"),
        ("quaternion", {"w": 0}, "not zero"),
        ("axis_angles", {"th": 1}, "not zero"),
        ("axis_angles", {"x": None}, '"x" of axis_angles is not a finite number'),
    ],
)
def test_invalid_orientation_raises(kind: str, value: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_orientation(kind, value)
    assert words in str(raised.value)
