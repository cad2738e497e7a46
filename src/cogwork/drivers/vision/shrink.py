"""How a picture is made smaller, in cheap steps.

OpenCV's exact mean over areas costs several times as much as its linear interpolation, and the
linear one is that mean where it halves a picture. So a picture is halved while that leaves enough
of it, brought to the size or to twice the size, and halved into place. That stays within a grey
level of the exact mean; what it could not do well is left to the exact one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cv2


class Step(NamedTuple):
    width: int
    height: int
    interpolation: int = cv2.INTER_LINEAR


_FEW = 100_000
"""Pixels of which the exact mean takes well below a millisecond."""
_DETAILED = 40_000
"""Pixels of a picture in which those of one do not show."""
_MILD = 1.6
"""Up to this much smaller, linear interpolation is as good as the mean."""
_MOST_LINEAR = 2.0
"""Linear interpolation by more than that leaves out pixels."""


@lru_cache(maxsize=256)
def steps(width: int, height: int, to_width: int, to_height: int) -> tuple[Step, ...]:
    taken = list[Step]()
    while _is_worth_halving(width, height, to_width, to_height):
        width, height = width // 2, height // 2
        taken.append(Step(width, height))
    if (width, height) == (to_width, to_height):
        return tuple(taken)
    between = (_between(width, to_width), _between(height, to_height))
    loss = max(width / between[0], height / between[1])
    shrinks = max(width / to_width, height / to_height) > 1
    if loss > _MOST_LINEAR or (shrinks and width * height <= _FEW):
        return (*taken, Step(to_width, to_height, cv2.INTER_AREA))
    if between != (to_width, to_height):
        taken.append(Step(*between))
    return (*taken, Step(to_width, to_height))


def _is_worth_halving(width: int, height: int, to_width: int, to_height: int) -> bool:
    """Where one side is far too large, also if the other hardly is: as different are the sides of
    a camera's picture and of a square. In a small picture, that would show."""
    if width % 2 or height % 2:
        return False
    less, more = sorted((width / to_width, height / to_height))
    return less >= 3.5 or (less >= 2 and more >= 4 and to_width * to_height >= _DETAILED)


def _between(side: int, to_side: int) -> int:
    ratio = side / to_side
    return to_side if ratio <= _MILD or ratio == 2 else 2 * to_side
