"""Kinematics files in XML: the ROS robot description (URDF), in meters and radians."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cogwork.spatial.chain import WORLD, BadKinematics, Chain, ChainElement, Joint, JointType, Link
from cogwork.spatial.orientation import from_euler
from cogwork.spatial.pose import Pose, Vector, unit_vector

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

_MM_PER_M = 1000.0
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)


def parse_urdf(text: str) -> Chain:
    """Parse a robot description. Raise ValueError if it is invalid."""
    # Imported when first used: few machines have a URDF, and all would start later.
    from xml.etree import ElementTree

    if _DECLARATION.search(text):
        raise BadKinematics("the URDF declares a document type or entities; remove them")
    try:
        robot = ElementTree.fromstring(text)  # noqa: S314 - without entities it is harmless
    except (ElementTree.ParseError, ValueError) as error:
        raise BadKinematics(f"the URDF is not XML: {error}") from None
    if robot.tag != "robot":
        raise BadKinematics(f"the URDF starts with <{robot.tag}>, not with <robot>")
    return Chain.from_elements(robot.get("name") or "robot", _parse_elements(robot))


def _parse_elements(robot: Element) -> Iterator[ChainElement]:
    """Yield the chain elements.

    The parent of each link is the joint that leads to it. The parent of each joint is an additional
    link at the joint's origin.
    """
    joints = [(joint, *_parent_and_child(joint)) for joint in robot.findall("joint")]
    parent_joints = {child: _require_name(joint) for joint, _, child in joints}
    if len(parent_joints) < len(joints):
        raise BadKinematics(
            "two joints of the URDF have the same child link; "
            "each link can have only one parent joint"
        )
    for link in robot.findall("link"):
        name = _require_name(link)
        # Skip a base link that is called "world": it is the world itself.
        if name != WORLD or name in parent_joints:
            yield Link(name, parent_joints.get(name, WORLD), geometry=_parse_geometry(link))
    for joint, parent, _ in joints:
        origin = f"{_require_name(joint)}_origin"
        yield Link(origin, parent, _parse_origin(joint, f'joint "{_require_name(joint)}"'))
        yield _parse_joint(joint, origin)


def _parse_joint(element: Element, parent: str) -> Joint:
    name = _require_name(element)
    what = f'joint "{name}"'
    kind = _parse_joint_type(element, what)
    if element.find("mimic") is not None:
        raise BadKinematics(f"{what} mimics another joint, which is not supported in a chain")
    limits = (
        _parse_limits(element, what, kind)
        if kind in (JointType.REVOLUTE, JointType.PRISMATIC)
        else ()
    )
    return Joint(name, parent, kind, _parse_axis(element, what), *limits)


def _parse_joint_type(element: Element, what: str) -> JointType:
    try:
        return JointType(element.get("type", ""))
    except ValueError:
        raise BadKinematics(
            f'{what} has the unknown type "{element.get("type", "")}"; '
            "the types are revolute, prismatic, continuous and fixed"
        ) from None


def _parse_limits(element: Element, what: str, kind: JointType) -> tuple[float, float]:
    limit = element.find("limit")
    if limit is None:
        raise BadKinematics(f"{what} has no <limit>; a {kind} joint needs one")
    scale = _MM_PER_M if kind == JointType.PRISMATIC else 1.0
    low, high = (
        scale * _parse_number(limit.get(side, "0"), f"the {side} limit of {what}")
        for side in ("lower", "upper")
    )
    if low > high:
        raise BadKinematics(f"the lower limit of {what} is above the upper one")
    return low, high


def _parse_axis(element: Element, what: str) -> Vector:
    axis = element.find("axis")
    if axis is None:
        return (1.0, 0.0, 0.0)
    try:
        return unit_vector(_parse_triple(axis, "xyz", f"the axis of {what}"))
    except ValueError as error:
        raise BadKinematics(f"{what} has no valid axis: {error}") from None


def _parse_origin(element: Element, what: str) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose.identity()
    x, y, z = _parse_triple(origin, "xyz", f"the origin of {what}")
    roll, pitch, yaw = _parse_triple(origin, "rpy", f"the origin of {what}")
    return Pose((x * _MM_PER_M, y * _MM_PER_M, z * _MM_PER_M), from_euler(roll, pitch, yaw))


def _parse_geometry(link: Element) -> Mapping[str, object] | None:
    """Convert the first collision geometry to the form of SVA files. Meshes are ignored."""
    collision = link.find("collision")
    shape = collision.find("geometry/*") if collision is not None else None
    if collision is None or shape is None:
        return None
    what = f'link "{_require_name(link)}"'
    sizes = _parse_shape(shape, what)
    if sizes is None:
        return None
    pose = _parse_origin(collision, what)
    rotation = pose.rotation
    value = {"w": rotation.w, "x": rotation.x, "y": rotation.y, "z": rotation.z}
    return {
        **sizes,
        "translation": dict(zip("xyz", pose.point, strict=True)),
        "orientation": {"type": "quaternion", "value": value},
    }


def _parse_shape(shape: Element, what: str) -> dict[str, object] | None:
    if shape.tag == "box":
        x, y, z = (_MM_PER_M * side for side in _parse_triple(shape, "size", f"the box of {what}"))
        return {"type": "box", "x": x, "y": y, "z": z}
    if shape.tag not in ("sphere", "cylinder"):
        return None
    radius = _parse_number(shape.get("radius", ""), f"the radius of {what}")
    if shape.tag == "sphere":
        return {"type": "sphere", "r": radius * _MM_PER_M}
    length = _parse_number(shape.get("length", ""), f"the length of {what}")
    return {"type": "cylinder", "r": radius * _MM_PER_M, "l": length * _MM_PER_M}


def _parent_and_child(joint: Element) -> tuple[str, str]:
    ends = [joint.find(end) for end in ("parent", "child")]
    names = [end.get("link", "") if end is not None else "" for end in ends]
    if not all(names):
        raise BadKinematics(
            f'joint "{_require_name(joint)}" of the URDF has no <parent> or no <child> link'
        )
    return names[0], names[1]


def _require_name(element: Element) -> str:
    name = element.get("name")
    if not name:
        raise BadKinematics(f"a <{element.tag}> of the URDF has no name")
    return name


def _parse_triple(element: Element, attribute: str, what: str) -> Vector:
    words = element.get(attribute, "0 0 0").split()
    if len(words) != 3:
        raise BadKinematics(f'"{attribute}" of {what} is not three numbers')
    x, y, z = (_parse_number(word, what) for word in words)
    return x, y, z


def _parse_number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    # Check the value in millimeters, which must be finite, too.
    if not math.isfinite(value * _MM_PER_M):
        raise BadKinematics(f'{what} contains "{text}", which is not a finite number')
    return value
