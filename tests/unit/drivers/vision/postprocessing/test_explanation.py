from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.drivers.vision.looking import select_detections, settings

from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.postprocessing.explanation import (
    MAX_FILTERED,
    Explanation,
    StepTimes,
    explain_candidates,
    explain_scores,
)
from cogwork.drivers.vision.postprocessing.label_filter import select_classifications
from cogwork.resource.labels import Labels

ANIMALS = Labels({0: "cat", 1: "Dog", 3: "bird"})
ROWS = ((0, 0.9), (1, 0.45), (0, 0.31), (3, 0.05), (2, 0.7))


def candidates(*rows: tuple[int, float]) -> Candidates:
    """Return candidates of these classes and scores, each with its own box."""
    return Candidates(
        np.array([(0.001 * row, 0.2, 0.5, 0.4) for row in range(len(rows))], np.float32).reshape(
            -1, 4
        ),
        np.array([score for _, score in rows], np.float32),
        np.array([index for index, _ in rows], np.int64),
    )


def explain(*rows: tuple[int, float], **attributes: Any) -> list[tuple[str, str]]:
    """Return the label of each filtered candidate and the rule that removed it."""
    found = explain_candidates(candidates(*rows), ANIMALS, settings(**attributes), 641, 481)
    return [(each.detection.class_name, each.rule) for each in found]


def test_nothing_is_filtered_by_default() -> None:
    assert explain(*ROWS) == []
    assert explain() == []
    assert explain_scores(np.array([0.5, 0.0], np.float32), ANIMALS, settings()) == []


def test_default_minimum_confidence_is_the_rule() -> None:
    assert explain(*ROWS, default_minimum_confidence=0.4) == [
        ("cat", "0.31 is below the minimum confidence 0.40"),
        ("bird", "0.05 is below the minimum confidence 0.40"),
    ]


def test_minimum_confidence_of_a_label_is_the_rule() -> None:
    confidences = {"dog": 0.5, "cat": 0.4, "2": 0.1}
    assert explain(*ROWS, default_minimum_confidence=0.99, label_confidences=confidences) == [
        ("Dog", "0.45 is below the minimum confidence 0.50 of Dog"),
        ("cat", "0.31 is below the minimum confidence 0.40 of cat"),
        ("bird", "bird is not listed in label_confidences"),
    ]


def test_labels_that_no_class_has_filter_everything() -> None:
    found = explain(*ROWS, label_confidences={"horse": 0.1})
    assert {rule for _, rule in found} == {
        f"{name} is not listed in label_confidences" for name in ("cat", "Dog", "bird", "2")
    }
    assert len(found) == len(ROWS)


def test_maximum_number_of_detections_is_the_rule() -> None:
    rule = "it is not among the 2 most confident detections (max_detections)"
    assert explain(*ROWS, default_minimum_confidence=0.1, max_detections=2) == [
        ("Dog", rule),
        ("cat", rule),
        ("bird", "0.05 is below the minimum confidence 0.10"),
    ]


def test_maximum_number_of_detections_does_not_filter_classifications() -> None:
    assert (
        explain_scores(np.array([0.9, 0.8], np.float32), ANIMALS, settings(max_detections=1)) == []
    )


@pytest.mark.parametrize(
    ("score", "minimum", "rule"),
    [
        (0.398, 0.4, "0.398 is below the minimum confidence 0.40"),
        (0.35, 0.355, "0.35 is below the minimum confidence 0.355"),
        (0.0015, 0.002, "0.00 is below the minimum confidence 0.002"),
        (np.nextafter(np.float32(0.4), np.float32(0)), 0.4, "0.39999998 is below the "),
    ],
)
def test_rule_has_the_decimals_that_show_the_difference(
    score: float, minimum: float, rule: str
) -> None:
    ((_, found),) = explain((0, score), default_minimum_confidence=minimum)
    assert found.startswith(rule)


def test_most_confident_ones_are_listed() -> None:
    rows = [(0, 0.001 * number) for number in range(300)]
    found = explain_candidates(
        candidates(*rows), ANIMALS, settings(default_minimum_confidence=0.5), 9, 9
    )
    scores = [each.detection.confidence for each in found]
    assert scores == pytest.approx([0.001 * number for number in range(299, 99, -1)])
    assert len(scores) == MAX_FILTERED


def test_empty_rows_are_not_listed() -> None:
    found = explain((0, 0.0), (0, 0.0009), (0, 0.0011), default_minimum_confidence=0.5)
    assert len(found) == 1


def test_filtered_classes_are_explained() -> None:
    scores = np.array([0.2, 0.7, 0.06, 0.04], np.float32)
    found = explain_scores(scores, ANIMALS, settings(label_confidences={"cat": 0.5, "Dog": 0.5}))
    assert [(each.classification.class_name, each.rule) for each in found] == [
        ("cat", "0.20 is below the minimum confidence 0.50 of cat"),
        ("2", "2 is not listed in label_confidences"),
        ("bird", "bird is not listed in label_confidences"),
    ]


THRESHOLDS = st.floats(0, 1, width=32)
SCORES = st.floats(2**-9, 1, width=32)
SETTINGS = st.fixed_dictionaries(
    {
        "default_minimum_confidence": st.none() | THRESHOLDS,
        "label_confidences": st.dictionaries(
            st.sampled_from(("cat", "dog", "bird", "2", "horse")), THRESHOLDS
        ),
        "max_detections": st.integers(1, 9),
    }
)


@given(st.lists(st.tuples(st.integers(0, 4), SCORES), max_size=20), SETTINGS)
def test_every_candidate_is_either_kept_or_filtered(
    rows: list[tuple[int, float]], attributes: dict[str, Any]
) -> None:
    some, wanted = candidates(*rows), settings(**attributes)
    kept = select_detections(some, ANIMALS, wanted, 2000, 100)
    filtered = explain_candidates(some, ANIMALS, wanted, 2000, 100)
    unlimited = select_detections(some, ANIMALS, settings(), 2000, 100)
    both = [*kept, *(each.detection for each in filtered)]
    assert sorted(map(str, both)) == sorted(map(str, unlimited))


@given(st.lists(SCORES, max_size=20), SETTINGS)
def test_every_class_is_either_kept_or_filtered(
    scores: list[float], attributes: dict[str, Any]
) -> None:
    some, wanted = np.array(scores, np.float32), settings(**attributes)
    kept = select_classifications(some, ANIMALS, wanted, 0)
    filtered = explain_scores(some, ANIMALS, wanted)
    unlimited = select_classifications(some, ANIMALS, settings(), 0)
    both = [*kept, *(each.classification for each in filtered)]
    assert sorted(map(str, both)) == sorted(map(str, unlimited))


def test_reply_states_the_effective_minimums_and_the_times() -> None:
    times = StepTimes(0.001, 0.02, 0.003)
    wanted = settings(default_minimum_confidence=0.4)
    some = candidates((0, 0.25))
    found = explain_candidates(some, ANIMALS, wanted, 641, 481)
    assert Explanation(found, [], wanted, times, frame_seconds=0.5).to_dict(7.5) == {
        "filtered": [
            {
                "x_min": 0,
                "y_min": 96,
                "x_max": 320,
                "y_max": 192,
                "class_name": "cat",
                "confidence": 0.25,
                "rule": "0.25 is below the minimum confidence 0.40",
            }
        ],
        "filtered_classifications": [],
        "minimum_confidence": 0.4,
        "minimum_confidence_by_label": {},
        "milliseconds": {
            "frame": 500.0,
            "preprocess": 1.0,
            "inference": 20.0,
            "decode": pytest.approx(3.0),
        },
        "captured_at": 7.5,
    }
    by_label = settings(default_minimum_confidence=0.4, label_confidences={"cat": 0.3})
    told = Explanation([], [], by_label, times).to_dict(0)
    assert told["minimum_confidence"] is None  # it is ignored
    assert told["minimum_confidence_by_label"] == {"cat": 0.3}
