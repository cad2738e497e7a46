"""All about serial chains in one place: what they are, and the files that describe them."""

from cogwork.spatial.chain import (
    WORLD,
    BadKinematics,
    Chain,
    Joint,
    Kind,
    Limits,
    Link,
    Step,
    gantry_chain,
)
from cogwork.spatial.sva import read_sva, write_sva
from cogwork.spatial.urdf import read_urdf

__all__ = [
    "WORLD",
    "BadKinematics",
    "Chain",
    "Joint",
    "Kind",
    "Limits",
    "Link",
    "Step",
    "gantry_chain",
    "read_sva",
    "read_urdf",
    "write_sva",
]
