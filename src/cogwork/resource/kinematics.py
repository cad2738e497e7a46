"""How something that moves is built, as `get_kinematics` tells it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cogwork.spatial.kinematics import Chain, read_sva, read_urdf

_URDF = 2
"""KINEMATICS_FILE_FORMAT_URDF"""


def read_kinematics(told: Sequence[Any]) -> Chain:
    """The format and the description, and more after them. Raises ValueError."""
    form, description, *_ = told
    read = read_urdf if form == _URDF else read_sva
    return read(bytes(description).decode())
