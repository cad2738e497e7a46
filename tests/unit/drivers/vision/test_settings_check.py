"""Settings of a vision service that have no effect on its model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.unit.drivers.vision.looking import settings

from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.decoding.decoder import ModelView
from cogwork.drivers.vision.settings_check import find_ignored_labels, find_wrong_remaps
from cogwork.resource.labels import Labels

LABELS = Labels({0: "cat", 1: "dog"})


def tensor(name: str) -> TensorSpec:
    return TensorSpec(name, np.dtype(np.float32), (1, 3))


def find(**attributes: Any) -> list[str]:
    return find_with_labels(LABELS, **attributes)


def find_with_labels(labels: Labels | None, **attributes: Any) -> list[str]:
    view = ModelView((tensor("pixels"),), (tensor("boxes"), tensor("score")), labels)
    return [
        *find_wrong_remaps(view, settings(**attributes)),
        *find_ignored_labels(settings(**attributes), labels),
    ]


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"label_confidences": {"cat": 0.5, "DOG": 0.5, "2": 0.1}},
        {"remap_output_names": {"boxes": "location"}, "remap_input_names": {"pixels": "image"}},
    ],
)
def test_effective_settings_are_not_reported(attributes: dict[str, Any]) -> None:
    assert find(**attributes) == []


def test_unknown_label_is_reported_with_a_suggestion() -> None:
    assert find(label_confidences={"cat": 0.5, "dgo": 0.5}) == [
        'label_confidences names "dgo", which the labels of the model do not contain: '
        'did you mean "dog"?'
    ]
    (problem,) = find(label_confidences={f"label {number}": 0.5 for number in range(8)})
    assert '"label 4" and 3 more, which' in problem


def test_number_of_a_labeled_class_is_reported() -> None:
    (problem,) = find(label_confidences={"1": 0.5})
    assert 'names "1", which the labels of the model do not contain' in problem


def test_label_of_a_model_without_labels_is_reported() -> None:
    assert find_with_labels(None, label_confidences={"cat": 0.5, "0": 0.5}) == [
        'label_confidences names "cat", but the model has no labels: set `label_path`, or use the '
        "numbers of the classes"
    ]


@pytest.mark.parametrize(
    ("setting", "own", "required"),
    [("remap_output_names", "boxes", "location"), ("remap_input_names", "pixels", "image")],
)
def test_reversed_remap_is_reported(setting: str, own: str, required: str) -> None:
    assert find(**{setting: {required: own}}) == [
        f'{setting} maps "{required}" to "{own}", but "{own}" is a name in the model: '
        f'to map it, write "{own}": "{required}"'
    ]


def test_remap_of_a_missing_name_is_reported_with_a_suggestion() -> None:
    assert find(remap_output_names={"boxs": "location"}) == [
        'remap_output_names maps "boxs", which the model does not have; it has '
        '"boxes" (float32 1x3), "score" (float32 1x3): did you mean "boxes"?'
    ]


def test_remap_to_a_name_that_the_model_already_has_is_reported() -> None:
    (problem,) = find(remap_output_names={"confidence": "score"})
    assert 'maps "confidence"' in problem


@pytest.mark.parametrize(
    ("setting", "own", "target", "hint"),
    [
        ("remap_output_names", "boxes", "locations", 'did you mean "location"?'),
        ("remap_output_names", "boxes", "masks", "use location, category, score, probability"),
        ("remap_input_names", "pixels", "images", 'did you mean "image"?'),
    ],
)
def test_remap_to_an_unknown_name_is_reported(
    setting: str, own: str, target: str, hint: str
) -> None:
    assert find(**{setting: {own: target}}) == [
        f'{setting} maps "{own}" to "{target}", which has no effect: {hint}'
    ]


@pytest.mark.parametrize("target", ["detection_boxes", "num_dets", "pred_logits", "boxes"])
def test_remap_to_a_name_that_a_decoder_knows_is_not_reported(target: str) -> None:
    assert find(remap_output_names={"boxes": target}) == []
