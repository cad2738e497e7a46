"""Kinematics files in JSON: links and joints (SVA), or a Denavit-Hartenberg table (DH)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping

from cogwork.spatial.chain import BadKinematics, Chain, Joint, Kind, Link, Step
from cogwork.spatial.orientation import from_axis_angle, number, read_orientation
from cogwork.spatial.pose import Pose, Quaternion, Vector, unit

# Other readers of the format know no joint without limits: a hundred turns, or a kilometre.
_MANY_TURNS = 36_000.0
_FAR_MM = 1_000_000.0

Object = Mapping[str, object]


def read_sva(text: str) -> Chain:
    """A chain from a kinematics file. ValueError says what is wrong with the file."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadKinematics(f"the kinematics are not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadKinematics("the kinematics are not a JSON object")
    return Chain.of(str(data.get("name") or "chain"), _steps(data))


def write_sva(chain: Chain) -> str:
    """The chain as a kinematics file that `read_sva` and others read."""
    links: list[Object] = []
    joints: list[Object] = []
    for step in chain.steps:
        if isinstance(step, Joint) and step.moves:
            joints.append(_written_joint(step))
        else:
            links.append(_written_link(step))
    data = {"name": chain.name, "kinematic_param_type": "SVA", "links": links, "joints": joints}
    return json.dumps(data, indent=2, allow_nan=False)


def _steps(data: Object) -> Iterator[Step]:
    form = data.get("kinematic_param_type", "SVA")
    if form == "SVA":
        yield from map(_link, _objects(data, "links"))
        yield from map(_joint, _objects(data, "joints"))
    elif form == "DH":
        for row in _objects(data, "dhParams"):
            yield from _dh(row)
    else:
        raise BadKinematics(f'"kinematic_param_type" is SVA or DH, not {json.dumps(form)}')


def _link(data: Object) -> Link:
    what = f'link "{_text(data, "id")}"'
    translation = _vector(_object(data, "translation", what), f"the translation of {what}")
    geometry = _object(data, "geometry", what)
    return Link(
        _text(data, "id"),
        _text(data, "parent"),
        Pose(translation, _orientation(_object(data, "orientation", what), what)),
        geometry or None,
    )


def _joint(data: Object) -> Joint:
    what = f'joint "{_text(data, "id")}"'
    kind = _kind(data, what)
    if data.get("mimic"):
        raise BadKinematics(f"{what} mimics another joint, which no serial chain can do")
    limits = _limits(data, what, turns=kind == Kind.REVOLUTE) if _is_limited(kind) else ()
    return Joint(_text(data, "id"), _text(data, "parent"), kind, _axis(data, what, kind), *limits)


def _kind(data: Object, what: str) -> Kind:
    try:
        return Kind(str(data.get("type")))
    except ValueError:
        raise BadKinematics(
            f"{what} has type {json.dumps(data.get('type'))}; "
            "there are revolute, prismatic, continuous and fixed"
        ) from None


def _is_limited(kind: Kind) -> bool:
    return kind in (Kind.REVOLUTE, Kind.PRISMATIC)


def _limits(data: Object, what: str, *, turns: bool) -> tuple[float, float]:
    low, high = (_required(data, key, what) for key in ("min", "max"))
    if low > high:
        raise BadKinematics(f"{what} goes from {low:g} to {high:g}: its min is above its max")
    return (math.radians(low), math.radians(high)) if turns else (low, high)


def _axis(data: Object, what: str, kind: Kind) -> Vector:
    if kind == Kind.FIXED:
        return (0.0, 0.0, 1.0)
    try:
        return unit(_vector(_object(data, "axis", what), f"the axis of {what}"))
    except ValueError as error:
        raise BadKinematics(f"{what} has no axis: {error}") from None


def _dh(row: Object) -> tuple[Joint, Link]:
    """A turn about z, then along z by d, along the new x by a, and about x by alpha."""
    name = _text(row, "id")
    what = f'row "{name}" of dhParams'
    a, d, alpha = (_required(row, key, what) for key in ("a", "d", "alpha"))
    about_x = from_axis_angle(math.radians(alpha), 1.0, 0.0, 0.0)
    low, high = _limits(row, what, turns=True)
    joint = Joint(f"{name}_j", _text(row, "parent"), Kind.REVOLUTE, (0.0, 0.0, 1.0), low, high)
    return joint, Link(name, joint.id, Pose((a, 0.0, d), about_x))


def _orientation(data: Object, what: str) -> Quaternion:
    value = data.get("value")
    if value is not None and not isinstance(value, dict):
        raise BadKinematics(f'the "value" of the orientation of {what} is not an object')
    try:
        return read_orientation(str(data.get("type") or ""), value)
    except ValueError as error:
        raise BadKinematics(f"the orientation of {what}: {error}") from None


def _vector(data: Object, what: str) -> Vector:
    x, y, z = (number(f'"{key}" of {what}', data.get(key, 0.0)) for key in "xyz")
    return x, y, z


def _required(data: Object, key: str, what: str) -> float:
    if data.get(key) is None:
        raise BadKinematics(f'"{key}" of {what} is missing')
    return number(f'"{key}" of {what}', data[key])


def _text(data: Object, key: str) -> str:
    text = data.get(key)
    if not isinstance(text, str) or not text:
        raise BadKinematics(f'a link or joint has no "{key}": {json.dumps(data)[:80]}')
    return text


def _object(data: Object, key: str, what: str) -> Object:
    """The object under that key; empty when there is none."""
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadKinematics(f'"{key}" of {what} is not an object')
    return value


def _objects(data: Object, key: str) -> Iterable[Object]:
    items = data.get(key) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadKinematics(f'"{key}" of the kinematics is not a list of objects')
    return items


def _written_link(step: Step) -> Object:
    pose = step.pose if isinstance(step, Link) else Pose.zero()
    data: dict[str, object] = {
        "id": step.id,
        "parent": step.parent,
        "translation": _written(pose.point),
    }
    if pose.turned != Quaternion.identity():
        # Not an orientation vector: other readers lose its direction close to straight up.
        turned = pose.turned
        value = {"w": turned.w, "x": turned.x, "y": turned.y, "z": turned.z}
        data["orientation"] = {"type": "quaternion", "value": value}
    if isinstance(step, Link) and step.geometry:
        data["geometry"] = dict(step.geometry)
    return data


def _written_joint(joint: Joint) -> Object:
    low, high = map(math.degrees, joint.limits) if joint.turns else joint.limits
    most = _MANY_TURNS if joint.turns else _FAR_MM
    return {
        "id": joint.id,
        "type": str(Kind.REVOLUTE if joint.turns else Kind.PRISMATIC),
        "parent": joint.parent,
        "axis": _written(joint.axis),
        "min": max(low, -most),
        "max": min(high, most),
    }


def _written(vector: Vector) -> Object:
    return dict(zip("xyz", vector, strict=True))
