"""Parsers of kinematics files."""

from __future__ import annotations

import json

from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy
from tests.unit.spatial.arms import six_axis_dh, six_axis_sva
from tests.unit.spatial.test_urdf import LIFT

from cogwork.spatial.kinematics import Chain, format_sva, parse_sva, parse_urdf
from cogwork.spatial.orientation import to_ov_degrees


def target_sva(data: bytes) -> None:
    with allow_errors(data, ValueError):
        chain = parse_sva(decode_lossy(data))
        _check_chain(chain)


def target_urdf(data: bytes) -> None:
    with allow_errors(data, ValueError):
        chain = parse_urdf(decode_lossy(data))
        _check_chain(chain)


def _check_chain(chain: Chain) -> None:
    """Check that a parsed chain can be used, written and parsed again."""
    try:
        poses = chain.poses([0.0] * len(chain.joints))
        for pose in poses.values():
            to_ov_degrees(pose.rotation)
        text = format_sva(chain)
        again = parse_sva(text)
        text.encode()
    except Exception as error:
        raise ContractViolation(f"a chain that was read cannot be used: {error}") from error
    if [step.id for step in again.elements] != [step.id for step in chain.elements]:
        raise ContractViolation("a chain does not survive being written")


_LINK = {"id": "a", "parent": "world", "translation": {"x": 1e3, "z": -2},
         "orientation": {"type": "ov_degrees", "value": {"z": 1, "th": 90}},
         "geometry": {"type": "box", "x": 1, "y": 2, "z": 3}}  # fmt: skip

TARGETS = (
    Target(
        "kinematics.sva",
        target_sva,
        lambda: [
            six_axis_sva().encode()[:8000],
            six_axis_dh().encode(),
            json.dumps({"links": [_LINK]}).encode(),
            json.dumps(
                {
                    "links": [_LINK],
                    "joints": [
                        {"id": "j", "type": "prismatic", "parent": "a", "axis": {"x": 1},
                         "min": 0, "max": 1}
                    ],
                }
            ).encode(),
        ],
        ("cogwork.spatial.sva", "cogwork.spatial.chain", "cogwork.spatial.orientation"),
        (b'"id"', b'"parent"', b'"world"', b'"type"', b'"joints"', b'"links"', b"NaN", b"Infinity",
         b"1e308", b"null", b"\\ud800", b"[", b"{", b'"quaternion"', b'"euler_angles"', b'"mimic"'),
        largest=8192,
    ),
    Target(
        "kinematics.urdf",
        target_urdf,
        lambda: [
            LIFT.encode(),
            b'<robot name="a"><link name="world"/><link name="b"/><joint name="j" type="revolute">'
            b'<parent link="world"/><child link="b"/><limit lower="-1" upper="1"/></joint></robot>',
        ],
        ("cogwork.spatial.urdf", "cogwork.spatial.chain"),
        (b"<link name=", b"<joint name=", b"<origin xyz=", b" rpy=", b"<axis xyz=",
         b"1e308", b"nan", b"<!DOCTYPE", b"<!ENTITY", b"&#0;", b"&amp;", b"<mimic/>", b"</robot>",
         b"xmlns:a='b'"),
    ),
)  # fmt: skip
