"""Where the axes of a gantry have to be, so that its carriage is at a pose."""

from __future__ import annotations

import math

from grpclib import GRPCError
from viam.components.gantry import Gantry

from cogwork.core.errors import CogworkError, InvalidRequest, Unsupported
from cogwork.resource.kinematics import read_kinematics
from cogwork.spatial.kinematics import BadKinematics, Chain, Kind, gantry_chain
from cogwork.spatial.pose import Pose, unit

_SLACK = 1.0
"""Millimetres that the carriage may be beside the pose."""
_SMALLEST_TURN = 1.0
"""Degrees that the carriage may be turned otherwise."""


async def positions_for(gantry: Gantry, pose: Pose) -> list[float]:
    """One for every axis, in millimetres."""
    lengths = list(await gantry.get_lengths())
    chain = await _chain(gantry, lengths)
    positions = _along(chain, pose)
    reached = chain.pose(positions)
    turned = math.degrees((reached.turned.inverse() * pose.turned).angle)
    if turned > _SMALLEST_TURN:
        raise InvalidRequest(
            f'gantry "{gantry.name}" would have to turn by {turned:.0f} degrees, and cannot: give '
            "a pose without an orientation, and it keeps the one that it has"
        )
    beside = math.dist(reached.point, pose.point)
    if beside > _SLACK:
        x, y, z = pose.point
        raise InvalidRequest(
            f'gantry "{gantry.name}" cannot get to x {x:.0f}, y {y:.0f}, z {z:.0f} mm: with its '
            f"{len(lengths)} axes it stays {beside:.0f} mm beside that"
        )
    for number, (position, length) in enumerate(zip(positions, lengths, strict=True), 1):
        if not -_SLACK <= position <= length + _SLACK:
            raise InvalidRequest(
                f'axis {number} of gantry "{gantry.name}" would have to be at {position:.0f} mm, '
                f"and goes from 0 to {length:.0f}"
            )
    return [min(max(at, 0.0), length) for at, length in zip(positions, lengths, strict=True)]


async def _chain(gantry: Gantry, lengths: list[float]) -> Chain:
    """As its kinematics say; one that has none has its axes along x, y and z."""
    told = await _told(gantry)
    if told is not None and len(told.joints) == len(lengths):
        return told
    try:
        return gantry_chain(lengths, name=gantry.name)
    except BadKinematics as error:
        raise Unsupported(
            f'how the axes of gantry "{gantry.name}" lie is not known, because it has no '
            f"kinematics: {error}"
        ) from None


async def _told(gantry: Gantry) -> Chain | None:
    try:
        chain = read_kinematics(await gantry.get_kinematics())
    except (NotImplementedError, CogworkError, GRPCError, ValueError):
        return None
    return chain if all(joint.kind is Kind.PRISMATIC for joint in chain.joints) else None


def _along(chain: Chain, pose: Pose) -> list[float]:
    """Axes lie across one another, and links between them may be turned: what each of them adds is
    where the carriage is with that one drawn out by a millimetre."""
    joints = len(chain.joints)
    start = chain.pose([0.0] * joints).point
    missing = [to - of for to, of in zip(pose.point, start, strict=True)]
    positions = []
    for moved in range(joints):
        drawn = chain.pose([1.0 if each == moved else 0.0 for each in range(joints)]).point
        x, y, z = (to - of for to, of in zip(drawn, start, strict=True))
        axis = unit((x, y, z))
        positions.append(sum(along * by for along, by in zip(axis, missing, strict=True)))
    return positions
