"""Fast downscaling in several cheap steps.

OpenCV's area interpolation costs several times as much as its linear interpolation, and both give
the same result when they halve an image. So an image is halved while it stays large enough, resized
to the target size or to twice that size, and in the latter case halved again.

The result stays within one gray level of area interpolation, which is still used where these steps
would give a poor result.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import cv2


class ResizeStep(NamedTuple):
    width: int
    height: int
    interpolation: int = cv2.INTER_LINEAR


_SMALL_IMAGE_PIXELS = 100_000
"""Number of pixels up to which area interpolation takes well below a millisecond."""
_MIN_HALVED_PIXELS = 40_000
"""Target size in pixels above which the error of halving early is not visible."""
_MAX_DIRECT_RATIO = 1.6
"""Downscaling factor up to which linear interpolation is as good as area interpolation."""
_MAX_LINEAR_RATIO = 2.0
"""Downscaling factor above which linear interpolation skips pixels."""


@lru_cache(maxsize=256)
def plan_resize(width: int, height: int, to_width: int, to_height: int) -> tuple[ResizeStep, ...]:
    steps = list[ResizeStep]()
    while _is_worth_halving(width, height, to_width, to_height):
        width, height = width // 2, height // 2
        steps.append(ResizeStep(width, height))
    if (width, height) == (to_width, to_height):
        return tuple(steps)
    intermediate = (_intermediate_side(width, to_width), _intermediate_side(height, to_height))
    loss = max(width / intermediate[0], height / intermediate[1])
    shrinks = max(width / to_width, height / to_height) > 1
    if loss > _MAX_LINEAR_RATIO or (shrinks and width * height <= _SMALL_IMAGE_PIXELS):
        return (*steps, ResizeStep(to_width, to_height, cv2.INTER_AREA))
    if intermediate != (to_width, to_height):
        steps.append(ResizeStep(*intermediate))
    return (*steps, ResizeStep(to_width, to_height))


def _is_worth_halving(width: int, height: int, to_width: int, to_height: int) -> bool:
    """Return whether the image is large enough for halving to pay off.

    Both sides must be much longer than in the target. A large target hides the error of halving, so
    twice as long is enough for one side, as with wide camera images and square model inputs.
    """
    if width % 2 or height % 2:
        return False
    smaller, larger = sorted((width / to_width, height / to_height))
    return smaller >= 3.5 or (
        smaller >= 2 and larger >= 4 and to_width * to_height >= _MIN_HALVED_PIXELS
    )


def _intermediate_side(side: int, to_side: int) -> int:
    ratio = side / to_side
    return to_side if ratio <= _MAX_DIRECT_RATIO or ratio == 2 else 2 * to_side
