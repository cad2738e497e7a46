"""What bases are told to do, read from the calls that tell them."""

from __future__ import annotations

import math

from viam.components.base import Vector3

from cogwork.core.errors import InvalidRequest
from cogwork.drivers.base.drive import Leg, Speed


def read_straight(called: str, distance: float, velocity: float) -> Leg | None:
    """None where there is nowhere to go, or no speed to go at: then it stops."""
    _check_finite(called, distance, velocity)
    return Leg.straight(distance, velocity) if distance and velocity else None


def read_spin(called: str, angle: float, velocity: float) -> Leg | None:
    """None where there is nothing to turn by, or no speed to turn at: then it stops."""
    _check_finite(called, angle, velocity)
    return Leg.spin(angle, velocity) if angle and velocity else None


def read_power(called: str, linear: Vector3, angular: Vector3) -> Speed:
    """Parts of the full power. Only forward and about the upright axis: there are just wheels."""
    for power in (linear.y, angular.z):
        if not -1 <= power <= 1:
            raise InvalidRequest(f"{called} takes a power from -1 to 1, not {power:g}")
    return Speed(linear.y, angular.z)


def read_velocity(called: str, linear: Vector3, angular: Vector3) -> Speed:
    _check_finite(called, linear.y, angular.z)
    return Speed(linear.y, angular.z)


def _check_finite(called: str, *numbers: float) -> None:
    for number in numbers:
        if not math.isfinite(number):
            raise InvalidRequest(f"{called} cannot drive by {number:g}: give it a number")
