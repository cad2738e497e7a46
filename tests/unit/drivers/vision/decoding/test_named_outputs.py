from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from tests.real_models import golden_outputs
from tests.unit.drivers.vision.looking import Found, detector, photo, settings, view

from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.vision.candidates import Candidates, ImageFit, stretch_fit
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, ModelView
from cogwork.drivers.vision.decoding.named_outputs import match_named_detector
from cogwork.resource.labels import Labels

INPUT = stretch_fit(200, 100)
ULTRALYTICS = {"task": "detect", "stride": 32}
REQUIRED = {"location": (1, 2, 4), "category": (1, 2), "score": (1, 2)}


def facts(
    name: str,
    shape: tuple[int, ...] | None,
    dtype: str = "float32",
    quantisation: Quantization | None = None,
) -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, quantization=quantisation)


def outputs(**shapes: tuple[int, ...]) -> list[TensorSpec]:
    return [facts(name, shape) for name, shape in shapes.items()]


def decided(
    given_out: list[TensorSpec], notes: dict[str, Any] | None = None, **attributes: Any
) -> DetectorDecoder | Mismatch:
    return match_named_detector(
        ModelView((), tuple(given_out), properties=notes), settings(**attributes)
    )


def reading_of(given_out: list[TensorSpec], **others: Any) -> DetectorDecoder:
    reading = decided(given_out, **others)
    assert isinstance(reading, DetectorDecoder), reading
    return reading


def refused(given_out: list[TensorSpec], **others: Any) -> str:
    refusal = decided(given_out, **others)
    assert isinstance(refusal, Mismatch), refusal
    return " ".join(refusal.reasons)


def read(
    location: Any,
    score: Any,
    category: Any | None = None,
    fit: ImageFit = INPUT,
    quantised: dict[str, Quantization] | None = None,
    notes: dict[str, Any] | None = None,
    **attributes: Any,
) -> Candidates:
    """By the required names."""
    tensors = {"location": np.asarray(location), "score": np.asarray(score)}
    if category is not None:
        tensors["category"] = np.asarray(category)
    given_out = [
        facts(name, each.shape, each.dtype.name, (quantised or {}).get(name))
        for name, each in tensors.items()
    ]
    return reading_of(given_out, notes=notes, **attributes).decode(tensors, fit)


def rows(found: Candidates) -> list[tuple[int, float, list[float]]]:
    assert found.boxes.dtype == found.scores.dtype == np.float32
    assert found.classes.dtype == np.int64
    return [
        (int(index), round(float(score), 4), [round(float(edge), 4) for edge in box])
        for index, score, box in zip(found.classes, found.scores, found.boxes, strict=True)
    ]


BOX = [0.1, 0.2, 0.5, 0.6]
"""Upper, left, lower, right."""
EDGES = [0.2, 0.1, 0.6, 0.5]
"""Left, upper, right, lower."""


def test_the_required_names_are_read() -> None:
    found = read([[BOX, [0, 0, 1, 1]]], [[0.9, 0.5]], [[3, 7]])
    assert rows(found) == [(3, 0.9, EDGES), (7, 0.5, [0, 0, 1, 1])]


def test_mapped_names_are_read_whether_the_view_names_them_so_or_not() -> None:
    mapped = {"b": "location", "c": "category", "s": "score", "unused": "other"}
    tensors = {"b": np.array([[BOX]]), "c": np.array([[3]]), "s": np.array([[0.9]])}
    own = reading_of(outputs(b=(1, 1, 4), c=(1, 1), s=(1, 1)), remap_output_names=mapped)
    assert own.family == "named"
    assert rows(own.decode(tensors, INPUT)) == [(3, 0.9, EDGES)]
    renamed = reading_of(outputs(**REQUIRED), remap_output_names=mapped)
    tensors = {mapped[name]: tensor for name, tensor in tensors.items()}
    assert rows(renamed.decode(tensors, INPUT)) == [(3, 0.9, EDGES)]


def test_a_misspelt_mapping_is_refused_with_a_guess() -> None:
    words = refused(
        outputs(boxes=(1, 2, 4), classes=(1, 2), scores=(1, 2)),
        remap_output_names={"boxs": "location", "classes": "category", "scores": "score"},
    )
    assert 'maps "boxs" to "location"' in words
    assert '"boxes" (float32 1x2x4), "classes" (float32 1x2), "scores" (float32 1x2)' in words
    assert 'did you mean "boxes"?' in words


def test_a_mapping_to_a_misspelt_name_is_refused_with_a_guess() -> None:
    words = refused(
        outputs(one=(1, 2, 4), other=(1, 2, 4), more=(1, 2)),
        remap_output_names={"one": "locaton"},
    )
    assert 'did you mean "location"?' in words


def test_other_outputs_are_refused_and_named() -> None:
    words = refused(outputs(regressors=(1, 896, 16), classificators=(1, 896, 1)))
    assert '"location", "category" and "score"' in words
    assert '"regressors" (float32 1x896x16)' in words
    assert "remap_output_names" in words


def test_a_missing_category_beside_other_outputs_is_asked_for() -> None:
    words = refused(outputs(location=(1, 9, 4), score=(1, 9), classes=(1, 9)))
    assert '"category"' in words
    assert '"classes" (float32 1x9)' in words


def test_another_family_is_not_read_by_name() -> None:
    assert "yolo_v8" in refused(outputs(**REQUIRED), family="yolo_v8")


def test_the_names_may_be_asked_for() -> None:
    ssd = outputs(a=(1, 2, 4), b=(1, 2), c=(1, 2), d=(1,))
    assert reading_of(ssd).family == "ssd"
    assert "remap_output_names" in refused(ssd, family="named")


def test_a_score_for_each_class_tells_the_class() -> None:
    scores = [[[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]]
    found = read([[BOX, BOX]], scores)
    assert [(index, score) for index, score, _ in rows(found)] == [(2, 0.7), (0, 0.6)]


def test_scores_may_come_class_by_class() -> None:
    scores = np.array([[[0.1, 0.6], [0.2, 0.3], [0.7, 0.1]]])
    assert scores.shape == (1, 3, 2)
    found = read([[BOX, BOX]], scores)
    assert [(index, score) for index, score, _ in rows(found)] == [(2, 0.7), (0, 0.6)]


def test_boxes_may_come_edge_by_edge() -> None:
    location = np.array([[BOX, [0, 0, 1, 1], BOX]]).transpose(0, 2, 1)
    assert location.shape == (1, 4, 3)
    found = read(location, [[0.9, 0.8, 0.7]], [[1, 2, 3]])
    assert rows(found)[1] == (2, 0.8, [0, 0, 1, 1])
    assert rows(found)[2] == (3, 0.7, EDGES)


def test_as_many_classes_as_boxes_are_in_the_usual_order() -> None:
    found = read([[BOX, BOX]], [[[0.1, 0.9], [0.8, 0.2]]])
    assert [(index, score) for index, score, _ in rows(found)] == [(1, 0.9), (0, 0.8)]


@pytest.mark.parametrize("shape", [(1, 2), (1, 2, 1), (2,), (1, 1, 2)])
def test_one_score_a_box_is_that_of_the_only_class(shape: tuple[int, ...]) -> None:
    found = read([[BOX, BOX]], np.array([0.9, 0.8]).reshape(shape))
    assert [(index, score) for index, score, _ in rows(found)] == [(0, 0.9), (0, 0.8)]


def test_the_order_of_edges_is_that_of_the_settings() -> None:
    # Columns: right, lower, left, upper.
    found = read([[[0.6, 0.5, 0.2, 0.1]]], [[0.9]], [[0]], xmin_ymin_xmax_ymax_order=[2, 3, 0, 1])
    assert rows(found) == [(0, 0.9, EDGES)]
    # Columns: right, left, lower, upper.
    found = read([[[0.6, 0.2, 0.5, 0.1]]], [[0.9]], [[0]], xmin_ymin_xmax_ymax_order=[2, 0, 3, 1])
    assert rows(found) == [(0, 0.9, EDGES)]


@pytest.mark.parametrize("order", [[0, 1, 2, 2], [1, 2, 3, 4], [0, 0, 0, 0]])
def test_an_order_that_is_none_is_refused(order: list[int]) -> None:
    words = refused(outputs(**REQUIRED), xmin_ymin_xmax_ymax_order=order)
    assert "xmin_ymin_xmax_ymax_order" in words


def test_the_order_may_be_in_the_notes_of_the_model() -> None:
    told = {"boxOrder": [0.0, 1.0, 2.0, 3.0]}
    assert rows(read([[EDGES]], [[0.9]], [[0]], notes=told)) == [(0, 0.9, EDGES)]
    own: dict[str, Any] = {"xmin_ymin_xmax_ymax_order": [1, 0, 3, 2]}
    assert rows(read([[BOX]], [[0.9]], [[0]], notes=told, **own)) == [(0, 0.9, EDGES)]
    for unusable in ("0123", [0, 1], [[0], 1, 2, 3], None):
        assert rows(read([[BOX]], [[0.9]], [[0]], notes={"boxOrder": unusable})) == [
            (0, 0.9, EDGES)
        ]


def test_the_makers_of_yolo_begin_with_the_left_edge() -> None:
    assert rows(read([[EDGES]], [[0.9]], [[0]], notes=ULTRALYTICS)) == [(0, 0.9, EDGES)]
    reading = reading_of(outputs(**REQUIRED), notes=ULTRALYTICS)
    assert (reading.letterbox, reading.normalization) == (True, "0..1")
    assert "left, top, right, bottom" in " ".join(reading.assumptions)
    plain = reading_of(outputs(**REQUIRED))
    assert (plain.letterbox, plain.normalization) == (False, "default")
    assert "top, left, bottom, right" in " ".join(plain.assumptions)


def test_pixels_are_parts_of_the_input() -> None:
    assert rows(read([[[10, 40, 50, 120]]], [[0.9]], [[0]])) == [(0, 0.9, EDGES)]
    whole = np.array([[[10, 40, 50, 120]]], np.int32)
    assert rows(read(whole, [[0.9]], [[0]])) == [(0, 0.9, EDGES)]


def test_whether_boxes_are_pixels_is_told_by_those_that_are_rather_sure() -> None:
    padded = [[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [10, 40, 50, 120]]]
    found = read(padded, [[0.01, 0.01, 0.01, 0.9]], [[0, 0, 0, 1]])
    assert rows(found)[0] == (1, 0.9, EDGES)
    stray = [[[0, 0, 1, 1], BOX, [0, 0, 900, 900]]]
    found = read(stray, [[0.9, 0.8, 0.1]], [[0, 1, 2]])
    assert rows(found)[1] == (1, 0.8, EDGES)


def test_boxes_in_a_letterbox_are_those_of_the_picture() -> None:
    # A picture twice as wide as high in a square of 100.
    fit = ImageFit(100, 100, 100, 50, 0, 25)
    assert rows(read([[[30, 20, 50, 60]]], [[0.9]], [[0]], fit)) == [(0, 0.9, EDGES)]
    assert rows(read([[[0.3, 0.2, 0.5, 0.6]]], [[0.9]], [[0]], fit)) == [(0, 0.9, EDGES)]
    assert rows(read([[[0.0, 0.2, 1.0, 0.6]]], [[0.9]], [[0]], fit)) == [(0, 0.9, [0.2, 0, 0.6, 1])]


def test_boxes_are_cut_off_at_the_edges_and_turned_the_right_way() -> None:
    assert rows(read([[[-0.2, 0.2, 1.3, 0.6]]], [[0.9]], [[0]])) == [(0, 0.9, [0.2, 0, 0.6, 1])]
    assert rows(read([[[0.5, 0.6, 0.1, 0.2]]], [[0.9]], [[0]])) == [(0, 0.9, EDGES)]


def test_what_is_no_number_is_left_out() -> None:
    nan, inf = np.nan, np.inf
    location = [[BOX, [nan, 0, 1, 1], [0, inf, 1, 1], BOX, BOX, BOX, BOX]]
    score = [[0.9, 0.9, 0.9, nan, inf, -inf, 0.8]]
    assert rows(read(location, score, [[1, 1, 1, 1, 1, 1, nan]])) == [(1, 0.9, EDGES)]


@pytest.mark.parametrize(
    ("category", "index"), [(2.0, 2), (2.9997, 3), (2.6, 2), (-1.0, 0), (7, 7)]
)
def test_classes_are_whole_numbers(category: float, index: int) -> None:
    assert rows(read([[BOX]], [[0.9]], [[category]])) == [(index, 0.9, EDGES)]


@pytest.mark.parametrize("category", [1e30, -1e30, np.inf])
def test_what_can_be_no_class_is_left_out(category: float) -> None:
    assert len(read([[BOX]], [[0.9]], [[category]])) == 0


def test_scores_are_from_0_to_1() -> None:
    found = read([[BOX] * 4], [[1.004, 0.5, 0.0, -0.5]], [[0, 1, 2, 3]])
    assert [(index, score) for index, score, _ in rows(found)] == [(0, 1.0), (1, 0.5)]


def test_scores_may_be_percents() -> None:
    found = read([[BOX] * 4], [[87, 50, 0.5, 224]], [[0, 1, 2, 3]])
    assert [(index, score) for index, score, _ in rows(found)] == [
        (3, 1.0),
        (0, 0.87),
        (1, 0.5),
        (2, 0.005),
    ]


def test_bytes_are_what_they_stand_for() -> None:
    quantised = {
        "location": Quantization(0.01, 10),
        "score": Quantization(1 / 256, 0),
        "category": Quantization(0.33, 0),
    }
    location = np.array([[[20, 30, 60, 70]]], np.uint8)
    score, category = np.array([[128]], np.uint8), np.array([[9]], np.uint8)
    assert rows(read(location, score, category, quantised=quantised)) == [(3, 0.5, EDGES)]


def test_scores_in_bytes_that_nobody_explains_are_parts_of_all() -> None:
    assert rows(read([[BOX]], np.array([[51]], np.uint8), [[0]])) == [(0, 0.2, EDGES)]
    assert rows(read([[BOX]], np.array([[-77]], np.int8), [[0]])) == [(0, 0.2, EDGES)]


def test_what_is_not_sure_enough_is_not_passed_on() -> None:
    location, score, category = [[BOX] * 4], [[0.2, 0.9, 0.4, 0.6]], [[0, 1, 2, 3]]
    found = read(location, score, category, default_minimum_confidence=0.4)
    assert found.classes.tolist() == [1, 3, 2]
    found = read(location, score, category, maximum_detections=2)
    assert found.classes.tolist() == [1, 3]
    labelled: dict[str, Any] = {"label_confidences": {"2": 0.3, "3": 0.8}, "maximum_detections": 1}
    assert read(location, score, category, **labelled).classes.tolist() == [2]


def test_labels_that_are_wanted_are_not_crowded_out_by_surer_ones() -> None:
    known = ModelView((), tuple(outputs(**REQUIRED)), Labels({0: "cat", 1: "dog"}))
    wanted = settings(label_confidences={"Dog": 0.1}, maximum_detections=1)
    reading = match_named_detector(known, wanted)
    assert isinstance(reading, DetectorDecoder)
    tensors = {
        "location": np.array([[BOX, BOX]]),
        "category": np.array([[0, 1]]),
        "score": np.array([[0.9, 0.2]]),
    }
    assert reading.decode(tensors, INPUT).classes.tolist() == [1]


@pytest.mark.parametrize(
    ("count", "kept"), [([2.0], [0, 1]), ([0], []), ([9], [0, 1, 2]), ([np.nan], [0, 1, 2])]
)
def test_rows_that_do_not_count_are_left_out(count: list[float], kept: list[int]) -> None:
    tensors = {
        "location": np.array([[BOX] * 3]),
        "category": np.array([[0, 1, 2]]),
        "score": np.array([[0.9, 0.8, 0.7]]),
        "num_detections": np.array(count),
    }
    given_out = [facts(name, each.shape) for name, each in tensors.items()]
    assert reading_of(given_out).decode(tensors, INPUT).classes.tolist() == kept


def test_nothing_found_is_nothing() -> None:
    empty = np.empty((1, 0, 4), np.float32)
    assert rows(read(empty, np.empty((1, 0)), np.empty((1, 0)))) == []
    assert rows(read(empty, np.empty((1, 0)))) == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"location": np.ones((1, 2, 3))}, "4 values per box"),
        ({"score": np.ones((1, 3))}, "2 boxes, 2 classes and 3 scores"),
        ({"category": np.ones((1, 1))}, "2 boxes, 1 classes and 2 scores"),
        ({"category": None}, '"category"'),
        ({"location": None}, '"location"'),
    ],
)
def test_what_does_not_fit_together_is_told(change: dict[str, Any], words: str) -> None:
    tensors: dict[str, Any] = {name: np.ones(shape) for name, shape in REQUIRED.items()} | change
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    with pytest.raises(BadOutput, match=words):
        reading_of(outputs(**REQUIRED)).decode(tensors, INPUT)


def test_scores_of_classes_that_fit_no_boxes_are_told() -> None:
    with pytest.raises(BadOutput, match="per class for 2 boxes"):
        read([[BOX, BOX]], np.ones((1, 3, 5)))


SSD: dict[str, NDArray[Any]] = {
    "boxes": np.array([[BOX, [0, 0, 1, 1]]], np.float32),
    "classes": np.array([[17, 3]], np.float32),
    "scores": np.array([[0.9, 0.5]], np.float32),
    "count": np.array([1], np.float32),
}
SSD_SHAPES = {name: tensor.shape for name, tensor in SSD.items()}


@pytest.mark.parametrize(
    "names",
    [
        {
            "TFLite_Detection_PostProcess": "boxes",
            "TFLite_Detection_PostProcess:1": "classes",
            "TFLite_Detection_PostProcess:2": "scores",
            "TFLite_Detection_PostProcess:3": "count",
        },
        {
            "detection_scores": "scores",
            "num_detections": "count",
            "detection_boxes": "boxes",
            "detection_classes": "classes",
        },
        {
            "StatefulPartitionedCall:1": "scores",
            "StatefulPartitionedCall:3": "boxes",
            "StatefulPartitionedCall:0": "count",
            "StatefulPartitionedCall:2": "classes",
        },
        {
            "StatefulPartitionedCall:33": "scores",
            "StatefulPartitionedCall:31": "boxes",
            "StatefulPartitionedCall:34": "count",
            "StatefulPartitionedCall:32": "classes",
        },
        {"x_scores": "scores", "a": "count", "b": "boxes", "c": "classes"},
        {"a": "count", "b": "boxes", "class_ids": "classes", "c": "scores"},
    ],
)
def test_the_outputs_of_tensorflow_are_known_by_their_names(names: dict[str, str]) -> None:
    given_out = [facts(name, SSD_SHAPES[role]) for name, role in names.items()]
    reading = reading_of(given_out)
    assert reading.family == "ssd"
    # Also where numbers would tell otherwise.
    wholes = SSD | {"scores": np.array([[1, 1]], np.float32), "classes": np.zeros((1, 2))}
    for tensors, expected in ((SSD, (17, 0.9)), (wholes, (0, 1.0))):
        found = reading.decode({name: tensors[role] for name, role in names.items()}, INPUT)
        assert [row[:2] for row in rows(found)] == [expected]
        assert rows(found)[0][2] == EDGES


def test_other_makers_begin_with_the_left_edge() -> None:
    given_out = [
        facts("boxes", (DYNAMIC, 4)),
        facts("labels", (DYNAMIC,), "int64"),
        facts("scores", (DYNAMIC,)),
    ]
    tensors = {
        "boxes": np.array([[40, 10, 120, 50]], np.float32),
        "labels": np.array([5]),
        "scores": np.array([0.9], np.float32),
    }
    assert rows(reading_of(given_out).decode(tensors, INPUT)) == [(5, 0.9, EDGES)]
    tensorrt = outputs(num_dets=(1, 1), det_boxes=(1, 9, 4), det_scores=(1, 9), det_classes=(1, 9))
    assert "left, top" in " ".join(reading_of(tensorrt).assumptions)


def test_whole_numbers_by_type_are_classes() -> None:
    given_out = [facts("a", (1, 2)), facts("b", (1, 2), "int64"), facts("c", (1, 2, 4))]
    reading = reading_of(given_out)
    tensors = {"a": SSD["scores"], "b": np.zeros((1, 2), np.int64), "c": SSD["boxes"]}
    assert rows(reading.decode(tensors, INPUT))[0] == (0, 0.9, EDGES)


def nameless(first: str, second: str) -> tuple[DetectorDecoder, dict[str, str]]:
    names = {"a": "boxes", "b": first, "c": second, "d": "count"}
    return reading_of([facts(name, SSD_SHAPES[role]) for name, role in names.items()]), names


@pytest.mark.parametrize("order", [("classes", "scores"), ("scores", "classes")])
def test_lists_without_names_are_told_apart_by_their_numbers(order: tuple[str, str]) -> None:
    reading, names = nameless(*order)
    assert "are swapped" in reading.assumptions[1]
    for scores in ([[0.9, 0.5]], [[1.0, 1.0]], [[1.0, 0.0]]):
        tensors = SSD | {"scores": np.array(scores, np.float32)}
        found = reading.decode({name: tensors[role] for name, role in names.items()}, INPUT)
        assert found.classes.tolist() == [17]


def test_lists_that_numbers_do_not_tell_apart_are_classes_first() -> None:
    reading, names = nameless("classes", "scores")
    ones = SSD | {"scores": np.array([[1, 0]]), "classes": np.array([[0, 1]])}
    found = reading.decode({name: ones[role] for name, role in names.items()}, INPUT)
    assert [row[:2] for row in rows(found)] == [(0, 1.0)]
    nothing = {name: np.zeros(SSD_SHAPES[role]) for name, role in names.items()}
    assert len(reading.decode(nothing, INPUT)) == 0


def test_what_one_picture_told_does_not_count_for_the_next() -> None:
    reading, names = nameless("scores", "classes")
    tensors = {name: SSD[role] for name, role in names.items()}
    first = rows(reading.decode(tensors, INPUT))
    reading.decode({name: np.zeros(SSD_SHAPES[role]) for name, role in names.items()}, INPUT)
    assert rows(reading.decode(tensors, INPUT)) == first


@pytest.mark.parametrize(
    "shapes",
    [
        {"a": (1, 9, 4), "b": (1, 9, 4), "c": (1, 9), "d": (1, 9)},
        {"a": (1, 9, 4), "b": (1, 9)},
        {"a": (1, 9, 4), "b": (1, 9), "c": (1, 8)},
        {"a": (1, 9, 4), "b": (1, 9), "c": (1, 9), "d": (1, 9)},
        {"a": (1, 9, 4), "b": (1, 9), "c": (1, 9), "d": (1,), "e": (1,)},
        {"a": (1, 84, 8400)},
        {"a": (1, 100, 91), "b": (1, 100, 4)},
        {},
    ],
)
def test_what_is_not_clear_is_not_guessed(shapes: dict[str, tuple[int, ...]]) -> None:
    assert refused(outputs(**shapes))


@pytest.mark.parametrize(
    "attributes", [{}, {"label_confidences": {str(index): 0.01 for index in range(40)}}]
)
@pytest.mark.parametrize("classes", [None, 8])
def test_a_million_boxes_take_no_time(attributes: dict[str, Any], classes: int | None) -> None:
    random = np.random.default_rng(1)
    count = 1_000_000
    tensors = {
        "location": random.random((1, count, 4), np.float32),
        "score": random.random((1, count, classes) if classes else (1, count), np.float32),
    }
    if classes is None:
        tensors["category"] = random.integers(0, 80, (1, count)).astype(np.float32)
    given_out = [facts(name, each.shape) for name, each in tensors.items()]
    read = reading_of(given_out, **attributes).decode
    seconds = []
    for _ in range(2):
        start = time.process_time()
        read(tensors, INPUT)
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.3


_numbers = arrays.arrays(
    st.sampled_from(["f4", "f8", "u1", "i1", "i4", "i8", "?"]).map(np.dtype),
    arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5),
)


@given(
    location=_numbers
    | arrays.arrays(np.float32, st.tuples(st.just(1), st.integers(0, 5), st.just(4))),
    score=_numbers | arrays.arrays(np.float32, st.tuples(st.just(1), st.integers(0, 5))),
    category=st.none() | _numbers | arrays.arrays(np.float64, (1, 3)),
    count=st.none() | _numbers,
    fit=st.sampled_from([INPUT, ImageFit(100, 100, 100, 50, 0, 25)]),
    undecided=st.booleans(),
)
def test_whatever_comes_out_becomes_boxes_or_is_told(
    location: NDArray[Any],
    score: NDArray[Any],
    category: NDArray[Any] | None,
    count: NDArray[Any] | None,
    fit: ImageFit,
    undecided: bool,
) -> None:
    names = ("a", "c", "b", "d") if undecided else ("location", "score", "category", "num")
    tensors = {
        name: tensor
        for name, tensor in zip(names, (location, score, category, count), strict=True)
        if tensor is not None
    }
    shapes = dict(zip(names, ((1, 3, 4), (1, 3), (1, 3), (1,)), strict=True))
    if not undecided and category is None:
        shapes = {names[0]: (1, 3, 4), names[1]: (1, 3, 2)}
    given_out = [facts(name, shape) for name, shape in shapes.items()]
    try:
        found = reading_of(given_out).decode(tensors, fit)
    except BadOutput:
        return
    assert ((found.boxes >= 0) & (found.boxes <= 1)).all()
    assert (found.boxes[:, :2] <= found.boxes[:, 2:]).all()
    assert ((found.scores > 0) & (found.scores <= 1)).all()
    assert (found.classes >= 0).all()
    assert len(found.boxes) == len(found.scores) == len(found.classes)


_extents = st.lists(st.sampled_from([DYNAMIC, 1, 2, 4, 9]), max_size=4).map(tuple)


@given(
    shapes=st.dictionaries(
        st.sampled_from(
            ["location", "score", "category", "a", "scores", "StatefulPartitionedCall:1"]
        ),
        st.none() | _extents,
        max_size=5,
    ),
    remap=st.dictionaries(
        st.sampled_from(["a", "aa", "x"]), st.sampled_from(["location", "score", "probability"])
    ),
)
def test_every_model_is_a_detector_or_is_refused(
    shapes: dict[str, tuple[int, ...] | None], remap: dict[str, str]
) -> None:
    found = decided(
        [facts(name, shape) for name, shape in shapes.items()], remap_output_names=remap
    )
    assert isinstance(found, DetectorDecoder) or found.reasons


def is_near(one: Found, other: Found) -> bool:
    return (
        one.label == other.label
        and abs(one.score - other.score) < 0.08
        and max(abs(a - b) for a, b in zip(one.box, other.box, strict=True)) < 0.02
    )


def test_photos_hold_what_others_find_in_them_with_an_ssd() -> None:
    known = golden_outputs("ssd_tflite")
    file, labels = "ssd_mobilenet_v2_coco_quant_postprocess.tflite", "coco_labels_numbered.txt"
    assert isinstance(match_named_detector(view(file), settings()), DetectorDecoder)
    detect = detector(file, labels, default_minimum_confidence=0.4)
    for name, things in known.items():
        found = detect(photo(name))
        expected = [_of_ssd(each) for each in things]
        # Scores of this model come in steps: one may go below or above the least.
        for each in expected:
            assert each.score < 0.48 or any(is_near(each, other) for other in found), name
        for each in found:
            assert each.score < 0.48 or any(is_near(each, other) for other in expected), name


def test_photos_hold_what_others_find_in_them_with_boxes_in_pixels() -> None:
    known = golden_outputs("yolov2tiny_nms_stretch")
    detect = detector("yolov2tiny_nms_w8.onnx", letterbox=False, default_minimum_confidence=0.3)
    for name, things in known.items():
        found = detect(photo(name))
        expected = [_of_yolo(each) for each in things]
        assert len(found) == len(expected)
        for each in expected:
            assert any(is_near(each, other) for other in found), (name, each, found)


def test_a_letterbox_the_colours_and_the_normalisation_change_what_is_found() -> None:
    file, pixels = "yolov2tiny_nms_w8.onnx", photo("collage_1280x720.jpg")
    usual: dict[str, Any] = {"default_minimum_confidence": 0.5}
    right = _labels(detector(file, letterbox=False, **usual)(pixels))
    assert right == ["cat", "cup", "cup", "person", "person", "tie"]
    assert _labels(detector(file, **usual)(pixels)) != right
    wrong: dict[str, Any] = {"input_image_mean_value": [0.5] * 3, "input_image_std_dev": [0.5] * 3}
    assert _labels(detector(file, letterbox=False, **usual, **wrong)(pixels)) != right
    swapped = detector(file, letterbox=False, input_image_bgr=True, **usual)
    assert _labels(swapped(pixels)) != right


def test_a_box_in_a_letterbox_is_where_it_is_in_the_stretched_picture() -> None:
    file, pixels = "yolov2tiny_nms_w8.onnx", photo("collage_1280x720.jpg")
    boxes = [
        next(e.box for e in detector(file, letterbox=each)(pixels) if e.label == "person")
        for each in (False, True)
    ]
    assert max(abs(a - b) for a, b in zip(*boxes, strict=True)) < 0.04


def test_a_detector_of_faces_by_anchors_is_refused() -> None:
    refusal = match_named_detector(view("face_detection_short_range.tflite"), settings())
    assert isinstance(refusal, Mismatch)


def _labels(found: list[Found]) -> list[str]:
    return sorted(each.label for each in found)


def _of_ssd(each: dict[str, Any]) -> Found:
    top, left, bottom, right = np.clip(each["ymin_xmin_ymax_xmax"], 0, 1).tolist()
    return Found(each["label"], each["score"], (left, top, right, bottom))


def _of_yolo(each: dict[str, Any]) -> Found:
    left, top, right, bottom = (np.clip(each["xyxy_416"], 0, 416) / 416).tolist()
    return Found(each["label"], each["score"], (left, top, right, bottom))
