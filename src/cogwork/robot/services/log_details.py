"""Additional data in the log entries of modules and clients: caller and fields.

Go programs encode each field in the format of their logger, zap. Other programs send names and
values.
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
"""The keys of a field in the format of zap."""
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
    """Return the name and the value of a field; empty for a field without a value."""
    kind = _to_int(parts["Type"])
    if kind in _WITHOUT_VALUE:
        return {}
    read = _NUMBERS.get(kind)
    value = read(_to_int(parts.get("Integer"))) if read is not None else _read_other(parts)
    return {str(parts["Key"]): value}


def _read_other(parts: Mapping[str, Any]) -> Any:
    return parts.get("String") or parts.get("Interface") or ""


def _to_int(value: Any) -> int:
    """Return an integer. Large integers may be sent as text."""
    try:
        return int(value or 0)
    except (ValueError, TypeError, OverflowError):
        return 0


def _read_float64(bits: int) -> float:
    (value,) = struct.unpack("<d", struct.pack("<Q", bits & (1 << 64) - 1))
    # Round the value: its bits were sent as a JSON number, which has lost some digits.
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
"""Functions that decode a zap field from its `Integer`, by field type. zap is a logger for Go."""
_WITHOUT_VALUE: Final = (24, 27)
"""Field types without a value: namespaces and skipped fields."""
