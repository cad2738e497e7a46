"""Non-maximum suppression."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.vision.candidates import Candidates, Integers, top_k_rows

MAX_CANDIDATES = 10_000
"""Maximum number of candidates to compare, best first. The limit bounds the worst-case time."""
_BLOCK_SIZE = 128

_Doubles = NDArray[np.float64]
_Flags = NDArray[np.bool_]


def non_max_suppression(candidates: Candidates, iou_threshold: float, most: int) -> Candidates:
    """Return at most `most` candidates, without candidates that overlap a better one of their
    class.

    Candidates are sorted by score; ties keep their order. Two boxes overlap if their intersection
    over union (IoU) exceeds `iou_threshold`.

    Candidates are processed in blocks: each block is compared with all kept candidates and then
    within itself. So even many boxes take only a few array operations, which are large.
    """
    pool = top_k(candidates, MAX_CANDIDATES)
    edges, classes = pool.boxes.T.astype(np.float64, order="C"), pool.classes
    kept: Integers = np.empty(0, np.int64)
    for start in range(0, len(pool), _BLOCK_SIZE):
        block = np.arange(start, min(start + _BLOCK_SIZE, len(pool)))
        is_suppressed = _exceeds_iou(edges, classes, block, kept, iou_threshold).any(axis=1)
        block = block[~is_suppressed]
        kept = np.concatenate((kept, block[_find_survivors(edges, classes, block, iou_threshold)]))
        if len(kept) >= most:
            break
    return pool.select(kept[:most])


def top_k(candidates: Candidates, most: int) -> Candidates:
    """Return the `most` best candidates, highest score first; ties keep their order."""
    return candidates.select(top_k_rows(candidates.scores, np.arange(len(candidates)), most))


def _find_survivors(
    edges: _Doubles, classes: Integers, rows: Integers, iou_threshold: float
) -> _Flags:
    """Return which rows survive non-maximum suppression among themselves."""
    suppresses = np.triu(_exceeds_iou(edges, classes, rows, rows, iou_threshold), k=1)
    survives = np.ones(len(rows), np.bool_)
    for row in np.flatnonzero(suppresses.any(axis=1)):
        if survives[row]:
            survives &= ~suppresses[row]
    return survives


def _exceeds_iou(
    edges: _Doubles, classes: Integers, some: Integers, others: Integers, iou_threshold: float
) -> _Flags:
    """Return [some, others] flags: whether two boxes have the same class and an IoU above
    `iou_threshold`."""
    one, other = edges[:, some, np.newaxis], edges[:, np.newaxis, others]
    intersection = _intersection_side(one[0], one[2], other[0], other[2])
    intersection *= _intersection_side(one[1], one[3], other[1], other[3])
    union = _area(one) + _area(other)
    union -= intersection
    union *= iou_threshold
    same_class: _Flags = classes[some][:, np.newaxis] == classes[others]
    return same_class & (intersection > union)


def _intersection_side(
    low: _Doubles, high: _Doubles, other_low: _Doubles, other_high: _Doubles
) -> _Doubles:
    side: _Doubles = np.minimum(high, other_high)
    side -= np.maximum(low, other_low)
    return np.maximum(side, 0, out=side)


def _area(edges: _Doubles) -> _Doubles:
    area: _Doubles = (edges[2] - edges[0]) * (edges[3] - edges[1])
    return area
