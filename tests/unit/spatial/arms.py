"""A six-axis arm in each of the three file formats, from the same numbers."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

from cogwork.spatial.kinematics import Chain, parse_sva


class Row(NamedTuple):
    a: float
    d: float
    alpha: float


SIX_AXES = (
    Row(0, 162.5, 90),
    Row(-425, 0, 0),
    Row(-392.2, 0, 0),
    Row(0, 133.3, 90),
    Row(0, 99.7, -90),
    Row(0, 99.6, 0),
)


def six_axis_dh(limit: float = 360) -> str:
    rows = [
        {
            "id": f"link{number}",
            "parent": f"link{number - 1}" if number > 1 else "world",
            **row._asdict(),
            "min": -limit,
            "max": limit,
        }
        for number, row in enumerate(SIX_AXES, 1)
    ]
    return json.dumps({"name": "six", "kinematic_param_type": "DH", "dhParams": rows})


def six_axis_sva(limit: float = 360) -> str:
    """Write the joints before the links, both reversed: their parents define the order."""
    links = [
        {
            "id": f"link{number}",
            "parent": f"joint{number}",
            "translation": {"x": row.a, "y": 0, "z": row.d},
            "orientation": {
                "type": "euler_angles",
                "value": {"roll": math.radians(row.alpha), "pitch": 0, "yaw": 0},
            },
            "geometry": {"type": "capsule", "r": 40, "l": 200},
        }
        for number, row in enumerate(SIX_AXES, 1)
    ]
    joints = [
        {
            "id": f"joint{number}",
            "type": "revolute",
            "parent": f"link{number - 1}" if number > 1 else "world",
            "axis": {"x": 0, "y": 0, "z": 2},
            "min": -limit,
            "max": limit,
        }
        for number in range(1, 7)
    ]
    return json.dumps(
        {
            "name": "six",
            "kinematic_param_type": "SVA",
            "joints": joints[::-1],
            "links": links[::-1],
        }
    )


def six_axis_urdf(limit: float = 360) -> str:
    """Write URDF, where a joint is at the end of the previous link."""
    links = "".join(f'<link name="link{number}"/>' for number in range(7))
    joints = ""
    before = Row(0, 0, 0)
    for number, row in enumerate(SIX_AXES, 1):
        joints += _urdf_joint(number, "revolute", before, limit)
        before = row
    joints += _urdf_joint(7, "fixed", before, limit)
    return f'<robot name="six">{links}<link name="link7"/>{joints}</robot>'


def _urdf_joint(number: int, kind: str, at: Row, limit: float) -> str:
    return (
        f'<joint name="joint{number}" type="{kind}">'
        f'<parent link="link{number - 1}"/><child link="link{number}"/>'
        f'<origin xyz="{at.a / 1000} 0 {at.d / 1000}" rpy="{math.radians(at.alpha)} 0 0"/>'
        f'<axis xyz="0 0 1"/>'
        f'<limit lower="{math.radians(-limit)}" upper="{math.radians(limit)}"/></joint>'
    )


def six_axes(limit: float = 360) -> Chain:
    return parse_sva(six_axis_sva(limit))
