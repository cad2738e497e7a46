"""Which of many overlapping candidates stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.vision.candidates import Candidates, Numbers
from cogwork.drivers.vision.choose import surest_rows

POOL = 10_000
"""How many candidates are compared, the surest ones: this bounds the time of the worst picture."""
_BLOCK = 128

_Doubles = NDArray[np.float64]
_Flags = NDArray[np.bool_]


def suppress(candidates: Candidates, overlap: float, most: int) -> Candidates:
    """At most so many, the surest first, without those that overlap a surer one of their class.

    The overlap of two boxes is what they share as a part of what they cover together. Of equally
    sure ones the first goes first.

    Candidates come in blocks: each is compared with all that are kept, and then within itself. That
    is a few large operations where boxes are many, and one where they are few.
    """
    pool = surest(candidates, POOL)
    edges, classes = pool.boxes.T.astype(np.float64, order="C"), pool.classes
    kept: Numbers = np.empty(0, np.int64)
    for start in range(0, len(pool), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(pool)))
        covered = _overlapping(edges, classes, block, kept, overlap).any(axis=1)
        block = block[~covered]
        kept = np.concatenate((kept, block[_free(edges, classes, block, overlap)]))
        if len(kept) >= most:
            break
    return pool.pick(kept[:most])


def surest(candidates: Candidates, most: int) -> Candidates:
    """The surest first; equally sure ones stay in their order."""
    return candidates.pick(surest_rows(candidates.scores, np.arange(len(candidates)), most))


def _free(edges: _Doubles, classes: Numbers, rows: Numbers, overlap: float) -> _Flags:
    """Which of the rows no surer one of them covers that itself is free."""
    covers = np.triu(_overlapping(edges, classes, rows, rows, overlap), k=1)
    free = np.ones(len(rows), np.bool_)
    for row in np.flatnonzero(covers.any(axis=1)):
        if free[row]:
            free &= ~covers[row]
    return free


def _overlapping(
    edges: _Doubles, classes: Numbers, some: Numbers, others: Numbers, overlap: float
) -> _Flags:
    """[some, others]"""
    one, other = edges[:, some, np.newaxis], edges[:, np.newaxis, others]
    shared = _side(one[0], one[2], other[0], other[2])
    shared *= _side(one[1], one[3], other[1], other[3])
    together = _area(one) + _area(other)
    together -= shared
    together *= overlap
    alike: _Flags = classes[some][:, np.newaxis] == classes[others]
    return alike & (shared > together)


def _side(low: _Doubles, high: _Doubles, other_low: _Doubles, other_high: _Doubles) -> _Doubles:
    side: _Doubles = np.minimum(high, other_high)
    side -= np.maximum(low, other_low)
    return np.maximum(side, 0, out=side)


def _area(edges: _Doubles) -> _Doubles:
    area: _Doubles = (edges[2] - edges[0]) * (edges[3] - edges[1])
    return area
