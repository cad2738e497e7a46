"""Configurations that clients send, as text or as a message."""

from __future__ import annotations

import json
from typing import Any, Final

from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import Struct

from cogwork.core.errors import InvalidRequest

MAX_SIZE: Final = 8 << 20
_MAX_DEPTH: Final = 100
"""Objects and lists inside of each other. The messages to machines carry no more."""
_MAX_DIGITS: Final = 300
_TOO_DEEP: Final = f"the configuration is more than {_MAX_DEPTH} levels deep"


def require_config(text: str) -> dict[str, Any]:
    """Return the configuration of a text. Raise InvalidRequest."""
    if len(text) > MAX_SIZE:
        raise InvalidRequest(f"the configuration is larger than {MAX_SIZE >> 20} MiB")
    try:
        found = json.loads(text, parse_int=_parse_integer, parse_constant=_refuse_constant)
    except ValueError as error:
        raise InvalidRequest(f"the configuration is not JSON: {error}") from None
    except RecursionError:
        raise InvalidRequest(_TOO_DEEP) from None
    if not isinstance(found, dict):
        raise InvalidRequest("the configuration is not a JSON object")
    if _is_too_deep(found):
        raise InvalidRequest(_TOO_DEEP)
    return found


def _parse_integer(text: str) -> int:
    """Messages have numbers with 64 bits, in which longer ones do not fit."""
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has more than {_MAX_DIGITS} digits")
    return int(text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def format_struct(config: Struct) -> str:
    """Return the text of a configuration that is sent as a message."""
    return json.dumps(MessageToDict(config))


def _is_too_deep(config: dict[str, Any]) -> bool:
    level: list[Any] = [config]
    for _ in range(_MAX_DEPTH):
        inner = (each.values() if isinstance(each, dict) else each for each in level)
        level = [each for values in inner for each in values if isinstance(each, dict | list)]
    return bool(level)
