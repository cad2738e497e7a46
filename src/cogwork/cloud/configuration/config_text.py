"""Configurations of parts as text, in requests and in storage."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from google.protobuf.json_format import MessageToDict, SerializeToJsonError
from google.protobuf.struct_pb2 import Struct
from viam.gen.app.v1 import app_pb2 as pb

from cogwork.config.check.key_shapes import name_section_keys
from cogwork.config.source.config_editor import MAX_EDIT_SIZE
from cogwork.core.errors import InvalidRequest

_MAX_INTEGER: Final = 1 << 53
"""The largest integer in a Struct, which stores all numbers as floating-point numbers."""

_MAX_DEPTH: Final = 100
"""Maximum depth of nested objects and lists that messages to machines can carry."""
_TOO_LARGE: Final = f"the configuration is larger than {MAX_EDIT_SIZE >> 20} MiB; split it up"


def parse_config(text: str) -> dict[str, Any]:
    """Parse a configuration. As on machines, the first of duplicate keys counts, and keys count in
    any letter case.

    Raise InvalidRequest.
    """
    try:
        found = json.loads(text, object_pairs_hook=_keep_first)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the configuration is not JSON: {error}") from None
    if not isinstance(found, dict):
        raise InvalidRequest("the configuration is not a JSON object")
    return name_section_keys(found)


def read_config_text(request: pb.UpdateRobotPartRequest) -> str | None:
    """Return the configuration in a request as text; None if the request has none.

    A configuration that is sent as text stays unchanged. Raise InvalidRequest.
    """
    if request.HasField("robot_config_json"):
        text = request.robot_config_json
    elif request.HasField("robot_config"):
        text = format_struct(request.robot_config)
    else:
        return None
    if len(text.encode()) > MAX_EDIT_SIZE:
        raise InvalidRequest(_TOO_LARGE)
    return text


def require_config(text: str) -> dict[str, Any]:
    """Return the parsed configuration.

    Raise InvalidRequest if the configuration cannot be stored or sent to machines.
    """
    if len(text.encode()) > MAX_EDIT_SIZE:
        raise InvalidRequest(_TOO_LARGE)
    found = parse_config(text)
    level: list[Any] = [found]
    for _ in range(_MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        values = [each for group in inner for each in group]
        if any(map(_is_unsuitable_number, values)):
            raise InvalidRequest("the configuration has a number that is too large, or NaN")
        level = [each for each in values if isinstance(each, dict | list)]
    if level:
        raise InvalidRequest(f"the configuration is more than {_MAX_DEPTH} levels deep")
    return found


def format_struct(config: Struct) -> str:
    try:
        return json.dumps(_restore_integers(MessageToDict(config)), indent=2, ensure_ascii=False)
    except (ValueError, SerializeToJsonError, RecursionError) as error:
        raise InvalidRequest(f"the configuration cannot be written as JSON: {error}") from None


def _restore_integers(value: Any) -> Any:
    match value:
        case dict():
            return {key: _restore_integers(each) for key, each in value.items()}
        case list():
            return [_restore_integers(each) for each in value]
        case float() if value.is_integer() and abs(value) <= _MAX_INTEGER:
            return int(value)
        case _:
            return value


def _is_unsuitable_number(value: Any) -> bool:
    return isinstance(value, int | float) and not abs(value) <= sys.float_info.max


def _keep_first(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        found.setdefault(key, value)
    return found
