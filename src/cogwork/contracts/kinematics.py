"""What a description of joints keeps to, for the contracts of what has joints."""

from __future__ import annotations

from typing import Any

from viam.proto.common import KinematicsFileFormat

from cogwork.spatial.kinematics import Chain, read_sva, read_urdf


async def described_by(it: Any) -> Chain:
    """Its kinematics can be read, in whichever format they are."""
    form, data, *_ = await it.get_kinematics()
    if form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_URDF:
        return read_urdf(data.decode())
    assert form == KinematicsFileFormat.KINEMATICS_FILE_FORMAT_SVA, f"the format is {form}"
    return read_sva(data.decode())
