"""The difference between the clock of a computer and the correct time."""

from __future__ import annotations

from typing import Final

TOLERANCE: Final = 300.0
"""Maximum difference in seconds between two clocks that are considered correct."""

_UNITS: Final = ((86_400, "days"), (3600, "hours"), (60, "minutes"))


def describe_clock_offset(seconds: float) -> str | None:
    """Return a sentence about a clock that is ahead by this many seconds; None if it is correct."""
    if abs(seconds) <= TOLERANCE:
        return None
    size, unit = next(each for each in _UNITS if abs(seconds) >= 2 * each[0])
    direction = "ahead of" if seconds > 0 else "behind"
    return (
        f"the clock of this machine is {abs(seconds) / size:.0f} {unit} {direction} the clock "
        "of its cloud, so certificates may be refused and times in the log are wrong; set it, for "
        "example with: timedatectl set-ntp true"
    )
