"""The ways to write a rotation, against scipy and against the SDK's own library."""

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
    quaternion_of,
    random_orientation,
    random_rotation,
    scipy_of,
    turned_apart,
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
def test_each_type_reads_as_in_scipy(kind: str) -> None:
    rng = random.Random(kind)
    for _ in range(500):
        value, wanted = random_orientation(kind, rng)
        assert turned_apart(parse_orientation(kind, value), wanted) < 1e-12


@given(angles, latitudes, angles)
@example(0.0, 0.0, 0.0)
@example(2.0, math.pi, 1.0)
@example(-3.0, 0.0141, 3.1)
@example(-3.0, math.pi - 0.0141, 3.1)
def test_an_orientation_vector_comes_back_the_same_rotation_also_near_the_poles(
    longitude: float, latitude: float, theta: float
) -> None:
    rotation = Rotation.from_euler("ZYZ", [longitude, latitude, theta])
    turned = quaternion_of(rotation)
    written = to_ov(turned)
    assert written[:3] == pytest.approx(rotation.apply([0, 0, 1]), abs=1e-12)
    assert turned_apart(from_ov(*written), rotation) < 1e-9
    assert turned_apart(from_ov_degrees(*to_ov_degrees(turned)), rotation) < 1e-9


@given(st.floats(0.02, math.pi - 0.02), angles, st.floats(-3.14, 3.14))
def test_away_from_the_poles_its_numbers_come_back_too(
    latitude: float, longitude: float, theta: float
) -> None:
    level = math.sin(latitude)
    direction = (level * math.cos(longitude), level * math.sin(longitude), math.cos(latitude))
    assert to_ov(from_ov(*direction, theta)) == pytest.approx((*direction, theta), abs=1e-9)


@pytest.mark.parametrize("z", [1.0, -1.0])
@pytest.mark.parametrize("theta", [-180.0, -90.0, 0.0, 30.0, 90.0, 179.0])
def test_at_a_pole_theta_counts_as_if_the_longitude_were_zero(z: float, theta: float) -> None:
    wanted = Rotation.from_euler("ZYZ", [0, math.acos(z), math.radians(theta)])
    turned = from_ov_degrees(0, 0, z, theta)
    assert turned_apart(turned, wanted) < 1e-12
    *direction, back = to_ov_degrees(turned)
    assert direction == pytest.approx([0, 0, z], abs=1e-12)
    assert math.remainder(back - theta, 360) == pytest.approx(0, abs=1e-9)


def test_the_z_axis_points_along_the_vector_however_near_to_a_pole() -> None:
    turned = from_ov_degrees(-0.003, 0.004, 1, 70)
    length = math.hypot(0.003, 0.004, 1)
    wanted = (-0.003 / length, 0.004 / length, 1 / length)
    assert turned.rotate((0, 0, 1)) == pytest.approx(wanted, abs=1e-12)


def test_the_published_table_of_common_orientations() -> None:
    assert from_ov_degrees(0, 0, 1, 0) == Quaternion.identity()
    assert from_ov_degrees(0, 0, 1, 90).rotate((1, 0, 0)) == pytest.approx((0, 1, 0))
    assert from_ov_degrees(1, 0, 0, 0).rotate((0, 0, 1)) == pytest.approx((1, 0, 0))
    assert from_ov_degrees(0, 0, -1, 0).rotate((0, 0, 1)) == pytest.approx((0, 0, -1))
    tilted = from_ov_degrees(0.5, 0, 0.866, 0).rotate((0, 0, 1))
    assert tilted == pytest.approx((0.5, 0, 0.866), abs=1e-4)


def test_without_a_direction_it_is_straight_up() -> None:
    assert from_ov_degrees(0, 0, 0, 0) == Quaternion.identity()
    assert from_ov_degrees(0, 0, 0, 45) == from_ov_degrees(0, 0, 1, 45)


class PublishedLibrary:
    """The orientation vectors of the library that the SDK brings along."""

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

    def ov(self, turned: Quaternion) -> tuple[float, ...]:
        made = self._library.new_quaternion(turned.w, turned.x, turned.y, turned.z)
        vector = self._library.orientation_vector_from_quaternion(made)
        parts = self._library.orientation_vector_get_components(vector)
        return tuple(parts[0:4])


LIBRARY = Path(viam.__file__).parent / "rpc" / "libviam_rust_utils.so"


@pytest.mark.skipif(not LIBRARY.exists(), reason="the SDK brings its library for Linux only")
@pytest.mark.parametrize("latitude", [1.0, 2.5, 0.02, 0.0139, 0.001, 1e-5, 0.0])
def test_the_numbers_are_those_of_the_published_library(latitude: float) -> None:
    library = PublishedLibrary(LIBRARY)
    rng = random.Random(6)
    for number in range(100):
        down = latitude if number % 2 else math.pi - latitude
        longitude, theta = rng.uniform(-3, 3), rng.uniform(-3, 3)
        turned = quaternion_of(Rotation.from_euler("ZYZ", [longitude, down, theta]))
        *wanted, wanted_theta = library.ov(turned)
        *direction, theta = to_ov(turned)
        assert direction == pytest.approx(wanted, abs=1e-12)
        assert math.remainder(theta - wanted_theta, math.tau) == pytest.approx(0, abs=1e-6)


@given(angles, st.floats(-math.pi / 2, math.pi / 2), angles)
@example(1.0, math.pi / 2, 2.0)
@example(1.0, -math.pi / 2, 2.0)
def test_euler_angles_are_the_rotation_that_scipy_makes_of_them(
    roll: float, pitch: float, yaw: float
) -> None:
    wanted = Rotation.from_euler("ZYX", [yaw, pitch, roll])
    turned = from_euler(roll, pitch, yaw)
    assert turned_apart(turned, wanted) < 1e-12


def test_matrices_come_back_the_same_rotation() -> None:
    rng = random.Random(7)
    halves = [Rotation.from_rotvec([math.pi if a == b else 0 for b in range(3)]) for a in range(3)]
    for wanted in [*halves, Rotation.identity(), *(random_rotation(rng) for _ in range(300))]:
        turned = quaternion_of(wanted)
        assert [value for row in to_matrix(turned) for value in row] == pytest.approx(
            wanted.as_matrix().ravel().tolist(), abs=1e-12
        )
        assert turned_apart(from_matrix(to_matrix(turned)), wanted) < 1e-12


@pytest.mark.parametrize("kind", ["", *TYPES])
@pytest.mark.parametrize("value", [None, {}])
def test_nothing_written_is_nothing_turned(kind: str, value: dict[str, object] | None) -> None:
    assert parse_orientation(kind, value) == Quaternion.identity()


def test_capital_letters_are_read_as_upstream_does() -> None:
    turned = parse_orientation("quaternion", {"W": 1, "X": 2, "Y": 3, "Z": 4})
    assert turned_apart(turned, Rotation.from_quat([2, 3, 4, 1])) < 1e-12
    assert scipy_of(turned).magnitude() > 0


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
def test_what_is_no_rotation_is_refused_in_a_sentence(
    kind: str, value: dict[str, object], words: str
) -> None:
    with pytest.raises(ValueError) as raised:
        parse_orientation(kind, value)
    assert words in str(raised.value)
