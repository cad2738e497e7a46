"""Serial chains, and the parsers of the files that describe them."""

from cogwork.spatial.chain import (
    WORLD,
    BadKinematics,
    Chain,
    ChainElement,
    Joint,
    JointLimits,
    JointType,
    Link,
    gantry_chain,
)
from cogwork.spatial.sva import format_sva, parse_sva
from cogwork.spatial.urdf import parse_urdf

__all__ = [
    "WORLD",
    "BadKinematics",
    "Chain",
    "ChainElement",
    "Joint",
    "JointLimits",
    "JointType",
    "Link",
    "format_sva",
    "gantry_chain",
    "parse_sva",
    "parse_urdf",
]
