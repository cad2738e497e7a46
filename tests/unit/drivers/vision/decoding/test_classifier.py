from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray
from tests.support.models.real_models import golden_outputs
from tests.unit.drivers.vision.looking import classifier, photo, settings

from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.vision.decoding.classifier import match_classifier
from cogwork.drivers.vision.decoding.decoder import (
    BadOutput,
    ClassifierDecoder,
    Mismatch,
    ModelView,
)
from cogwork.resource.labels import Labels


def labels(count: int) -> Labels:
    return Labels({index: f"label {index}" for index in range(count)})


def output(
    *shape: int, name: str = "out", dtype: str = "float32", quantization: Quantization | None = None
) -> TensorSpec:
    return TensorSpec(name, np.dtype(dtype), shape, quantization=quantization)


def create_decoder(
    *outputs: TensorSpec, names: int | None = None, **attributes: Any
) -> ClassifierDecoder:
    reading = match(*outputs, names=names, **attributes)
    assert isinstance(reading, ClassifierDecoder), reading
    return reading


def match(
    *outputs: TensorSpec, names: int | None = None, **attributes: Any
) -> ClassifierDecoder | Mismatch:
    view = ModelView((), outputs, labels(names) if names is not None else None)
    return match_classifier(view, settings(**attributes))


def refusal_text(*outputs: TensorSpec, names: int | None = None, **attributes: Any) -> str:
    refusal = match(*outputs, names=names, **attributes)
    assert isinstance(refusal, Mismatch)
    return " ".join(refusal.reasons)


def decode_scores(
    values: Any,
    dtype: str = "float32",
    names: int | None = None,
    quantization: Quantization | None = None,
) -> list[float]:
    array = np.array(values, dtype)
    facts = output(*array.shape, dtype=dtype, quantization=quantization)
    found = create_decoder(facts, names=names).decode({"out": array})
    assert found.dtype == np.float32
    return [round(float(score), 4) for score in found]


def test_output_named_probability_is_used() -> None:
    outputs = (output(1, 9, name="embedding"), output(1, 3, name="probability"))
    read = create_decoder(*outputs).decode
    given_out = {"embedding": np.ones((1, 9)), "probability": np.array([[0.2, 0.7, 0.1]])}
    assert read(given_out).tolist() == pytest.approx([0.2, 0.7, 0.1])


def test_remapped_output_is_used_by_either_name() -> None:
    mapped: dict[str, Any] = {"remap_output_names": {"dense": "probability"}}
    own = create_decoder(output(1, 9, name="x"), output(1, 3, name="dense"), **mapped)
    assert own.decode({"dense": np.array([[0.2, 0.7, 0.1]])}).tolist() == pytest.approx(
        [0.2, 0.7, 0.1]
    )
    renamed = create_decoder(output(1, 9, name="x"), output(1, 3, name="probability"), **mapped)
    assert len(renamed.decode({"probability": np.array([[0.2, 0.7, 0.1]])})) == 3


def test_misspelled_remapping_is_refused_with_a_suggestion() -> None:
    words = refusal_text(
        output(1, 3, name="dense_1"), remap_output_names={"dense_l": "probability"}
    )
    assert 'maps "dense_l" to "probability"' in words
    assert '"dense_1" (float32 1x3)' in words
    assert 'did you mean "dense_1"?' in words


def test_several_unnamed_outputs_are_refused() -> None:
    words = refusal_text(output(1, 3, name="one"), output(1, 3, name="other"))
    assert '"probability"' in words
    assert '"one" (float32 1x3), "other" (float32 1x3)' in words


@pytest.mark.parametrize(
    "shape", [(1, 5), (5,), (1, 5, 1, 1), (1, 1, 1, 5), (DYNAMIC, 5), (1, DYNAMIC)]
)
def test_only_output_is_used_when_it_is_a_vector(shape: tuple[int, ...]) -> None:
    reading = create_decoder(output(*shape), names=5)
    assert '"out"' in reading.assumptions[0]


@pytest.mark.parametrize("shape", [(1, 84, 8400), (1, 7, 7, 1000), (8, 5), (1, DYNAMIC, DYNAMIC)])
def test_only_output_that_is_a_table_is_refused(shape: tuple[int, ...]) -> None:
    assert "list of probabilities" in refusal_text(output(*shape))


def test_number_of_classes_must_match_the_labels() -> None:
    words = refusal_text(output(1, 5), names=9)
    assert "5 classes" in words
    assert "9 labels" in words


def test_output_named_probability_may_have_more_classes_than_labels() -> None:
    reading = create_decoder(output(1, 5, name="probability"), names=3)
    assert "reported by index" in reading.assumptions[0]
    assert len(reading.decode({"probability": np.zeros((1, 5))})) == 5


def test_class_without_a_label_is_reported_by_index() -> None:
    assert decode_scores([[0.1, 0.7, 0.2]], names=2) == [0.1, 0.7, 0.2]
    decoder = create_decoder(output(1, 3), names=2)
    assert decoder.assumptions[1] == (
        "it has 3 classes, but there are 2 labels: classes without a label are reported by index"
    )


def test_background_class_of_the_model_is_dropped() -> None:
    def decode(values: list[list[float]]) -> list[float]:
        view = ModelView((), (output(1, 3),), labels(2), has_background_class=True)
        decoder = match_classifier(view, settings())
        assert isinstance(decoder, ClassifierDecoder)
        assert "the first of its 3 classes is the background" in decoder.assumptions[1]
        found = decoder.decode({"out": np.array(values, np.float32)})
        return [round(float(score), 4) for score in found]

    assert decode([[0.1, 0.7, 0.2]]) == [0.7, 0.2]
    # It is removed after the softmax, so its probability is missing from the others.
    assert decode([[float(np.log(6)), float(np.log(3)), 0.0]]) == [0.3, 0.1]


def test_background_class_of_imagenet_is_dropped() -> None:
    decoder = create_decoder(output(1, 1001), names=1000)
    scores = np.zeros((1, 1001), np.float32)
    scores[0, 1] = 1
    assert np.argmax(decoder.decode({"out": scores})) == 0


def test_one_value_for_two_labels_is_the_probability_of_the_second() -> None:
    assert decode_scores([[0.9]], names=2) == [0.1, 0.9]


def test_probabilities_are_returned_unchanged() -> None:
    assert decode_scores([[0.2, 0.2, 0.9]]) == [0.2, 0.2, 0.9]
    assert decode_scores([[-0.0005, 1.0005]]) == [0.0, 1.0]


def test_logits_become_probabilities_by_softmax() -> None:
    assert decode_scores([[0.0, np.log(3), np.log(4)]]) == [0.125, 0.375, 0.5]
    assert decode_scores([[-1.0, -1.0]]) == [0.5, 0.5]


def test_large_logits_do_not_overflow_the_softmax() -> None:
    assert decode_scores([[1000.0, 1000.0, -1000.0]]) == [0.5, 0.5, 0.0]
    assert decode_scores([[1e38, 3e38]]) == [0.0, 1.0]


@pytest.mark.parametrize(
    ("value", "share"),
    [(0.4, 0.4), (-0.4, 0.0), (1.0, 1.0), (2.0, 0.8808), (-2.0, 0.1192), (-900.0, 0.0)],
)
def test_single_logit_becomes_a_probability_by_sigmoid(value: float, share: float) -> None:
    assert decode_scores([[value]]) == [share]


def test_quantized_values_are_dequantized() -> None:
    whole = Quantization(1 / 256, 0)
    assert decode_scores([[209, 0, 47]], "uint8", quantization=whole) == [0.8164, 0.0, 0.1836]
    shifted = Quantization(1 / 256, -128)
    assert decode_scores([[81, -128, -81]], "int8", quantization=shifted) == [0.8164, 0.0, 0.1836]
    logits = Quantization(0.5, 100)
    assert decode_scores([[100, 104]], "uint8", quantization=logits) == [0.1192, 0.8808]


def test_unquantized_bytes_are_probabilities_if_plausible() -> None:
    assert decode_scores([[209, 0, 47]], "uint8") == [0.8164, 0.0, 0.1836]
    assert decode_scores([[255, 0]], "uint8") == [1.0, 0.0]
    assert decode_scores([[51, 204]], "uint8") == [0.2, 0.8]
    assert decode_scores([[81, -128, -81]], "int8") == [0.8164, 0.0, 0.1836]
    assert decode_scores([[128]], "uint8") == [0.5]


def test_unquantized_bytes_with_a_large_sum_are_logits() -> None:
    assert decode_scores([[200, 201, 100]], "uint8") == [0.2689, 0.7311, 0.0]


def test_nan_and_infinity_are_handled() -> None:
    assert decode_scores([[np.nan, 0.5, 0.25]]) == [0.0, 0.5, 0.25]
    assert decode_scores([[np.nan, 2.0, 2.0]]) == [0.0, 0.5, 0.5]
    assert decode_scores([[np.inf, 2.0, -np.inf]]) == [1.0, 0.0, 0.0]
    assert decode_scores([[-np.inf, -np.inf]]) == [0.5, 0.5]


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({"out": np.full((1, 3), np.nan)}, "are NaN"),
        ({"out": np.empty((1, 0))}, "is empty"),
        ({"others": np.ones((1, 3))}, '"out"'),
        ({"out": np.array([["a", "b"]])}, "is not numeric"),
    ],
)
def test_unreadable_outputs_are_reported(tensors: dict[str, NDArray[Any]], words: str) -> None:
    with pytest.raises(BadOutput, match=words):
        create_decoder(output(1, 3)).decode(tensors)


@given(
    array=arrays.arrays(
        st.sampled_from(["f4", "f8", "u1", "i1", "i4", "i8", "?"]).map(np.dtype),
        arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6),
    ),
    names=st.none() | st.integers(1, 6),
)
def test_any_output_becomes_probabilities_or_an_error(
    array: NDArray[Any], names: int | None
) -> None:
    reading = create_decoder(output(1, 3, name="probability"), names=names)
    try:
        found = reading.decode({"probability": array})
    except BadOutput:
        return
    assert ((found >= 0) & (found <= 1)).all()


def _is_confident(found: list[Any]) -> bool:
    """Where a model is unsure, the result depends on the way of resizing."""
    return bool(found[0][1] >= 0.5)


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("efficientnet_lite0_uint8.tflite", "effnet_tflite"),
        ("efficientnet_lite0_logits.onnx", "effnet_onnx"),
    ],
)
def test_photos_are_classified_as_by_reference_implementations(file: str, key: str) -> None:
    known = golden_outputs(key)
    classify = classifier(file, "imagenet_labels_1000.txt")
    for name, best in known.items():
        found = classify(photo(name), 3)
        by_label = {each.class_name: each.confidence for each in classify(photo(name), 0)}
        if _is_confident(best):
            assert found[0].class_name == best[0][0]
            assert all(abs(by_label[label] - score) < 0.08 for label, score in best)
        else:
            assert best[0][0] in {each.class_name for each in found}


def test_wrong_channel_order_lowers_the_confidence() -> None:
    file, labels = "efficientnet_lite0_logits.onnx", "imagenet_labels_1000.txt"
    right, wrong = classifier(file, labels), classifier(file, labels, input_image_bgr=True)
    coffee = photo("coffee.jpg")
    assert right(coffee, 1)[0].class_name == wrong(coffee, 1)[0].class_name == "espresso"
    assert right(coffee, 1)[0].confidence > wrong(coffee, 1)[0].confidence + 0.1


def test_wrong_normalization_changes_the_result() -> None:
    file, labels = "efficientnet_lite0_logits.onnx", "imagenet_labels_1000.txt"
    wrong = classifier(
        file, labels, input_image_mean_value=[0, 0, 0], input_image_std_dev=[1 / 255] * 3
    )
    assert wrong(photo("chelsea.jpg"), 1)[0].class_name != "Egyptian cat"
