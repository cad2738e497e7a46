"""Validation of the arguments of motor commands."""

from __future__ import annotations

import math

from cogwork.core.errors import InvalidRequest


def check_power(display_name: str, power: float) -> None:
    if not -1 <= power <= 1:
        raise InvalidRequest(f"{display_name} accepts a power between -1 and 1, not {power:g}")


def check_speed(display_name: str, rpm: float, max_rpm: float) -> None:
    if not -max_rpm <= rpm <= max_rpm:
        raise InvalidRequest(f"{display_name} turns at {max_rpm:g} rpm at most, not at {rpm:g}")


def parse_go_for(display_name: str, rpm: float, revolutions: float, max_rpm: float) -> float:
    """Return the revolutions to turn, which are negative if exactly one argument is negative."""
    _check_move(display_name, "go_for", rpm, max_rpm)
    if revolutions == 0 or not math.isfinite(revolutions):
        raise InvalidRequest(
            f"{display_name} cannot go for {revolutions:g} revolutions: "
            "give a nonzero number, or use set_rpm to turn without an end"
        )
    return revolutions if rpm > 0 else -revolutions


def check_go_to(display_name: str, rpm: float, position: float, max_rpm: float) -> None:
    _check_move(display_name, "go_to", rpm, max_rpm)
    if not math.isfinite(position):
        raise InvalidRequest(
            f"{display_name} cannot go to position {position:g}: give a finite number"
        )


def check_offset(display_name: str, offset: float) -> None:
    if not math.isfinite(offset):
        raise InvalidRequest(
            f"{display_name} cannot move its zero by {offset:g} revolutions: give a finite number"
        )


def _check_move(display_name: str, command: str, rpm: float, max_rpm: float) -> None:
    check_speed(display_name, rpm, max_rpm)
    if rpm == 0:
        raise InvalidRequest(
            f"{display_name} does not move at 0 rpm: give {command} a nonzero speed"
        )
