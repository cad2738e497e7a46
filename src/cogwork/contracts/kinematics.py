"""Checks of kinematics, for the contracts of components with joints."""

from __future__ import annotations

from typing import Any

from viam.proto.common import KinematicsFileFormat

from cogwork.spatial.kinematics import Chain, parse_sva, parse_urdf


async def fetch_kinematics(resource: Any) -> Chain:
    """Fetch and parse the kinematics, in any supported format."""
    form, data, *_ = await resource.get_kinematics()
    if form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_URDF:
        return parse_urdf(data.decode())
    assert form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, (
        f"unsupported kinematics format {form}"
    )
    return parse_sva(data.decode())
