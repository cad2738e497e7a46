"""Kinematics files in JSON: links and joints (SVA), or a Denavit-Hartenberg table (DH)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping

from cogwork.spatial.chain import BadKinematics, Chain, ChainElement, Joint, JointType, Link
from cogwork.spatial.orientation import from_axis_angle, parse_orientation, require_number
from cogwork.spatial.pose import Pose, Quaternion, Vector, unit_vector

# The format requires limits. Joints without limits get a hundred revolutions or a kilometer.
_UNLIMITED_DEGREES = 36_000.0
_UNLIMITED_MM = 1_000_000.0

JsonObject = Mapping[str, object]


def parse_sva(text: str) -> Chain:
    """Parse a kinematics file. Raise ValueError if it is invalid."""
    try:
        data = _load_json(text)
        return Chain.from_elements(str(data.get("name") or "chain"), _parse_elements(data))
    except RecursionError:
        raise BadKinematics("the kinematics are nested too deeply") from None


def format_sva(chain: Chain) -> str:
    """Format a chain as a kinematics file in SVA form."""
    links: list[JsonObject] = []
    joints: list[JsonObject] = []
    for element in chain.elements:
        if isinstance(element, Joint) and element.is_movable:
            joints.append(_format_joint(element))
        else:
            links.append(_format_link(element))
    data = {"name": chain.name, "kinematic_param_type": "SVA", "links": links, "joints": joints}
    return json.dumps(data, indent=2, allow_nan=False)


def _load_json(text: str) -> JsonObject:
    try:
        data = json.loads(text, parse_float=_parse_finite, parse_constant=_parse_finite)
    except BadKinematics:
        raise
    except (ValueError, RecursionError) as error:
        raise BadKinematics(f"the kinematics are not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadKinematics("the kinematics are not a JSON object")
    return data


def _parse_finite(text: str) -> float:
    """Parse a float. Reject infinity and NaN, which `format_sva` cannot write."""
    value = float(text)
    if not math.isfinite(value):
        raise BadKinematics(f"the kinematics contain {text}, which is not a finite number")
    return value


def _parse_elements(data: JsonObject) -> Iterator[ChainElement]:
    form = data.get("kinematic_param_type", "SVA")
    if form == "SVA":
        yield from map(_parse_link, _get_objects(data, "links"))
        yield from map(_parse_joint, _get_objects(data, "joints"))
    elif form == "DH":
        for row in _get_objects(data, "dhParams"):
            yield from _parse_dh_row(row)
    else:
        raise BadKinematics(f'"kinematic_param_type" must be SVA or DH, not {json.dumps(form)}')


def _parse_link(data: JsonObject) -> Link:
    what = f'link "{_require_text(data, "id")}"'
    translation = _parse_vector(
        _get_object(data, "translation", what), f"the translation of {what}"
    )
    geometry = _get_object(data, "geometry", what)
    return Link(
        _require_text(data, "id"),
        _require_text(data, "parent"),
        Pose(translation, _parse_rotation(_get_object(data, "orientation", what), what)),
        geometry or None,
    )


def _parse_joint(data: JsonObject) -> Joint:
    what = f'joint "{_require_text(data, "id")}"'
    kind = _parse_joint_type(data, what)
    if data.get("mimic"):
        raise BadKinematics(f"{what} mimics another joint, which is not supported in a chain")
    limits = (
        _parse_limits(data, what, rotary=kind == JointType.REVOLUTE) if _is_limited(kind) else ()
    )
    return Joint(
        _require_text(data, "id"),
        _require_text(data, "parent"),
        kind,
        _parse_axis(data, what, kind),
        *limits,
    )


def _parse_joint_type(data: JsonObject, what: str) -> JointType:
    try:
        return JointType(str(data.get("type")))
    except ValueError:
        raise BadKinematics(
            f"{what} has the unknown type {json.dumps(data.get('type'))}; "
            "the types are revolute, prismatic, continuous and fixed"
        ) from None


def _is_limited(kind: JointType) -> bool:
    return kind in (JointType.REVOLUTE, JointType.PRISMATIC)


def _parse_limits(data: JsonObject, what: str, *, rotary: bool) -> tuple[float, float]:
    low, high = (_require_field(data, key, what) for key in ("min", "max"))
    if low > high:
        raise BadKinematics(f"{what} has a min of {low:g} above its max of {high:g}")
    return (math.radians(low), math.radians(high)) if rotary else (low, high)


def _parse_axis(data: JsonObject, what: str, kind: JointType) -> Vector:
    if kind == JointType.FIXED:
        return (0.0, 0.0, 1.0)
    try:
        return unit_vector(_parse_vector(_get_object(data, "axis", what), f"the axis of {what}"))
    except ValueError as error:
        raise BadKinematics(f"{what} has no valid axis: {error}") from None


def _parse_dh_row(row: JsonObject) -> tuple[Joint, Link]:
    """Convert a row: rotate about z, move along z by d and along the new x by a, then rotate
    about that x by alpha."""
    name = _require_text(row, "id")
    what = f'row "{name}" of dhParams'
    a, d, alpha = (_require_field(row, key, what) for key in ("a", "d", "alpha"))
    about_x = from_axis_angle(math.radians(alpha), 1.0, 0.0, 0.0)
    low, high = _parse_limits(row, what, rotary=True)
    joint = Joint(
        f"{name}_j", _require_text(row, "parent"), JointType.REVOLUTE, (0.0, 0.0, 1.0), low, high
    )
    return joint, Link(name, joint.id, Pose((a, 0.0, d), about_x))


def _parse_rotation(data: JsonObject, what: str) -> Quaternion:
    value = data.get("value")
    if value is not None and not isinstance(value, dict):
        raise BadKinematics(f'the "value" of the orientation of {what} is not an object')
    try:
        return parse_orientation(str(data.get("type") or ""), value)
    except ValueError as error:
        raise BadKinematics(f"the orientation of {what}: {error}") from None


def _parse_vector(data: JsonObject, what: str) -> Vector:
    x, y, z = (require_number(f'"{key}" of {what}', data.get(key, 0.0)) for key in "xyz")
    return x, y, z


def _require_field(data: JsonObject, key: str, what: str) -> float:
    if data.get(key) is None:
        raise BadKinematics(f'"{key}" of {what} is missing')
    return require_number(f'"{key}" of {what}', data[key])


def _require_text(data: JsonObject, key: str) -> str:
    text = data.get(key)
    if not isinstance(text, str) or not text:
        raise BadKinematics(f'a link or joint has no "{key}": {json.dumps(data)[:80]}')
    return text


def _get_object(data: JsonObject, key: str, what: str) -> JsonObject:
    """Return the object under a key, or an empty one if the key is missing."""
    value = data.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadKinematics(f'"{key}" of {what} is not an object')
    return value


def _get_objects(data: JsonObject, key: str) -> Iterable[JsonObject]:
    items = data.get(key) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise BadKinematics(f'"{key}" of the kinematics is not a list of objects')
    return items


def _format_link(element: ChainElement) -> JsonObject:
    pose = element.pose if isinstance(element, Link) else Pose.identity()
    data: dict[str, object] = {
        "id": element.id,
        "parent": element.parent,
        "translation": _format_vector(pose.point),
    }
    if pose.rotation != Quaternion.identity():
        # Write a quaternion: other parsers lose the direction of nearly vertical orientation
        # vectors.
        rotation = pose.rotation
        value = {"w": rotation.w, "x": rotation.x, "y": rotation.y, "z": rotation.z}
        data["orientation"] = {"type": "quaternion", "value": value}
    if isinstance(element, Link) and element.geometry:
        data["geometry"] = dict(element.geometry)
    return data


def _format_joint(joint: Joint) -> JsonObject:
    low, high = map(math.degrees, joint.limits) if joint.is_rotary else joint.limits
    unlimited = _UNLIMITED_DEGREES if joint.is_rotary else _UNLIMITED_MM
    return {
        "id": joint.id,
        "type": str(JointType.REVOLUTE if joint.is_rotary else JointType.PRISMATIC),
        "parent": joint.parent,
        "axis": _format_vector(joint.axis),
        "min": max(low, -unlimited),
        "max": min(high, unlimited),
    }


def _format_vector(vector: Vector) -> JsonObject:
    return dict(zip("xyz", vector, strict=True))
