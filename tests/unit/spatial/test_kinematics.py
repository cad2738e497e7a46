"""Kinematic chains from every file format, compared with matrices."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation
from tests.unit.spatial.arms import (
    SIX_AXES,
    six_axes,
    six_axis_dh,
    six_axis_sva,
    six_axis_urdf,
)
from tests.unit.spatial.matrices import (
    Matrix,
    make_matrix,
    max_difference,
    pose_matrix,
    random_pose,
)

from cogwork.spatial.kinematics import (
    Chain,
    Joint,
    JointLimits,
    JointType,
    Link,
    format_sva,
    gantry_chain,
    parse_sva,
    parse_urdf,
)
from cogwork.spatial.pose import Pose, Quaternion


def end_matrix(inputs: Sequence[float]) -> Matrix:
    """Return the matrix product of the six axes."""
    made = np.eye(4)
    for row, value in zip(SIX_AXES, inputs, strict=True):
        turn = make_matrix([0, 0, 0], Rotation.from_rotvec([0, 0, value]))
        about_x = Rotation.from_rotvec([math.radians(row.alpha), 0, 0])
        made = made @ turn @ make_matrix([row.a, 0, row.d], about_x)
    return made


@pytest.mark.parametrize(
    "chain",
    [
        parse_sva(six_axis_sva()),
        parse_sva(six_axis_dh()),
        parse_urdf(six_axis_urdf()),
        parse_sva(format_sva(parse_urdf(six_axis_urdf()))),
        parse_sva(format_sva(parse_sva(six_axis_sva()))),
    ],
    ids=["sva", "dh", "urdf", "urdf written as sva", "sva written again"],
)
def test_pose_of_a_six_axis_arm_matches_the_matrices(chain: Chain) -> None:
    rng = random.Random(1)
    assert len(chain.joints) == 6
    for low, high in chain.limits:
        assert (low, high) == pytest.approx((-math.tau, math.tau))
    for _ in range(100):
        inputs = [rng.uniform(-math.tau, math.tau) for _ in range(6)]
        assert max_difference(chain.pose(inputs), end_matrix(inputs)) < 1e-9


def test_poses_has_the_pose_of_every_link() -> None:
    chain = six_axes()
    inputs = [0.1, -0.2, 0.3, -0.4, 0.5, -0.6]
    poses = chain.poses(inputs)
    assert list(poses) == [f"link{number}" for number in range(1, 7)]
    assert poses["link6"] == chain.pose(inputs)
    first = Chain.from_elements("first", chain.elements[:2])
    assert poses["link1"] == first.pose(inputs[:1])


def test_revolute_and_prismatic_joints_with_any_axis() -> None:
    rng = random.Random(2)
    for _ in range(50):
        one, other = random_pose(rng), random_pose(rng)
        chain = Chain.from_elements(
            "mixed",
            [
                Link("a", "world", one),
                Joint("b", "a", JointType.CONTINUOUS, (0.6, 0.0, 0.8)),
                Joint("c", "b", JointType.PRISMATIC, (0.0, 3.0, -4.0), -500, 500),
                Joint("d", "c", JointType.FIXED),
                Link("e", "d", other),
            ],
        )
        turn, slide = rng.uniform(-9, 9), rng.uniform(-500, 500)
        expected = (
            pose_matrix(one)
            @ make_matrix([0, 0, 0], Rotation.from_rotvec([0.6 * turn, 0, 0.8 * turn]))
            @ make_matrix([0, 0.6 * slide, -0.8 * slide], Rotation.identity())
            @ pose_matrix(other)
        )
        assert max_difference(chain.pose([turn, slide]), expected) < 1e-9
        assert chain.limits == (JointLimits(-math.inf, math.inf), JointLimits(-500, 500))


def test_check_inputs_checks_count_and_limits() -> None:
    chain = six_axes(90)
    chain.check_inputs([0] * 6)
    chain.check_inputs([math.radians(90)] * 6)
    with pytest.raises(ValueError, match='"six" takes 6 joint positions, not 5'):
        chain.check_inputs([0] * 5)
    with pytest.raises(ValueError, match='"six" takes 6 joint positions, not 7'):
        chain.pose([0] * 7)
    with pytest.raises(ValueError) as raised:
        chain.check_inputs([0, 0, math.radians(-91), 0, 0, 0])
    assert str(raised.value) == (
        'joint "joint3" of "six" cannot move to -91 degrees; '
        "its limits are -90 degrees to 90 degrees"
    )
    with pytest.raises(ValueError, match="nan degrees"):
        chain.check_inputs([0, 0, 0, math.nan, 0, 0])


def test_continuous_joint_has_no_limits() -> None:
    chain = Chain.from_elements("spindle", [Joint("s", "world", JointType.CONTINUOUS)])
    chain.check_inputs([1e6])
    with pytest.raises(ValueError, match="inf degrees"):
        chain.check_inputs([math.inf])
    written = parse_sva(format_sva(chain))
    written.check_inputs([100.0])
    assert written.pose([100.0]) == chain.pose([100.0])


def test_prismatic_joint_without_limits_is_written_with_large_ones() -> None:
    chain = Chain.from_elements("rail", [Joint("r", "world", JointType.PRISMATIC)])
    chain.check_inputs([9e5])
    parse_sva(format_sva(chain)).check_inputs([9e5])


def test_sva_survives_a_round_trip() -> None:
    chain = parse_sva(six_axis_sva(170))
    assert json.loads(format_sva(chain))["kinematic_param_type"] == "SVA"
    again = parse_sva(format_sva(chain))
    assert again.name == chain.name
    assert [step.id for step in again.elements] == [step.id for step in chain.elements]
    assert again.links[0].geometry == {"type": "capsule", "r": 40, "l": 200}
    for one, other in zip(again.joints, chain.joints, strict=True):
        assert replace(one, minimum=0, maximum=0) == replace(other, minimum=0, maximum=0)
        assert one.limits == pytest.approx(other.limits)


def test_fixed_joint_is_written_as_a_link() -> None:
    """Other readers of the format know only moving joints."""
    written = json.loads(format_sva(parse_urdf(six_axis_urdf())))
    assert {joint["type"] for joint in written["joints"]} == {"revolute"}
    assert "joint7" in {link["id"] for link in written["links"]}


def test_gantry_chain_slides_along_its_axes() -> None:
    chain = gantry_chain([300, 400, 500])
    assert chain.limits == (JointLimits(0, 300), JointLimits(0, 400), JointLimits(0, 500))
    assert chain.pose([1, 2, 3]) == Pose((1, 2, 3), Quaternion.identity())
    with pytest.raises(ValueError, match="cannot move to 301 mm; its limits are 0 mm to 300 mm"):
        chain.check_inputs([301, 0, 0])
    leaning = gantry_chain([100], [(0, 3, 4)], name="lift")
    assert leaning.pose([50]).point == pytest.approx((0, 30, 40))
    assert (
        max_difference(parse_sva(format_sva(leaning)).pose([50]), pose_matrix(leaning.pose([50])))
        < 1e-9
    )


@pytest.mark.parametrize(
    ("lengths", "directions", "words"),
    [
        ([], [], "0 lengths and 0 directions"),
        ([1, 2], [(1, 0, 0)], "2 lengths and 1 directions"),
        ([1, 1, 1, 1], None, "4 lengths and 3 directions"),
        ([-1], None, "cannot be -1 mm long"),
        ([1], [(0, 0, 0)], "not zero"),
    ],
)
def test_invalid_gantry_raises(
    lengths: list[float], directions: list[tuple[float, float, float]] | None, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        gantry_chain(lengths, directions)


@pytest.mark.parametrize(
    ("parents", "words"),
    [
        ({"b": "world"}, 'branches: "a" and "b" have the same parent "world"'),
        ({"c": "a"}, 'branches: "b" and "c" have the same parent "a"'),
        ({"c": "z"}, 'the parent "z" of "c" in "x" does not exist'),
        ({"a": "c"}, '"x" has a cycle, so these parts do not lead to world: "a", "b", "c"'),
        ({"b": "b", "c": "a"}, '"x" has a cycle, so these parts do not lead to world: "b"'),
    ],
)
def test_branches_and_cycles_raise(parents: dict[str, str], words: str) -> None:
    row = {"a": "world", "b": "a", "c": "b", **parents}
    with pytest.raises(ValueError) as raised:
        Chain.from_elements("x", [Link(name, parent) for name, parent in row.items()])
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ([], "neither"),
        (["a", "a"], 'two parts called "a"'),
        (["world"], '"world" is not a valid name'),
    ],
)
def test_element_names_must_be_unique_and_valid(names: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Chain.from_elements("x", [Link(name, "world") for name in names])


def sva_with_joint(**changes: Any) -> str:
    joint = {"id": "j", "type": "revolute", "parent": "world", "axis": {"z": 1}}
    return json.dumps({"name": "x", "joints": [{**joint, "min": -90, "max": 90, **changes}]})


def sva_with_link(**changes: Any) -> str:
    return json.dumps({"name": "x", "links": [{"id": "l", "parent": "world", **changes}]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a JSON object"),
        (f'{{"a": {"9" * 5000}}}', "not JSON"),
        (
            sva_with_link(geometry={"x": math.nan}),
            "the kinematics contain NaN, which is not a finite number",
        ),
        ('{"links": [{"x": 1e999}]}', "the kinematics contain 1e999, which is not a finite number"),
        ("{}", "neither links nor joints"),
        ('{"kinematic_param_type": "PoE"}', 'must be SVA or DH, not "PoE"'),
        ('{"links": {}, "joints": 5}', '"joints" of the kinematics is not a list of objects'),
        ('{"links": [5]}', '"links" of the kinematics is not a list of objects'),
        ('{"links": [{"parent": "world"}]}', 'has no "id": {"parent": "world"}'),
        (
            sva_with_joint(type="ball"),
            'joint "j" has the unknown type "ball"; the types are revolute, prismatic',
        ),
        (sva_with_joint(axis={"z": 0}), 'joint "j" has no valid axis'),
        (sva_with_joint(axis={"z": "up"}), '"z" of the axis of joint "j" is not a finite number'),
        (sva_with_joint(min=None), '"min" of joint "j" is missing'),
        (sva_with_joint(max="far"), '"max" of joint "j" is not a finite number'),
        (sva_with_joint(min=91), 'joint "j" has a min of 91 above its max of 90'),
        (sva_with_joint(mimic={"joint": "k"}), 'joint "j" mimics another joint'),
        (sva_with_link(translation=[1]), '"translation" of link "l" is not an object'),
        (
            sva_with_link(translation={"x": None}),
            '"x" of the translation of link "l" is not a finite',
        ),
        (
            sva_with_link(orientation={"type": "o"}),
            'the orientation of link "l": "o" is not a type',
        ),
        (sva_with_link(orientation={"type": "quaternion", "value": 5}), "is not an object"),
        (sva_with_link(geometry="box"), '"geometry" of link "l" is not an object'),
        (
            json.dumps({"kinematic_param_type": "DH", "dhParams": [{"id": "a", "parent": "b"}]}),
            '"a" of row "a" of dhParams is missing',
        ),
    ],
    ids=lambda value: value[:40],
)
def test_invalid_kinematics_file_raises(text: str, words: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_sva(text)
    assert words in str(raised.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just("world"),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "parent", "type", "value", "x"]), inner)
    ),
    max_leaves=5,
)
keys = st.sampled_from(
    ["id", "parent", "type", "axis", "min", "max", "translation", "orientation", "geometry"]
)
entries = st.lists(st.dictionaries(keys, json_values), max_size=3)


@given(entries | json_values, entries | json_values, st.sampled_from(["SVA", "DH", None]))
def test_any_file_is_parsed_or_raises_value_error(
    links: object, joints: object, form: object
) -> None:
    data = {"kinematic_param_type": form, "links": links, "joints": joints, "dhParams": joints}
    with suppress(ValueError):
        parse_sva(json.dumps(data))


def test_error_about_a_long_text_is_short() -> None:
    with pytest.raises(ValueError, match="SVA or DH") as refused:
        parse_sva(json.dumps({"kinematic_param_type": "D" * 100_000}))
    assert len(str(refused.value)) < 2000
