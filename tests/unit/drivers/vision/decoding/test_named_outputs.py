from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from tests.support.models.real_models import golden_outputs
from tests.unit.drivers.vision.looking import Found, detector, photo, settings, view

from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.vision.candidates import Candidates, ImageFit, stretch_fit
from cogwork.drivers.vision.decoding.decoder import BadOutput, DetectorDecoder, Mismatch, ModelView
from cogwork.drivers.vision.decoding.named_outputs import match_named_detector

INPUT = stretch_fit(200, 100)
ULTRALYTICS = {"task": "detect", "stride": 32}
REQUIRED = {"location": (1, 2, 4), "category": (1, 2), "score": (1, 2)}


def facts(
    name: str,
    shape: tuple[int, ...] | None,
    dtype: str = "float32",
    quantization: Quantization | None = None,
) -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, quantization=quantization)


def outputs(**shapes: tuple[int, ...]) -> list[TensorSpec]:
    return [facts(name, shape) for name, shape in shapes.items()]


def match(
    given_out: list[TensorSpec], notes: dict[str, Any] | None = None, **attributes: Any
) -> DetectorDecoder | Mismatch:
    return match_named_detector(
        ModelView((), tuple(given_out), properties=notes), settings(**attributes)
    )


def create_decoder(given_out: list[TensorSpec], **others: Any) -> DetectorDecoder:
    reading = match(given_out, **others)
    assert isinstance(reading, DetectorDecoder), reading
    return reading


def refusal_text(given_out: list[TensorSpec], **others: Any) -> str:
    refusal = match(given_out, **others)
    assert isinstance(refusal, Mismatch), refusal
    return " ".join(refusal.reasons)


def decode(
    location: Any,
    score: Any,
    category: Any | None = None,
    fit: ImageFit = INPUT,
    quantized: dict[str, Quantization] | None = None,
    notes: dict[str, Any] | None = None,
    **attributes: Any,
) -> Candidates:
    """Decode outputs with the required names."""
    tensors = {"location": np.asarray(location), "score": np.asarray(score)}
    if category is not None:
        tensors["category"] = np.asarray(category)
    given_out = [
        facts(name, each.shape, each.dtype.name, (quantized or {}).get(name))
        for name, each in tensors.items()
    ]
    return create_decoder(given_out, notes=notes, **attributes).decode(tensors, fit)


def candidate_rows(found: Candidates) -> list[tuple[int, float, list[float]]]:
    assert found.boxes.dtype == found.scores.dtype == np.float32
    assert found.classes.dtype == np.int64
    rows = [
        (int(index), round(float(score), 4), [round(float(edge), 4) for edge in box])
        for index, score, box in zip(found.classes, found.scores, found.boxes, strict=True)
    ]
    return sorted(rows, key=lambda row: -row[1])


BOX = [0.1, 0.2, 0.5, 0.6]
"""Upper, left, lower, right."""
EDGES = [0.2, 0.1, 0.6, 0.5]
"""Left, upper, right, lower."""


def test_required_names_are_decoded() -> None:
    found = decode([[BOX, [0, 0, 1, 1]]], [[0.9, 0.5]], [[3, 7]])
    assert candidate_rows(found) == [(3, 0.9, EDGES), (7, 0.5, [0, 0, 1, 1])]


def test_remapped_names_are_used_by_either_name() -> None:
    mapped = {"b": "location", "c": "category", "s": "score", "unused": "other"}
    tensors = {"b": np.array([[BOX]]), "c": np.array([[3]]), "s": np.array([[0.9]])}
    own = create_decoder(outputs(b=(1, 1, 4), c=(1, 1), s=(1, 1)), remap_output_names=mapped)
    assert own.family == "named"
    assert candidate_rows(own.decode(tensors, INPUT)) == [(3, 0.9, EDGES)]
    renamed = create_decoder(outputs(**REQUIRED), remap_output_names=mapped)
    tensors = {mapped[name]: tensor for name, tensor in tensors.items()}
    assert candidate_rows(renamed.decode(tensors, INPUT)) == [(3, 0.9, EDGES)]


def test_misspelled_remapping_is_refused_with_a_suggestion() -> None:
    words = refusal_text(
        outputs(boxes=(1, 2, 4), classes=(1, 2), scores=(1, 2)),
        remap_output_names={"boxs": "location", "classes": "category", "scores": "score"},
    )
    assert 'maps "boxs" to "location"' in words
    assert '"boxes" (float32 1x2x4), "classes" (float32 1x2), "scores" (float32 1x2)' in words
    assert 'did you mean "boxes"?' in words


def test_other_outputs_are_refused_and_named() -> None:
    words = refusal_text(outputs(regressors=(1, 896, 16), classificators=(1, 896, 1)))
    assert '"location", "category" and "score"' in words
    assert '"regressors" (float32 1x896x16)' in words
    assert "remap_output_names" in words


def test_missing_category_beside_other_outputs_is_refused() -> None:
    words = refusal_text(outputs(location=(1, 9, 4), score=(1, 9), classes=(1, 9)))
    assert '"category"' in words
    assert '"classes" (float32 1x9)' in words


def test_other_configured_family_is_refused() -> None:
    assert "yolo_v8" in refusal_text(outputs(**REQUIRED), family="yolo_v8")


def test_configured_family_named_requires_the_names() -> None:
    ssd = outputs(a=(1, 2, 4), b=(1, 2), c=(1, 2), d=(1,))
    assert create_decoder(ssd).family == "ssd"
    assert "remap_output_names" in refusal_text(ssd, family="named")


def test_scores_per_class_determine_the_class() -> None:
    scores = [[[0.1, 0.2, 0.7], [0.6, 0.3, 0.1]]]
    found = decode([[BOX, BOX]], scores)
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [(2, 0.7), (0, 0.6)]


def test_scores_may_be_transposed() -> None:
    scores = np.array([[[0.1, 0.6], [0.2, 0.3], [0.7, 0.1]]])
    assert scores.shape == (1, 3, 2)
    found = decode([[BOX, BOX]], scores)
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [(2, 0.7), (0, 0.6)]


def test_boxes_may_be_transposed() -> None:
    location = np.array([[BOX, [0, 0, 1, 1], BOX]]).transpose(0, 2, 1)
    assert location.shape == (1, 4, 3)
    found = decode(location, [[0.9, 0.8, 0.7]], [[1, 2, 3]])
    assert candidate_rows(found)[1] == (2, 0.8, [0, 0, 1, 1])
    assert candidate_rows(found)[2] == (3, 0.7, EDGES)


def test_square_scores_are_taken_as_boxes_by_classes() -> None:
    found = decode([[BOX, BOX]], [[[0.1, 0.9], [0.8, 0.2]]])
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [(1, 0.9), (0, 0.8)]


@pytest.mark.parametrize("shape", [(1, 2), (1, 2, 1), (2,), (1, 1, 2)])
def test_single_score_per_box_means_class_0(shape: tuple[int, ...]) -> None:
    found = decode([[BOX, BOX]], np.array([0.9, 0.8]).reshape(shape))
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [(0, 0.9), (0, 0.8)]


def test_order_of_edges_is_configurable() -> None:
    # Columns: right, lower, left, upper.
    found = decode([[[0.6, 0.5, 0.2, 0.1]]], [[0.9]], [[0]], xmin_ymin_xmax_ymax_order=[2, 3, 0, 1])
    assert candidate_rows(found) == [(0, 0.9, EDGES)]
    # Columns: right, left, lower, upper.
    found = decode([[[0.6, 0.2, 0.5, 0.1]]], [[0.9]], [[0]], xmin_ymin_xmax_ymax_order=[2, 0, 3, 1])
    assert candidate_rows(found) == [(0, 0.9, EDGES)]


@pytest.mark.parametrize("order", [[0, 1, 2, 2], [1, 2, 3, 4], [0, 0, 0, 0]])
def test_invalid_order_of_edges_is_refused(order: list[int]) -> None:
    words = refusal_text(outputs(**REQUIRED), xmin_ymin_xmax_ymax_order=order)
    assert "xmin_ymin_xmax_ymax_order" in words


def test_order_of_edges_is_read_from_the_model_metadata() -> None:
    told = {"boxOrder": [0.0, 1.0, 2.0, 3.0]}
    assert candidate_rows(decode([[EDGES]], [[0.9]], [[0]], notes=told)) == [(0, 0.9, EDGES)]
    own: dict[str, Any] = {"xmin_ymin_xmax_ymax_order": [1, 0, 3, 2]}
    assert candidate_rows(decode([[BOX]], [[0.9]], [[0]], notes=told, **own)) == [(0, 0.9, EDGES)]
    for unusable in ("0123", [0, 1], [[0], 1, 2, 3], None):
        assert candidate_rows(decode([[BOX]], [[0.9]], [[0]], notes={"boxOrder": unusable})) == [
            (0, 0.9, EDGES)
        ]


def test_ultralytics_models_start_with_the_left_edge() -> None:
    assert candidate_rows(decode([[EDGES]], [[0.9]], [[0]], notes=ULTRALYTICS)) == [(0, 0.9, EDGES)]
    reading = create_decoder(outputs(**REQUIRED), notes=ULTRALYTICS)
    assert (reading.letterbox, reading.normalization) == (True, "0..1")
    assert "left, top, right, bottom" in " ".join(reading.assumptions)
    plain = create_decoder(outputs(**REQUIRED))
    assert (plain.letterbox, plain.normalization) == (False, "default")
    assert "top, left, bottom, right" in " ".join(plain.assumptions)


def test_pixel_coordinates_are_relative_to_the_input() -> None:
    assert candidate_rows(decode([[[10, 40, 50, 120]]], [[0.9]], [[0]])) == [(0, 0.9, EDGES)]
    whole = np.array([[[10, 40, 50, 120]]], np.int32)
    assert candidate_rows(decode(whole, [[0.9]], [[0]])) == [(0, 0.9, EDGES)]


def test_pixel_coordinates_are_recognized_from_confident_boxes() -> None:
    padded = [[[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [10, 40, 50, 120]]]
    found = decode(padded, [[0.01, 0.01, 0.01, 0.9]], [[0, 0, 0, 1]])
    assert candidate_rows(found)[0] == (1, 0.9, EDGES)
    stray = [[[0, 0, 1, 1], BOX, [0, 0, 900, 900]]]
    found = decode(stray, [[0.9, 0.8, 0.1]], [[0, 1, 2]])
    assert candidate_rows(found)[1] == (1, 0.8, EDGES)


def test_boxes_in_a_letterbox_are_relative_to_the_image() -> None:
    # An image twice as wide as high, in a square of 100.
    fit = ImageFit(100, 100, 100, 50, 0, 25)
    assert candidate_rows(decode([[[30, 20, 50, 60]]], [[0.9]], [[0]], fit)) == [(0, 0.9, EDGES)]
    assert candidate_rows(decode([[[0.3, 0.2, 0.5, 0.6]]], [[0.9]], [[0]], fit)) == [
        (0, 0.9, EDGES)
    ]
    assert candidate_rows(decode([[[0.0, 0.2, 1.0, 0.6]]], [[0.9]], [[0]], fit)) == [
        (0, 0.9, [0.2, 0, 0.6, 1])
    ]


def test_boxes_are_clipped_and_inverted_edges_swapped() -> None:
    assert candidate_rows(decode([[[-0.2, 0.2, 1.3, 0.6]]], [[0.9]], [[0]])) == [
        (0, 0.9, [0.2, 0, 0.6, 1])
    ]
    assert candidate_rows(decode([[[0.5, 0.6, 0.1, 0.2]]], [[0.9]], [[0]])) == [(0, 0.9, EDGES)]


def test_rows_with_nan_or_infinity_are_dropped() -> None:
    nan, inf = np.nan, np.inf
    location = [[BOX, [nan, 0, 1, 1], [0, inf, 1, 1], BOX, BOX, BOX, BOX]]
    score = [[0.9, 0.9, 0.9, nan, inf, -inf, 0.8]]
    assert candidate_rows(decode(location, score, [[1, 1, 1, 1, 1, 1, nan]])) == [(1, 0.9, EDGES)]


@pytest.mark.parametrize(
    ("category", "index"), [(2.0, 2), (2.9997, 3), (2.6, 2), (-1.0, 0), (7, 7)]
)
def test_classes_are_rounded_to_integers(category: float, index: int) -> None:
    assert candidate_rows(decode([[BOX]], [[0.9]], [[category]])) == [(index, 0.9, EDGES)]


@pytest.mark.parametrize("category", [1e30, -1e30, np.inf])
def test_impossible_classes_are_dropped(category: float) -> None:
    assert len(decode([[BOX]], [[0.9]], [[category]])) == 0


def test_scores_are_limited_to_0_to_1() -> None:
    found = decode([[BOX] * 4], [[1.004, 0.5, 0.0, -0.5]], [[0, 1, 2, 3]])
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [
        (0, 1.0),
        (1, 0.5),
        (2, 0.0),
        (3, 0.0),
    ]


def test_scores_may_be_percentages() -> None:
    found = decode([[BOX] * 4], [[87, 50, 0.5, 224]], [[0, 1, 2, 3]])
    assert [(index, score) for index, score, _ in candidate_rows(found)] == [
        (3, 1.0),
        (0, 0.87),
        (1, 0.5),
        (2, 0.005),
    ]


def test_quantized_values_are_dequantized() -> None:
    quantized = {
        "location": Quantization(0.01, 10),
        "score": Quantization(1 / 256, 0),
        "category": Quantization(0.33, 0),
    }
    location = np.array([[[20, 30, 60, 70]]], np.uint8)
    score, category = np.array([[128]], np.uint8), np.array([[9]], np.uint8)
    assert candidate_rows(decode(location, score, category, quantized=quantized)) == [
        (3, 0.5, EDGES)
    ]


def test_unquantized_scores_in_bytes_are_scaled() -> None:
    assert candidate_rows(decode([[BOX]], np.array([[51]], np.uint8), [[0]])) == [(0, 0.2, EDGES)]
    assert candidate_rows(decode([[BOX]], np.array([[-77]], np.int8), [[0]])) == [(0, 0.2, EDGES)]


def test_every_row_is_returned_whatever_its_score() -> None:
    found = decode([[BOX] * 4], [[0.2, 0.0, 0.9, 0.001]], [[0, 1, 2, 3]])
    assert found.classes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("count", "kept"), [([2.0], [0, 1]), ([0], []), ([9], [0, 1, 2]), ([np.nan], [0, 1, 2])]
)
def test_rows_beyond_the_count_output_are_dropped(count: list[float], kept: list[int]) -> None:
    tensors = {
        "location": np.array([[BOX] * 3]),
        "category": np.array([[0, 1, 2]]),
        "score": np.array([[0.9, 0.8, 0.7]]),
        "num_detections": np.array(count),
    }
    given_out = [facts(name, each.shape) for name, each in tensors.items()]
    assert create_decoder(given_out).decode(tensors, INPUT).classes.tolist() == kept


def test_empty_outputs_give_no_candidates() -> None:
    empty = np.empty((1, 0, 4), np.float32)
    assert candidate_rows(decode(empty, np.empty((1, 0)), np.empty((1, 0)))) == []
    assert candidate_rows(decode(empty, np.empty((1, 0)))) == []


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
def test_outputs_of_different_lengths_are_refused(change: dict[str, Any], words: str) -> None:
    tensors: dict[str, Any] = {name: np.ones(shape) for name, shape in REQUIRED.items()} | change
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    with pytest.raises(BadOutput, match=words):
        create_decoder(outputs(**REQUIRED)).decode(tensors, INPUT)


def test_class_scores_that_match_no_boxes_are_refused() -> None:
    with pytest.raises(BadOutput, match="per class for 2 boxes"):
        decode([[BOX, BOX]], np.ones((1, 3, 5)))


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
def test_tensorflow_ssd_outputs_are_recognized_by_name(names: dict[str, str]) -> None:
    given_out = [facts(name, SSD_SHAPES[role]) for name, role in names.items()]
    reading = create_decoder(given_out)
    assert reading.family == "ssd"
    # This holds where the values suggest otherwise, too.
    wholes = SSD | {"scores": np.array([[1, 1]], np.float32), "classes": np.zeros((1, 2))}
    for tensors, expected in ((SSD, (17, 0.9)), (wholes, (0, 1.0))):
        found = reading.decode({name: tensors[role] for name, role in names.items()}, INPUT)
        assert [row[:2] for row in candidate_rows(found)] == [expected]
        assert candidate_rows(found)[0][2] == EDGES


def test_other_exporters_start_with_the_left_edge() -> None:
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
    assert candidate_rows(create_decoder(given_out).decode(tensors, INPUT)) == [(5, 0.9, EDGES)]
    tensorrt = outputs(num_dets=(1, 1), det_boxes=(1, 9, 4), det_scores=(1, 9), det_classes=(1, 9))
    assert "left, top" in " ".join(create_decoder(tensorrt).assumptions)


def test_integer_output_is_the_classes() -> None:
    given_out = [facts("a", (1, 2)), facts("b", (1, 2), "int64"), facts("c", (1, 2, 4))]
    reading = create_decoder(given_out)
    tensors = {"a": SSD["scores"], "b": np.zeros((1, 2), np.int64), "c": SSD["boxes"]}
    assert candidate_rows(reading.decode(tensors, INPUT))[0] == (0, 0.9, EDGES)


def unnamed_ssd(first: str, second: str) -> tuple[DetectorDecoder, dict[str, str]]:
    names = {"a": "boxes", "b": first, "c": second, "d": "count"}
    return create_decoder([facts(name, SSD_SHAPES[role]) for name, role in names.items()]), names


@pytest.mark.parametrize("order", [("classes", "scores"), ("scores", "classes")])
def test_unnamed_vectors_are_distinguished_by_their_values(order: tuple[str, str]) -> None:
    reading, names = unnamed_ssd(*order)
    assert "are swapped" in reading.assumptions[1]
    for scores in ([[0.9, 0.5]], [[1.0, 1.0]], [[1.0, 0.0]]):
        tensors = SSD | {"scores": np.array(scores, np.float32)}
        found = reading.decode({name: tensors[role] for name, role in names.items()}, INPUT)
        assert found.classes.tolist() == [17]


def test_ambiguous_vectors_are_classes_then_scores() -> None:
    reading, names = unnamed_ssd("classes", "scores")
    ones = SSD | {"scores": np.array([[1, 0]]), "classes": np.array([[0, 1]])}
    found = reading.decode({name: ones[role] for name, role in names.items()}, INPUT)
    assert [row[:2] for row in candidate_rows(found)] == [(0, 1.0)]
    nothing = {name: np.zeros(SSD_SHAPES[role]) for name, role in names.items()}
    assert len(reading.decode(nothing, INPUT)) == 0


def test_each_image_is_decoded_independently() -> None:
    reading, names = unnamed_ssd("scores", "classes")
    tensors = {name: SSD[role] for name, role in names.items()}
    first = candidate_rows(reading.decode(tensors, INPUT))
    reading.decode({name: np.zeros(SSD_SHAPES[role]) for name, role in names.items()}, INPUT)
    assert candidate_rows(reading.decode(tensors, INPUT)) == first


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
def test_ambiguous_outputs_are_refused(shapes: dict[str, tuple[int, ...]]) -> None:
    assert refusal_text(outputs(**shapes))


@pytest.mark.parametrize(
    "attributes", [{}, {"label_confidences": {str(index): 0.01 for index in range(40)}}]
)
@pytest.mark.parametrize("classes", [None, 8])
def test_a_million_boxes_are_decoded_fast(attributes: dict[str, Any], classes: int | None) -> None:
    random = np.random.default_rng(1)
    count = 1_000_000
    tensors = {
        "location": random.random((1, count, 4), np.float32),
        "score": random.random((1, count, classes) if classes else (1, count), np.float32),
    }
    if classes is None:
        tensors["category"] = random.integers(0, 80, (1, count)).astype(np.float32)
    given_out = [facts(name, each.shape) for name, each in tensors.items()]
    decode = create_decoder(given_out, **attributes).decode
    seconds = []
    for _ in range(2):
        start = time.process_time()
        decode(tensors, INPUT)
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
def test_any_output_is_decoded_or_refused(
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
        found = create_decoder(given_out).decode(tensors, fit)
    except BadOutput:
        return
    assert ((found.boxes >= 0) & (found.boxes <= 1)).all()
    assert (found.boxes[:, :2] <= found.boxes[:, 2:]).all()
    assert ((found.scores >= 0) & (found.scores <= 1)).all()
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
def test_any_model_is_a_detector_or_refused(
    shapes: dict[str, tuple[int, ...] | None], remap: dict[str, str]
) -> None:
    found = match([facts(name, shape) for name, shape in shapes.items()], remap_output_names=remap)
    assert isinstance(found, DetectorDecoder) or found.reasons


def is_near(one: Found, other: Found) -> bool:
    return (
        one.label == other.label
        and abs(one.score - other.score) < 0.08
        and max(abs(a - b) for a, b in zip(one.box, other.box, strict=True)) < 0.02
    )


def test_ssd_finds_the_reference_objects_in_photos() -> None:
    known = golden_outputs("ssd_tflite")
    file, labels = "ssd_mobilenet_v2_coco_quant_postprocess.tflite", "coco_labels_numbered.txt"
    assert isinstance(match_named_detector(view(file), settings()), DetectorDecoder)
    detect = detector(file, labels, default_minimum_confidence=0.4)
    for name, things in known.items():
        found = detect(photo(name))
        expected = [_from_ssd(each) for each in things]
        # The scores of this model are quantized: some may cross the minimum.
        for each in expected:
            assert each.score < 0.48 or any(is_near(each, other) for other in found), name
        for each in found:
            assert each.score < 0.48 or any(is_near(each, other) for other in expected), name


def test_boxes_in_pixels_match_the_reference_objects_in_photos() -> None:
    known = golden_outputs("yolov2tiny_nms_stretch")
    detect = detector("yolov2tiny_nms_w8.onnx", letterbox=False, default_minimum_confidence=0.3)
    for name, things in known.items():
        found = detect(photo(name))
        expected = [_from_yolo(each) for each in things]
        assert len(found) == len(expected)
        for each in expected:
            assert any(is_near(each, other) for other in found), (name, each, found)


def test_letterbox_channel_order_and_normalization_change_the_results() -> None:
    file, pixels = "yolov2tiny_nms_w8.onnx", photo("collage_1280x720.jpg")
    usual: dict[str, Any] = {"default_minimum_confidence": 0.5}
    right = _labels(detector(file, letterbox=False, **usual)(pixels))
    assert right == ["cat", "cup", "cup", "person", "person", "tie"]
    assert _labels(detector(file, **usual)(pixels)) != right
    wrong: dict[str, Any] = {"input_image_mean_value": [0.5] * 3, "input_image_std_dev": [0.5] * 3}
    assert _labels(detector(file, letterbox=False, **usual, **wrong)(pixels)) != right
    swapped = detector(file, letterbox=False, input_image_bgr=True, **usual)
    assert _labels(swapped(pixels)) != right


def test_letterboxed_and_stretched_images_give_the_same_box() -> None:
    file, pixels = "yolov2tiny_nms_w8.onnx", photo("collage_1280x720.jpg")
    boxes = [
        next(e.box for e in detector(file, letterbox=each)(pixels) if e.label == "person")
        for each in (False, True)
    ]
    assert max(abs(a - b) for a, b in zip(*boxes, strict=True)) < 0.04


def test_face_detector_with_anchors_is_refused() -> None:
    refusal = match_named_detector(view("face_detection_short_range.tflite"), settings())
    assert isinstance(refusal, Mismatch)


def _labels(found: list[Found]) -> list[str]:
    return sorted(each.label for each in found)


def _from_ssd(each: dict[str, Any]) -> Found:
    top, left, bottom, right = np.clip(each["ymin_xmin_ymax_xmax"], 0, 1).tolist()
    return Found(each["label"], each["score"], (left, top, right, bottom))


def _from_yolo(each: dict[str, Any]) -> Found:
    left, top, right, bottom = (np.clip(each["xyxy_416"], 0, 416) / 416).tolist()
    return Found(each["label"], each["score"], (left, top, right, bottom))
