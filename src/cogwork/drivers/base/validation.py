"""Validation of the arguments of base commands."""

from __future__ import annotations

import math

from viam.components.base import Vector3

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.base.planar_motion import Leg, Speed


def parse_move_straight(display_name: str, distance: float, velocity: float) -> Leg | None:
    """Return the move, or None to stop if the distance or the velocity is 0."""
    _check_finite(display_name, distance, velocity)
    return Leg.straight(distance, velocity) if distance and velocity else None


def parse_spin(display_name: str, angle: float, velocity: float) -> Leg | None:
    """Return the turn, or None to stop if the angle or the velocity is 0."""
    _check_finite(display_name, angle, velocity)
    return Leg.spin(angle, velocity) if angle and velocity else None


def parse_set_power(display_name: str, linear: Vector3, angular: Vector3) -> Speed:
    """Return the power forward and about the vertical axis, as fractions of full power."""
    for power in (linear.y, angular.z):
        if not -1 <= power <= 1:
            raise InvalidRequest(f"{display_name} accepts a power between -1 and 1, not {power:g}")
    return Speed(linear.y, angular.z)


def parse_set_velocity(display_name: str, linear: Vector3, angular: Vector3) -> Speed:
    _check_finite(display_name, linear.y, angular.z)
    return Speed(linear.y, angular.z)


def _check_finite(display_name: str, *numbers: float) -> None:
    for number in numbers:
        if not math.isfinite(number):
            raise InvalidRequest(f"{display_name} accepts only finite numbers, not {number:g}")
