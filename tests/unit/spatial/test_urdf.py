"""URDF files: meters become millimeters, and invalid chains are refused."""

from __future__ import annotations

import math

import pytest

from cogwork.spatial.kinematics import JointLimits, JointType, parse_urdf

LIFT = """<?xml version="1.0" encoding="utf-8"?>
<robot name="lift">
  <link name="base">
    <visual><geometry><mesh filename="base.stl"/></geometry></visual>
    <collision>
      <origin xyz="0 0 0.05" rpy="0 0 1.5707963267948966"/>
      <geometry><box size="0.1 0.2 0.3"/></geometry>
    </collision>
  </link>
  <link name="mast">
    <collision><geometry><cylinder radius="0.02" length="0.5"/></geometry></collision>
  </link>
  <link name="head"><collision><geometry><sphere radius="0.03"/></geometry></collision></link>
  <link name="tip"><collision><geometry><mesh filename="tip.stl"/></geometry></collision></link>
  <joint name="turn" type="continuous">
    <parent link="base"/><child link="mast"/>
    <origin xyz="0 0 0.1"/><axis xyz="0 0 1"/>
  </joint>
  <joint name="rise" type="prismatic">
    <parent link="mast"/><child link="head"/>
    <axis xyz="0 0 -1"/><limit lower="-0.5" upper="0.25" effort="1" velocity="1"/>
  </joint>
  <joint name="hold" type="fixed">
    <parent link="head"/><child link="tip"/><origin xyz="0.2 0 0" rpy="0 1.5707963267948966 0"/>
  </joint>
</robot>
"""


def test_urdf_becomes_a_chain() -> None:
    chain = parse_urdf(LIFT)
    assert chain.name == "lift"
    assert [joint.id for joint in chain.joints] == ["turn", "rise"]
    assert [joint.kind for joint in chain.joints] == [JointType.CONTINUOUS, JointType.PRISMATIC]
    assert chain.limits == (JointLimits(-math.inf, math.inf), JointLimits(-500, 250))
    end = chain.pose([math.pi / 2, -100])
    assert end.point == pytest.approx((0, 200, 200))
    assert end.rotation.rotate((0, 0, 1)) == pytest.approx((0, 1, 0))
    assert chain.poses([0, 0])["head"].point == pytest.approx((0, 0, 100))


def test_shapes_are_in_millimeters() -> None:
    shapes = {link.id: link.geometry for link in parse_urdf(LIFT).links}
    base = shapes["base"]
    assert base is not None
    assert {key: base[key] for key in ("type", "x", "y", "z")} == {
        "type": "box",
        "x": 100,
        "y": 200,
        "z": 300,
    }
    assert base["translation"] == {"x": 0, "y": 0, "z": 50}
    assert base["orientation"] == {
        "type": "quaternion",
        "value": pytest.approx({"w": math.sqrt(0.5), "x": 0, "y": 0, "z": math.sqrt(0.5)}),
    }
    mast, head = shapes["mast"], shapes["head"]
    assert mast is not None
    assert (mast["type"], mast["r"], mast["l"]) == ("cylinder", 20, 500)
    assert head is not None
    assert (head["type"], head["r"]) == ("sphere", 30)
    assert shapes["tip"] is None


def test_base_named_world_is_the_world() -> None:
    chain = parse_urdf(LIFT.replace('"base"', '"world"'))
    assert chain.pose([0, 0]).point == pytest.approx((200, 0, 100))


def test_axis_defaults_to_x() -> None:
    chain = parse_urdf(LIFT.replace('<axis xyz="0 0 1"/>', ""))
    assert chain.joints[0].axis == (1, 0, 0)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("<robot", "<!DOCTYPE x [<!ENTITY a 'b'>]><robot", "declares a document type or entities"),
        ("</robot>", "", "not XML"),
        ("robot", "model", "starts with <model>"),
        (
            'type="fixed"',
            'type="floating"',
            'joint "hold" has the unknown type "floating"; the types are',
        ),
        ('type="fixed"', 'type="revolute"', 'joint "hold" has no <limit>'),
        ('<parent link="head"/>', '<parent link="mast"/>', "branches"),
        ('<parent link="head"/>', '<parent link="tip"/>', "has a cycle"),
        (
            '<parent link="head"/>',
            '<parent link="neck"/>',
            'the parent "neck" of "hold_origin" in "lift" does not exist',
        ),
        ('<parent link="head"/>', "", 'joint "hold" of the URDF has no <parent> or no <child>'),
        ('<child link="tip"/>', '<child link="head"/>', "have the same child link"),
        ('<link name="base">', "<link>", "a <link> of the URDF has no name"),
        ('<axis xyz="0 0 1"/>', '<axis xyz="0 0 0"/>', 'joint "turn" has no valid axis'),
        ('<axis xyz="0 0 1"/>', '<axis xyz="0 0"/>', "not three numbers"),
        ('<axis xyz="0 0 1"/>', '<mimic joint="rise"/>', 'joint "turn" mimics another joint'),
        ('lower="-0.5"', 'lower="0.5"', 'the lower limit of joint "rise" is above'),
        ('lower="-0.5"', 'lower="low"', 'contains "low", which is not a finite number'),
        ('xyz="0 0 0.1"', 'xyz="0 0 nan"', 'contains "nan", which is not a finite number'),
        ('xyz="0 0 0.1"', 'xyz="0 0 1e306"', 'contains "1e306", which is not a finite number'),
        ('radius="0.03"', "", 'the radius of link "head" contains ""'),
    ],
    ids=lambda value: value[:30],
)
def test_invalid_urdf_raises(old: str, new: str, words: str) -> None:
    assert old in LIFT
    with pytest.raises(ValueError) as raised:
        parse_urdf(LIFT.replace(old, new))
    assert words in str(raised.value)
