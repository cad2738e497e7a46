"""Converts a machine's configuration to the message that clouds send, and back.

Most fields have the same names, so only the other fields are converted here, and protobuf's JSON
format handles the rest. Settings that only Cogwork supports are dropped, because the message has no
fields for them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from viam.gen.app.v1.robot_pb2 import RobotConfig

from cogwork.core import duration
from cogwork.core.errors import InvalidName, InvalidRequest
from cogwork.core.signals import parse_signal
from cogwork.graph.name import Api, ResourceName
from cogwork.resource.messages.pose_proto import geometry_to_proto

Json = dict[str, Any]
Convert = Callable[[Any], Any]

_VECTOR: Final = {"x": "x", "y": "y", "z": "z", "th": "theta"}
_ORIENTATIONS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "ov_degrees": ("vector_degrees", _VECTOR),
    "ov_radians": ("vector_radians", _VECTOR),
    "axis_angles": ("axis_angles", _VECTOR),
    "euler_angles": ("euler_angles", {each: each for each in ("roll", "pitch", "yaw")}),
    "quaternion": ("quaternion", {each: each for each in "wxyz"}),
}
"""For each type of orientation in a configuration: the message field, and the names of the numbers
in that field."""
_CREDENTIALS: Final = {
    "api-key": "CREDENTIALS_TYPE_API_KEY",
    "robot-location-secret": "CREDENTIALS_TYPE_ROBOT_LOCATION_SECRET",
    "robot-secret": "CREDENTIALS_TYPE_ROBOT_SECRET",
}
_DISABLED: Final = {"type": "cogwork", "attributes": {"disabled": True}}
"""Marks a resource as disabled. The message has no field for this, so the mark is one of the
resource's `service_configs`."""
_DURATIONS: Final = {
    "modules": ("first_run_timeout",),
    "processes": ("stop_timeout",),
    "remotes": ("connection_check_interval", "reconnect_interval"),
}


def to_message(config: Mapping[str, Any]) -> RobotConfig:
    """Return the message of a configuration. Raise InvalidRequest if it cannot be converted."""
    try:
        return _to_message(config)
    except InvalidRequest:
        raise
    except (ParseError, InvalidName, AttributeError, TypeError, KeyError, ValueError) as error:
        # A value has the wrong type. The check of the configuration reports this in more detail.
        raise InvalidRequest(f"cannot convert the configuration to a message: {error}") from None


def _to_message(config: Mapping[str, Any]) -> RobotConfig:
    found: Json = json.loads(json.dumps(config))
    for section in ("components", "services", "remotes"):
        for each in _items(found, section):
            _change(each, "frame", _frame_to_message)
            _add_legacy_api(each)
            if each.get("disabled") is True:
                each.setdefault("service_configs", []).append(_DISABLED)
    for section, names in _DURATIONS.items():
        for each in _items(found, section):
            for name in names:
                _change(each, name, _duration_to_message)
    for each in _items(found, "modules"):
        _rename(each, "executable_path", "path")
    for each in _items(found, "processes"):
        _change(each, "stop_signal", _signal_to_message)
    for each in _items(found, "remotes"):
        _change_in(each.get("auth"), "credentials", _credentials_to_message)
    network = found.get("network")
    _change_in(_member(network, "sessions"), "heartbeat_window", _duration_to_message)
    for each in _items(network, "traffic_tunnel_endpoints"):
        _change(each, "connection_timeout", _duration_to_message)
    for each in _items(found.get("auth"), "handlers"):
        _change(each, "type", lambda kind: _CREDENTIALS.get(kind, kind))
    _change_in(
        _member(found.get("auth"), "external_auth_config"), "jwks", lambda jwks: {"json": jwks}
    )
    _change_in(found.get("maintenance"), "sensor_name", _name_to_message)
    _rename(found.get("tracing"), "otlpendpoint", "otlp_endpoint")
    return ParseDict(found, RobotConfig(), ignore_unknown_fields=True)


def from_message(message: RobotConfig) -> Json:
    """Return the configuration in a message."""
    found: Json = MessageToDict(message, preserving_proto_field_name=True)
    for section in ("components", "services", "remotes"):
        for each in _items(found, section):
            _change(each, "frame", _frame_from_message)
            if _DISABLED in each.get("service_configs", ()):
                each["service_configs"].remove(_DISABLED)
                each["disabled"] = True
            if each.get("api"):
                each.pop("namespace", None)
                each.pop("type", None)
    for each in _items(found, "modules"):
        _rename(each, "path", "executable_path")
    for each in _items(found, "remotes"):
        _change_in(each.get("auth"), "credentials", _credentials_from_message)
    kinds = {value: key for key, value in _CREDENTIALS.items()}
    for each in _items(found.get("auth"), "handlers"):
        _change(each, "type", lambda kind: kinds.get(kind, kind))
    _change_in(
        _member(found.get("auth"), "external_auth_config"), "jwks", lambda jwks: jwks["json"]
    )
    _change_in(found.get("maintenance"), "sensor_name", _name_from_message)
    _rename(found.get("tracing"), "otlp_endpoint", "otlpendpoint")
    return found


def _items(found: Any, section: str) -> list[Json]:
    items = found.get(section) if isinstance(found, dict) else None
    return [each for each in items if isinstance(each, dict)] if isinstance(items, list) else []


def _member(found: Any, key: str) -> Any:
    return found.get(key) if isinstance(found, dict) else None


def _change(found: Json, key: str, convert: Convert) -> None:
    if found.get(key) is not None:
        found[key] = convert(found[key])


def _change_in(found: Any, key: str, convert: Convert) -> None:
    if isinstance(found, dict):
        _change(found, key, convert)


def _rename(found: Any, old: str, new: str) -> None:
    if isinstance(found, dict) and old in found:
        found[new] = found.pop(old)


def _add_legacy_api(resource: Json) -> None:
    """Add the namespace and the type, by which older servers identify an API."""
    try:
        api = Api.parse(resource["api"])
    except (KeyError, TypeError, InvalidName):
        return
    resource.setdefault("namespace", api.namespace)
    resource.setdefault("type", api.subtype)


def _duration_to_message(value: Any) -> str:
    try:
        return f"{duration.parse(value):.9f}s"
    except (ValueError, TypeError, AttributeError) as error:
        raise InvalidRequest(f"{value!r} is not a duration: {error}") from None


def _signal_to_message(value: Any) -> int:
    try:
        return parse_signal(value)
    except ValueError as error:
        raise InvalidRequest(str(error)) from None


def _name_to_message(name: str) -> Json:
    found = ResourceName.parse(name)
    return {
        "namespace": found.api.namespace,
        "type": found.api.kind,
        "subtype": found.api.subtype,
        "name": found.name,
    }


def _name_from_message(name: Json) -> str:
    api = Api(name.get("namespace", ""), name.get("type", ""), name.get("subtype", ""))
    return str(ResourceName(api, name.get("name", "")))


def _credentials_to_message(credentials: Json) -> Json:
    return {**credentials, "type": _CREDENTIALS.get(credentials.get("type", ""), 0)}


def _credentials_from_message(credentials: Json) -> Json:
    kinds = {value: key for key, value in _CREDENTIALS.items()}
    return {**credentials, "type": kinds.get(credentials.get("type", ""), "")}


def _frame_to_message(frame: Json) -> Json:
    found = {key: value for key, value in frame.items() if key != "id"}
    orientation = found.pop("orientation", None) or {}
    if (kind := orientation.get("type")) in _ORIENTATIONS:
        field, names = _ORIENTATIONS[kind]
        value = {key.lower(): each for key, each in (orientation.get("value") or {}).items()}
        found["orientation"] = {
            field: {number: value[name] for name, number in names.items() if name in value}
        }
    if found.get("geometry") is not None:
        found["geometry"] = _geometry_to_message(found["geometry"])
    return found


def _frame_from_message(frame: Json) -> Json:
    found = dict(frame)
    orientation = found.pop("orientation", {})
    for kind, (field, names) in _ORIENTATIONS.items():
        if field in orientation:
            value = {name: orientation[field].get(number, 0.0) for name, number in names.items()}
            found["orientation"] = {"type": kind, "value": value}
    if "geometry" in found:
        found["geometry"] = _geometry_from_message(found["geometry"])
    return found


def _geometry_to_message(geometry: Json) -> Json:
    try:
        found = geometry_to_proto(geometry, str(geometry.get("label", "")))
    except ValueError as error:
        raise InvalidRequest(f"a geometry is not valid: {error}") from None
    return MessageToDict(found, preserving_proto_field_name=True)


def _geometry_from_message(geometry: Json) -> Json:
    center = geometry.get("center", {})
    found: Json = {"label": geometry["label"]} if geometry.get("label") else {}
    found["translation"] = {axis: center.get(axis, 0.0) for axis in "xyz"}
    found["orientation"] = {
        "type": "ov_degrees",
        "value": {
            **{axis: center.get(f"o_{axis}", 0.0) for axis in "xyz"},
            "th": center.get("theta", 0.0),
        },
    }
    if "box" in geometry:
        return {"type": "box", **geometry["box"].get("dims_mm", {}), **found}
    if "capsule" in geometry:
        capsule = geometry["capsule"]
        return {"type": "capsule", "r": capsule["radius_mm"], "l": capsule["length_mm"], **found}
    radius = geometry.get("sphere", {}).get("radius_mm", 0.0)
    return {"type": "sphere", "r": radius, **found} if radius else {"type": "point", **found}
