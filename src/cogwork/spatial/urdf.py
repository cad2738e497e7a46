"""Kinematics files in XML: the robot description of ROS, in metres and radians."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from xml.etree import ElementTree

from cogwork.spatial.chain import WORLD, BadKinematics, Chain, Joint, Kind, Link, Step
from cogwork.spatial.orientation import from_euler
from cogwork.spatial.pose import Pose, Vector, unit

_MM_PER_M = 1000.0
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)

Element = ElementTree.Element


def read_urdf(text: str) -> Chain:
    """A chain from a robot description. ValueError says what is wrong with it."""
    if _DECLARATION.search(text):
        raise BadKinematics("the URDF declares a document type or entities, which are not read")
    try:
        robot = ElementTree.fromstring(text)  # noqa: S314 - without entities it is harmless
    except (ElementTree.ParseError, ValueError) as error:
        raise BadKinematics(f"the URDF is not XML: {error}") from None
    if robot.tag != "robot":
        raise BadKinematics(f"the URDF starts with <{robot.tag}>, not with <robot>")
    return Chain.of(robot.get("name") or "robot", _steps(robot))


def _steps(robot: Element) -> Iterator[Step]:
    """Each link at the end of its joint, and before each joint a link to where it sits."""
    joints = [(joint, *_ends(joint)) for joint in robot.findall("joint")]
    above = {child: _name(joint) for joint, _, child in joints}
    if len(above) < len(joints):
        raise BadKinematics("two joints of the URDF carry the same link, and a chain has one way")
    for link in robot.findall("link"):
        name = _name(link)
        # A base that is already called world needs no step of its own.
        if name != WORLD or name in above:
            yield Link(name, above.get(name, WORLD), geometry=_geometry(link))
    for joint, parent, _ in joints:
        origin = f"{_name(joint)}_origin"
        yield Link(origin, parent, _origin(joint, f'joint "{_name(joint)}"'))
        yield _joint(joint, origin)


def _joint(element: Element, parent: str) -> Joint:
    name = _name(element)
    what = f'joint "{name}"'
    kind = _kind(element, what)
    if element.find("mimic") is not None:
        raise BadKinematics(f"{what} mimics another joint, which no serial chain can do")
    limits = _limits(element, what, kind) if kind in (Kind.REVOLUTE, Kind.PRISMATIC) else ()
    return Joint(name, parent, kind, _axis(element, what), *limits)


def _kind(element: Element, what: str) -> Kind:
    try:
        return Kind(element.get("type", ""))
    except ValueError:
        raise BadKinematics(
            f'{what} has type "{element.get("type", "")}"; '
            "there are revolute, prismatic, continuous and fixed"
        ) from None


def _limits(element: Element, what: str, kind: Kind) -> tuple[float, float]:
    limit = element.find("limit")
    if limit is None:
        raise BadKinematics(f"{what} has no <limit>; one that is {kind} needs it")
    scale = _MM_PER_M if kind == Kind.PRISMATIC else 1.0
    low, high = (
        scale * _number(limit.get(side, "0"), f"the {side} limit of {what}")
        for side in ("lower", "upper")
    )
    if low > high:
        raise BadKinematics(f"the lower limit of {what} is above the upper one")
    return low, high


def _axis(element: Element, what: str) -> Vector:
    axis = element.find("axis")
    if axis is None:
        return (1.0, 0.0, 0.0)
    try:
        return unit(_triple(axis, "xyz", f"the axis of {what}"))
    except ValueError as error:
        raise BadKinematics(f"{what} has no axis: {error}") from None


def _origin(element: Element, what: str) -> Pose:
    origin = element.find("origin")
    if origin is None:
        return Pose.zero()
    x, y, z = _triple(origin, "xyz", f"the origin of {what}")
    roll, pitch, yaw = _triple(origin, "rpy", f"the origin of {what}")
    return Pose((x * _MM_PER_M, y * _MM_PER_M, z * _MM_PER_M), from_euler(roll, pitch, yaw))


def _geometry(link: Element) -> Mapping[str, object] | None:
    """The first shape to collide with, as kinematics in JSON write it. Meshes are left out."""
    collision = link.find("collision")
    shape = collision.find("geometry/*") if collision is not None else None
    if collision is None or shape is None:
        return None
    what = f'link "{_name(link)}"'
    sizes = _sizes(shape, what)
    if sizes is None:
        return None
    pose = _origin(collision, what)
    turned = pose.turned
    value = {"w": turned.w, "x": turned.x, "y": turned.y, "z": turned.z}
    return {
        **sizes,
        "translation": dict(zip("xyz", pose.point, strict=True)),
        "orientation": {"type": "quaternion", "value": value},
    }


def _sizes(shape: Element, what: str) -> dict[str, object] | None:
    if shape.tag == "box":
        x, y, z = (_MM_PER_M * side for side in _triple(shape, "size", f"the box of {what}"))
        return {"type": "box", "x": x, "y": y, "z": z}
    if shape.tag not in ("sphere", "cylinder"):
        return None
    radius = _number(shape.get("radius", ""), f"the radius of {what}")
    if shape.tag == "sphere":
        return {"type": "sphere", "r": radius * _MM_PER_M}
    length = _number(shape.get("length", ""), f"the length of {what}")
    return {"type": "cylinder", "r": radius * _MM_PER_M, "l": length * _MM_PER_M}


def _ends(joint: Element) -> tuple[str, str]:
    ends = [joint.find(end) for end in ("parent", "child")]
    names = [end.get("link", "") if end is not None else "" for end in ends]
    if not all(names):
        raise BadKinematics(
            f'joint "{_name(joint)}" of the URDF lacks its <parent> or <child> link'
        )
    return names[0], names[1]


def _name(element: Element) -> str:
    name = element.get("name")
    if not name:
        raise BadKinematics(f"a <{element.tag}> of the URDF has no name")
    return name


def _triple(element: Element, attribute: str, what: str) -> Vector:
    words = element.get(attribute, "0 0 0").split()
    if len(words) != 3:
        raise BadKinematics(f'"{attribute}" of {what} is not three numbers')
    x, y, z = (_number(word, what) for word in words)
    return x, y, z


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise BadKinematics(f'{what} holds "{text}", which is not a finite number')
    return value
