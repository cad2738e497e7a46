"""Parsing of motion requests; unsupported parts are refused."""

from __future__ import annotations

import math

from viam.proto.common import WorldState
from viam.proto.service.motion import Constraints, MotionConfiguration

from cogwork.core.errors import InvalidRequest, Unsupported
from cogwork.drivers.motion.attributes import BuiltinMotionAttributes
from cogwork.drivers.motion.base_drive import DriveSettings


def read_drive_settings(
    configuration: MotionConfiguration | None,
    attributes: BuiltinMotionAttributes,
    tolerance: float,
) -> DriveSettings:
    """Return the settings of a drive. `tolerance` is the distance from the goal, in meters."""
    requested = configuration or MotionConfiguration()
    if requested.obstacle_detectors:
        raise unsupported("obstacle detectors")
    return DriveSettings(
        _positive_or_default(requested, "linear_m_per_sec", attributes.linear_m_per_sec) * 1000,
        _positive_or_default(requested, "angular_degs_per_sec", attributes.angular_degs_per_sec),
        # `plan_deviation_m` limits the deviation from the path: it must not increase the tolerance
        # at the goal.
        min(_positive_or_default(requested, "plan_deviation_m", tolerance), tolerance) * 1000,
    )


def refuse_obstacles(world_state: WorldState | None) -> None:
    if world_state is not None and any(each.geometries for each in world_state.obstacles):
        raise unsupported("obstacles")


def refuse_constraints(constraints: Constraints | None) -> None:
    """Refuse motion constraints, except allowed collisions: this service does not avoid
    collisions."""
    if constraints is None:
        return
    for kind in ("linear", "orientation", "pseudolinear"):
        if getattr(constraints, f"{kind}_constraint"):
            raise Unsupported(
                f"this motion service does not support {kind} constraints: the arm chooses its own "
                "path; remove the constraint, or use another motion service"
            )


def unsupported(feature: str) -> Unsupported:
    return Unsupported(
        f"this motion service moves in straight lines and does not support {feature}: remove them "
        "if the path is clear, or use another motion service"
    )


def _positive_or_default(configuration: MotionConfiguration, field: str, default: float) -> float:
    """Return the value of the field, or the default if it is 0 or not set."""
    value: float = getattr(configuration, field)
    if not 0 <= value < math.inf:
        raise InvalidRequest(f'"{field}" of a motion configuration must be above 0, not {value:g}')
    return value or default
