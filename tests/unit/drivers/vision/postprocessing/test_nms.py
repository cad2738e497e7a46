"""Non-maximum suppression."""

from __future__ import annotations

import time
from collections.abc import Sequence

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.drivers.vision.decoding.recorded_heads import KEPT_BY_SUPERVISION, OVERLAPPING, Row

from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.postprocessing.nms import MAX_CANDIDATES, non_max_suppression, top_k

_SLOWEST = 15.0
"""Seconds, on a busy computer; a comparison of every pair would take minutes."""


def candidates(rows: Sequence[Row]) -> Candidates:
    """Return candidates from rows of edges, score and class."""
    table = np.array(rows, np.float32).reshape(-1, 6)
    return Candidates(table[:, :4], table[:, 4], table[:, 5].astype(np.int64))


def rows_of(found: Candidates) -> list[Row]:
    return [
        (*map(float, box), float(score), int(label))
        for box, score, label in zip(found.boxes, found.scores, found.classes, strict=True)
    ]


def plain_nms(rows: Sequence[Row], overlap: float) -> list[Row]:
    kept = list[Row]()
    for row in sorted(rows, key=lambda row: -row[4]):
        if all(row[5] != other[5] or _overlap(row, other) <= overlap for other in kept):
            kept.append(row)
    return kept


def _overlap(one: Row, other: Row) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    high = min(one[3], other[3]) - max(one[1], other[1])
    shared = max(wide, 0) * max(high, 0)
    areas = [(row[2] - row[0]) * (row[3] - row[1]) for row in (one, other)]
    return shared / (sum(areas) - shared) if shared else 0.0


def test_nms_agrees_with_supervision() -> None:
    expected = sorted((OVERLAPPING[row] for row in KEPT_BY_SUPERVISION), key=lambda row: -row[4])
    assert rows_of(non_max_suppression(candidates(OVERLAPPING), 0.3, 100)) == expected


_EDGE = st.integers(0, 16)
_ROW = st.tuples(
    st.tuples(_EDGE, _EDGE), st.tuples(_EDGE, _EDGE), st.integers(0, 8), st.integers(0, 2)
).map(
    lambda each: (
        *(min(side) / 16 for side in each[:2]),
        *(max(side) / 16 for side in each[:2]),
        each[2] / 8,
        each[3],
    )
)


@given(st.lists(_ROW, max_size=40), st.sampled_from((0.0, 0.25, 0.5, 0.71, 1.0)))
def test_nms_agrees_with_a_plain_loop(rows: list[Row], overlap: float) -> None:
    assert rows_of(non_max_suppression(candidates(rows), overlap, 100)) == plain_nms(rows, overlap)


@pytest.mark.parametrize("number", [1, 127, 128, 129, 1000])
def test_nms_agrees_with_opencv(number: int) -> None:
    found = _random_candidates(number, seed=number)
    sizes = np.concatenate((found.boxes[:, :2], found.boxes[:, 2:] - found.boxes[:, :2]), axis=1)
    rows = cv2.dnn.NMSBoxesBatched(
        sizes.astype(np.float64).tolist(),
        found.scores.tolist(),
        found.classes.tolist(),
        score_threshold=0.0,
        nms_threshold=0.45,
    )
    expected = found.select(np.array(rows, np.int64))
    assert rows_of(non_max_suppression(found, 0.45, number)) == rows_of(expected)


def test_equal_scores_keep_their_order() -> None:
    rows: list[Row] = [(0.5, 0.5, 0.75, 0.75, 0.5, 0)]
    rows += [(x / 64, 0, 0.5, 1, 0.5, 0) for x in range(4)]
    assert rows_of(non_max_suppression(candidates(rows), 0.5, 10)) == rows[:2]
    assert rows_of(top_k(candidates(rows), 3)) == rows[:3]


def test_nms_returns_at_most_the_requested_number() -> None:
    found = _random_candidates(500, seed=1)
    assert (
        rows_of(non_max_suppression(found, 0.45, 7))
        == rows_of(non_max_suppression(found, 0.45, 500))[:7]
    )


def test_classes_do_not_suppress_each_other() -> None:
    rows = [(0.25, 0.25, 0.75, 0.75, 0.5, number) for number in (0, 1, 2**40, -(2**40))]
    boxes = np.array([row[:4] for row in rows], np.float32)
    classes = np.array([row[5] for row in rows], np.int64)
    found = Candidates(boxes, np.full(4, 0.5, np.float32), classes)
    assert non_max_suppression(found, 0.1, 10).classes.tolist() == classes.tolist()


@pytest.mark.parametrize(("spread", "most"), [(0.0, 300), (0.001, 300), (1.0, 300), (1.0, 10_000)])
def test_worst_case_takes_bounded_time(spread: float, most: int) -> None:
    found = _random_candidates(100_000, seed=2, spread=spread, size=0.002)
    began = time.perf_counter()
    kept = non_max_suppression(found, 0.45, most)
    assert time.perf_counter() - began < _SLOWEST
    assert 0 < len(kept) <= min(most, MAX_CANDIDATES)


def _random_candidates(
    number: int, *, seed: int, spread: float = 1.0, size: float = 0.1
) -> Candidates:
    random = np.random.default_rng(seed)
    corners = random.random((number, 2)) * spread
    boxes = np.concatenate((corners, corners + size * (1 + random.random((number, 2)))), axis=1)
    return Candidates(
        boxes.astype(np.float32),
        random.random(number).astype(np.float32),
        random.integers(0, 3, number),
    )
