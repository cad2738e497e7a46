"""Explanation of a result: what was filtered out, by which rules, and how long each step took."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Floats, Integers, top_k_rows
from cogwork.drivers.vision.postprocessing.label_filter import (
    filter_rows,
    label_name,
    min_confidence_by_class,
    to_classifications,
    to_detections,
)
from cogwork.drivers.vision.postprocessing.postprocessor import MIN_SCORE
from cogwork.resource.labels import Labels
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.proto.service.vision import Classification, Detection  # noqa: E402

MAX_FILTERED = 200
"""Maximum number of filtered-out results in a reply, most confident first."""
_MAX_DECIMALS = 12


class FilteredDetection(NamedTuple):
    detection: Detection
    rule: str
    """The rule that removed the detection, in a sentence."""


class FilteredClassification(NamedTuple):
    classification: Classification
    rule: str
    """The rule that removed the classification, in a sentence."""


class StepTimes(NamedTuple):
    """Seconds per step of one analysis."""

    preprocess: float
    inference: float
    decode: float


@dataclass(frozen=True, slots=True)
class Explanation:
    detections: Sequence[FilteredDetection]
    """The detections that were filtered out, highest confidence first."""
    classifications: Sequence[FilteredClassification]
    """The classifications that were filtered out, highest confidence first."""
    settings: MlmodelVisionAttributes
    times: StepTimes
    frame_seconds: float = 0.0
    """Seconds that the call waited for the image."""

    def to_dict(self, captured_at: float) -> dict[str, Any]:
        """Return plain values for the reply to a client."""
        by_label = self.settings.label_confidences
        return {
            "filtered": [
                {
                    "x_min": each.x_min,
                    "y_min": each.y_min,
                    "x_max": each.x_max,
                    "y_max": each.y_max,
                    "class_name": each.class_name,
                    "confidence": each.confidence,
                    "rule": rule,
                }
                for each, rule in self.detections
            ],
            "filtered_classifications": [
                {"class_name": each.class_name, "confidence": each.confidence, "rule": rule}
                for each, rule in self.classifications
            ],
            "minimum_confidence": (None if by_label else self.settings.default_minimum_confidence),
            "minimum_confidence_by_label": by_label,
            "milliseconds": {
                "frame": 1e3 * self.frame_seconds,
                "preprocess": 1e3 * self.times.preprocess,
                "inference": 1e3 * self.times.inference,
                "decode": 1e3 * self.times.decode,
            },
            "captured_at": captured_at,
        }


def explain_candidates(
    candidates: Candidates,
    labels: Labels | None,
    settings: MlmodelVisionAttributes,
    width: int,
    height: int,
) -> list[FilteredDetection]:
    """Return the most confident candidates that `select_candidates` does not select, as detections
    in an image of this size."""
    filtered = _find_filtered(
        candidates.scores, candidates.classes, labels, settings, settings.max_detections
    )
    rules = _explain_rows(filtered, candidates.scores, candidates.classes, labels, settings)
    detections = to_detections(candidates.select(filtered), labels, width, height)
    return [FilteredDetection(*each) for each in zip(detections, rules, strict=True)]


def explain_scores(
    scores: Floats, labels: Labels | None, settings: MlmodelVisionAttributes
) -> list[FilteredClassification]:
    """Return the most confident classes that `select_classifications` does not select."""
    classes = np.arange(len(scores))
    filtered = _find_filtered(scores, classes, labels, settings, len(scores))
    rules = _explain_rows(filtered, scores, classes, labels, settings)
    classifications = to_classifications(filtered, scores, labels)
    return [FilteredClassification(*each) for each in zip(classifications, rules, strict=True)]


def _find_filtered(
    scores: Floats,
    classes: Integers,
    labels: Labels | None,
    settings: MlmodelVisionAttributes,
    most: int,
) -> Integers:
    """Return the rows that are not reported, highest score first."""
    # Ignore empty rows, with which some models fill their outputs. Their score is 0.
    is_filtered = scores >= MIN_SCORE
    is_filtered[top_k_rows(scores, filter_rows(scores, classes, labels, settings), most)] = False
    return top_k_rows(scores, np.flatnonzero(is_filtered), MAX_FILTERED)


def _explain_rows(
    filtered: Integers,
    scores: Floats,
    classes: Integers,
    labels: Labels | None,
    settings: MlmodelVisionAttributes,
) -> list[str]:
    """Return, for each row, the rule that removed the row."""
    by_class = min_confidence_by_class(settings.label_confidences, labels)
    rules = []
    for index, score in zip(classes[filtered].tolist(), scores[filtered], strict=True):
        name = label_name(index, labels)
        if settings.label_confidences and index not in by_class:
            rules.append(f"{name} is not listed in label_confidences")
            continue
        minimum = by_class.get(index, settings.default_minimum_confidence or 0.0)
        if score >= np.float32(minimum):
            most = settings.max_detections
            rules.append(f"it is not among the {most} most confident detections (max_detections)")
        else:
            of_label = f" of {name}" if index in by_class else ""
            rules.append(f"{_format_below(float(score), minimum)}{of_label}")
    return rules


def _format_below(score: float, minimum: float) -> str:
    """Format a score with two decimals, or with more to show that it is below the minimum."""
    decimals = 2
    while decimals < _MAX_DECIMALS and float(f"{score:.{decimals}f}") >= minimum:
        decimals += 1
    limit = f"{minimum:.2f}"
    if float(limit) != minimum:
        limit = f"{minimum:g}"
    return f"{score:.{decimals}f} is below the minimum confidence {limit}"
