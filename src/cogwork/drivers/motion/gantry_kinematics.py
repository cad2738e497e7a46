"""Inverse kinematics of a gantry."""

from __future__ import annotations

import math

from grpclib import GRPCError
from viam.components.gantry import Gantry

from cogwork.core.errors import CogworkError, InvalidRequest, Unsupported
from cogwork.resource.messages.kinematics import read_kinematics
from cogwork.spatial.kinematics import BadKinematics, Chain, JointType, gantry_chain
from cogwork.spatial.pose import Pose, unit_vector

_POSITION_TOLERANCE = 1.0
"""Maximum distance in millimeters between the carriage and the pose."""
_ROTATION_TOLERANCE = 1.0
"""Maximum rotation in degrees between the carriage and the pose."""


async def solve_positions(gantry: Gantry, pose: Pose) -> list[float]:
    """Return the position of each axis in millimeters; raise InvalidRequest if unreachable."""
    lengths = list(await gantry.get_lengths())
    chain = await _load_chain(gantry, lengths)
    positions = _project_on_axes(chain, pose)
    reached = chain.pose(positions)
    rotation = math.degrees((reached.rotation.inverse() * pose.rotation).angle)
    if rotation > _ROTATION_TOLERANCE:
        raise InvalidRequest(
            f'gantry "{gantry.name}" would have to rotate by {rotation:.0f} degrees, but cannot: '
            "give a pose without an orientation to keep the current orientation"
        )
    distance = math.dist(reached.point, pose.point)
    if distance > _POSITION_TOLERANCE:
        x, y, z = pose.point
        raise InvalidRequest(
            f'gantry "{gantry.name}" cannot reach x {x:.0f}, y {y:.0f}, z {z:.0f} mm: the closest '
            f"position of its {len(lengths)} axes is {distance:.0f} mm away"
        )
    for number, (position, length) in enumerate(zip(positions, lengths, strict=True), 1):
        if not -_POSITION_TOLERANCE <= position <= length + _POSITION_TOLERANCE:
            raise InvalidRequest(
                f'axis {number} of gantry "{gantry.name}" would have to be at {position:.0f} mm, '
                f"but its range is 0 to {length:.0f} mm"
            )
    return [min(max(at, 0.0), length) for at, length in zip(positions, lengths, strict=True)]


async def _load_chain(gantry: Gantry, lengths: list[float]) -> Chain:
    """Return the gantry's own kinematics, or axes along x, y and z if it has no usable ones."""
    chain = await _read_own_chain(gantry)
    if chain is not None and len(chain.joints) == len(lengths):
        return chain
    try:
        return gantry_chain(lengths, name=gantry.name)
    except BadKinematics as error:
        raise Unsupported(
            f'the directions of the axes of gantry "{gantry.name}" are unknown, because it has no '
            f"usable kinematics: {error}"
        ) from None


async def _read_own_chain(gantry: Gantry) -> Chain | None:
    try:
        chain = read_kinematics(await gantry.get_kinematics())
    except (NotImplementedError, CogworkError, GRPCError, ValueError):
        return None
    return chain if all(joint.kind is JointType.PRISMATIC for joint in chain.joints) else None


def _project_on_axes(chain: Chain, pose: Pose) -> list[float]:
    """Return the axis positions closest to the pose.

    Axes are perpendicular to each other, but links between them may be rotated. So the direction of
    each axis is measured: it is the direction in which the carriage moves with the axis.
    """
    joints = len(chain.joints)
    start = chain.pose([0.0] * joints).point
    offset = [to - of for to, of in zip(pose.point, start, strict=True)]
    positions = []
    for index in range(joints):
        displaced = chain.pose([1.0 if each == index else 0.0 for each in range(joints)]).point
        x, y, z = (to - of for to, of in zip(displaced, start, strict=True))
        axis = unit_vector((x, y, z))
        positions.append(
            sum(component * delta for component, delta in zip(axis, offset, strict=True))
        )
    return positions
