"""What the log entries of modules and clients carry besides their text: caller and fields.

Programs in Go send each field as the parts of its logger's own type. Others send names and values.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from google.protobuf.struct_pb2 import Struct

from cogwork.logs.entry import format_timestamp
from cogwork.resource.messages.structs import to_dict

_KEYS: Final = frozenset({"Key", "Type", "Integer", "String", "Interface"})
"""The parts of a field in Go."""
_NANOSECONDS: Final = 1_000_000_000
_MAX_SECONDS: Final = 253_402_300_800
"""The year 10000 in seconds since 1970, which timestamps cannot represent."""


def read_place(caller: Struct) -> tuple[str, int]:
    """Return the file and the line of a log call, such as `lamp/main.go` and 42."""
    fields = caller.fields
    file = fields["File"].string_value if "File" in fields else ""
    line = fields["Line"].number_value if "Line" in fields else 0
    short = "/".join(file.replace("\\", "/").split("/")[-2:])
    return short, int(line) if 0 < line < 1e9 else 0


def read_fields(fields: Iterable[Struct]) -> dict[str, Any]:
    """Return the fields of an entry by name."""
    found: dict[str, Any] = {}
    for each in fields:
        values = to_dict(each)
        if "Key" in values and "Type" in values and values.keys() <= _KEYS:
            found.update(_read_go_field(values))
        else:
            found.update(values)
    return found


def _read_go_field(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the name and the value of a field; nothing for one without a value."""
    kind = _to_int(parts["Type"])
    if kind in _WITHOUT_VALUE:
        return {}
    read = _NUMBERS.get(kind)
    value = read(_to_int(parts.get("Integer"))) if read is not None else _read_other(parts)
    return {str(parts["Key"]): value}


def _read_other(parts: Mapping[str, Any]) -> Any:
    return parts.get("String") or parts.get("Interface") or ""


def _to_int(value: Any) -> int:
    """Return an integer, which large ones may be sent as text."""
    try:
        return int(value or 0)
    except (ValueError, TypeError, OverflowError):
        return 0


def _read_float64(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))
    # The bits have lost some digits on their way, because JSON has no integers.
    return float(f"{value:.12g}") if math.isfinite(value) else value


def _read_float32(bits: int) -> float:
    (value,) = struct.unpack("<f", struct.pack("<I", bits & (1 << 32) - 1))
    return float(f"{value:.7g}") if math.isfinite(value) else value


def _read_duration(nanoseconds: int) -> str:
    return f"{nanoseconds / _NANOSECONDS:.9g}s"


def _read_time(nanoseconds: int) -> str | int:
    seconds = nanoseconds / _NANOSECONDS
    return format_timestamp(seconds) if 0 <= seconds < _MAX_SECONDS else nanoseconds


_NUMBERS: Final[Mapping[int, Callable[[int], Any]]] = {
    4: bool,
    8: _read_duration,
    9: _read_float64,
    10: _read_float32,
    **dict.fromkeys(range(11, 15), int),
    16: _read_time,
    **dict.fromkeys(range(18, 23), int),
}
"""How to read the types of zap, the logger of Go programs, whose values are in `Integer`."""
_WITHOUT_VALUE: Final = (24, 27)
"""Namespaces and skipped fields."""
