"""What motors are told to do, read from the calls that tell them."""

from __future__ import annotations

import math

from cogwork.core.errors import InvalidRequest


def check_power(called: str, power: float) -> None:
    if not -1 <= power <= 1:
        raise InvalidRequest(f"{called} takes a power from -1 to 1, not {power:g}")


def check_speed(called: str, rpm: float, most: float) -> None:
    if not -most <= rpm <= most:
        raise InvalidRequest(f"{called} turns at {most:g} rpm at most, not at {rpm:g}")


def read_go_for(called: str, rpm: float, revolutions: float, most: float) -> float:
    """By how many revolutions it turns. It turns backward where one of the numbers, but not both,
    is less than 0."""
    _check_move(called, "go_for", rpm, most)
    if revolutions == 0 or not math.isfinite(revolutions):
        raise InvalidRequest(
            f"{called} cannot go for {revolutions:g} revolutions: "
            "give a number of them, or use set_rpm to turn without an end"
        )
    return revolutions if rpm > 0 else -revolutions


def check_go_to(called: str, rpm: float, position: float, most: float) -> None:
    _check_move(called, "go_to", rpm, most)
    if not math.isfinite(position):
        raise InvalidRequest(f"{called} has no position {position:g}")


def check_offset(called: str, offset: float) -> None:
    if not math.isfinite(offset):
        raise InvalidRequest(f"{called} cannot move its zero by {offset:g} revolutions")


def _check_move(called: str, command: str, rpm: float, most: float) -> None:
    check_speed(called, rpm, most)
    if rpm == 0:
        raise InvalidRequest(f"{called} gets nowhere at 0 rpm: give {command} a speed")
