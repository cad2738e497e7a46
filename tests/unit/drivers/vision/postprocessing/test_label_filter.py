from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.unit.drivers.vision.looking import select_detections, settings

from cogwork.drivers.vision.candidates import Candidates
from cogwork.drivers.vision.postprocessing.label_filter import select_classifications
from cogwork.resource.labels import Labels
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.proto.service.vision import Classification, Detection  # noqa: E402

ANIMALS = Labels({0: "cat", 1: "Dog", 3: "bird"})


def candidates(*rows: tuple[int, float]) -> Candidates:
    """Return candidates of these classes and scores, all with the same box."""
    boxes = np.tile(np.array([0.1, 0.2, 0.3, 0.4], np.float32), (len(rows), 1))
    return Candidates(
        boxes,
        np.array([score for _, score in rows], np.float32),
        np.array([index for index, _ in rows], np.int64),
    )


def labels_and_scores(found: list[Detection] | list[Classification]) -> list[tuple[str, float]]:
    return [(each.class_name, round(each.confidence, 4)) for each in found]


def test_box_has_whole_pixels_and_matching_normalized_edges() -> None:
    boxes = np.array([[0.25, 0.5, 0.999, 1.0]], np.float32)
    one = Candidates(boxes, np.array([0.75], np.float32), np.array([0]))
    (found,) = select_detections(one, ANIMALS, settings(), 641, 481)
    # 0.25 x 640, 0.5 x 480, 0.999 x 640 = 639.36, 1 x 480
    assert found == Detection(
        class_name="cat",
        confidence=0.75,
        x_min=160,
        y_min=240,
        x_max=639,
        y_max=480,
        x_min_normalized=160 / 641,
        y_min_normalized=240 / 481,
        x_max_normalized=639 / 641,
        y_max_normalized=480 / 481,
    )


def test_image_of_one_pixel_has_boxes_of_that_pixel() -> None:
    (found,) = select_detections(candidates((0, 0.5)), None, settings(), 1, 1)
    assert (found.x_min, found.y_min, found.x_max, found.y_max) == (0, 0, 0, 0)


def test_detections_are_sorted_by_score_in_stable_order() -> None:
    some = candidates((0, 0.3), (1, 0.9), (3, 0.5), (0, 0.5))
    assert labels_and_scores(select_detections(some, ANIMALS, settings(), 9, 9)) == [
        ("Dog", 0.9),
        ("bird", 0.5),
        ("cat", 0.5),
        ("cat", 0.3),
    ]


@pytest.mark.parametrize(
    ("labels", "index", "name"),
    [(ANIMALS, 1, "Dog"), (ANIMALS, 2, "2"), (ANIMALS, 900, "900"), (None, 7, "7")],
)
def test_class_without_a_label_is_named_by_its_number(
    labels: Labels | None, index: int, name: str
) -> None:
    (found,) = select_detections(candidates((index, 0.5)), labels, settings(), 9, 9)
    assert found.class_name == name


def test_minimum_confidence_is_inclusive() -> None:
    some = candidates((0, 0.7), (1, 0.69), (2, 0.71))
    found = select_detections(some, ANIMALS, settings(default_minimum_confidence=0.7), 9, 9)
    assert labels_and_scores(found) == [("2", 0.71), ("cat", 0.7)]


def test_label_minimums_replace_the_common_minimum_and_exclude_other_labels() -> None:
    some = candidates((0, 0.5), (0, 0.3), (1, 0.2), (3, 0.99), (2, 0.4), (7, 0.9))
    wanted = settings(
        default_minimum_confidence=0.95, label_confidences={"CAT": 0.4, "dog": 0.2, "2": 0.3}
    )
    found = select_detections(some, ANIMALS, wanted, 9, 9)
    assert labels_and_scores(found) == [("cat", 0.5), ("2", 0.4), ("Dog", 0.2)]


def test_number_does_not_match_a_class_that_has_a_label() -> None:
    wanted = settings(label_confidences={"0": 0.1, "01": 0.1, "9" * 30: 0.1})
    assert select_detections(candidates((0, 0.5), (1, 0.5)), ANIMALS, wanted, 9, 9) == []


def test_unknown_labels_select_nothing() -> None:
    wanted = settings(label_confidences={"unicorn": 0.1})
    assert select_detections(candidates((0, 0.5)), ANIMALS, wanted, 9, 9) == []
    assert select_classifications(np.ones(4, np.float32), ANIMALS, wanted, 0) == []


@pytest.mark.parametrize("minima", [{"cat": 0.6, "Cat": 0.4}, {"cat": 0.4, "Cat": 0.6}])
def test_lower_of_two_minimums_for_a_label_applies(minima: dict[str, float]) -> None:
    wanted = settings(label_confidences=minima)
    assert labels_and_scores(select_detections(candidates((0, 0.5)), ANIMALS, wanted, 9, 9)) == [
        ("cat", 0.5)
    ]


def test_max_detections_is_applied_after_the_labels() -> None:
    some = candidates((0, 0.9), (3, 0.8), (1, 0.5), (3, 0.6), (3, 0.7))
    wanted = settings(max_detections=2, label_confidences={"bird": 0, "dog": 0})
    assert labels_and_scores(select_detections(some, ANIMALS, wanted, 9, 9)) == [
        ("bird", 0.8),
        ("bird", 0.7),
    ]


def test_no_candidates_give_no_results() -> None:
    assert select_detections(candidates(), ANIMALS, settings(), 9, 9) == []
    assert select_classifications(np.empty(0, np.float32), ANIMALS, settings(), 3) == []


def test_most_probable_classes_come_first() -> None:
    scores = np.array([0.1, 0.6, 0.2, 0.1], np.float32)
    assert labels_and_scores(select_classifications(scores, ANIMALS, settings(), 2)) == [
        ("Dog", 0.6),
        ("2", 0.2),
    ]


@pytest.mark.parametrize("n", [0, -1])
def test_all_classes_are_returned_without_a_limit(n: int) -> None:
    scores = np.array([0.1, 0.6, 0.2, 0.1], np.float32)
    assert labels_and_scores(select_classifications(scores, ANIMALS, settings(), n)) == [
        ("Dog", 0.6),
        ("2", 0.2),
        ("cat", 0.1),
        ("bird", 0.1),
    ]


def test_classes_are_filtered_before_the_limit() -> None:
    scores = np.array([0.1, 0.6, 0.2, 0.1], np.float32)
    wanted = settings(label_confidences={"cat": 0.1, "bird": 0.2})
    assert labels_and_scores(select_classifications(scores, ANIMALS, wanted, 1)) == [("cat", 0.1)]
    wanted = settings(default_minimum_confidence=0.15)
    assert labels_and_scores(select_classifications(scores, ANIMALS, wanted, 9)) == [
        ("Dog", 0.6),
        ("2", 0.2),
    ]


@pytest.mark.parametrize(
    "attributes",
    [{}, {"label_confidences": {str(n): 0.1 for n in range(1000)}}, {"max_detections": 10_000}],
)
def test_a_million_candidates_are_selected_fast(attributes: dict[str, Any]) -> None:
    random = np.random.default_rng(1)
    count = 1_000_000
    many = Candidates(
        random.random((count, 4), np.float32),
        random.random(count, np.float32),
        random.integers(0, 2000, count),
    )
    wanted = settings(**attributes)
    assert _least_seconds(lambda: select_detections(many, None, wanted, 640, 480)) < 0.3


def _least_seconds(work: Any) -> float:
    seconds = []
    for _ in range(2):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


@given(
    scores=arrays.arrays(np.float32, st.integers(0, 60), elements=st.floats(0, 1, width=32)),
    most=st.integers(1, 70),
    least=st.floats(0, 1),
    seed=st.integers(0, 99),
)
def test_selection_matches_a_plain_loop(scores: Any, most: int, least: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    classes = random.integers(0, 5, len(scores))
    some = Candidates(np.zeros((len(scores), 4), np.float32), scores, classes)
    wanted = settings(max_detections=most, label_confidences={"cat": least, "2": 0.25})
    bounds = {"cat": np.float32(least), "2": np.float32(0.25)}
    names = [ANIMALS.get(int(index)) or str(index) for index in classes]
    plain = [
        (name, float(score))
        for name, score in zip(names, scores, strict=True)
        if name in bounds and score >= bounds[name]
    ]
    plain.sort(key=lambda each: -each[1])
    found = select_detections(some, ANIMALS, wanted, 9, 9)
    assert [(each.class_name, each.confidence) for each in found] == plain[:most]
