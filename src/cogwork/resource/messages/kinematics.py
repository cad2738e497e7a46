"""Parse the reply of `get_kinematics`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cogwork.spatial.kinematics import Chain, parse_sva, parse_urdf

_URDF = 2
"""The value of KINEMATICS_FILE_FORMAT_URDF."""


def read_kinematics(reply: Sequence[Any]) -> Chain:
    """Parse the kinematics file in a reply, whose first two elements are the format and the file.
    Raise ValueError if the file is invalid."""
    file_format, data, *_ = reply
    parse = parse_urdf if file_format == _URDF else parse_sva
    return parse(bytes(data).decode())
