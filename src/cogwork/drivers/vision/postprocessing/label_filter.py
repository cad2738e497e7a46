"""Selection of the results to report by label and confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Floats, Integers, top_k_rows
from cogwork.resource.labels import Labels
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # `sdk` must be imported before the SDK itself
from viam.proto.service.vision import Classification, Detection  # noqa: E402

_MAX_DIGITS = 18
"""Maximum number of decimal digits for which every number fits into 64 bits."""


class Selection(NamedTuple):
    candidates: Candidates
    """Candidates to report, highest score first."""
    dropped: int
    """Number of candidates that exceeded `max_detections`."""


def select_candidates(
    candidates: Candidates, labels: Labels | None, settings: MlmodelVisionAttributes
) -> Selection:
    """Select the candidates that pass the confidence thresholds, up to `max_detections`."""
    wanted = filter_rows(candidates.scores, candidates.classes, labels, settings)
    rows = top_k_rows(candidates.scores, wanted, settings.max_detections)
    return Selection(candidates.select(rows), len(wanted) - len(rows))


def to_detections(
    candidates: Candidates, labels: Labels | None, width: int, height: int
) -> list[Detection]:
    """Return the detections in an image of this size.

    Clients divide the pixels by the normalized coordinates to get the size of the image. So the
    normalized coordinates are computed from the rounded pixels.
    """
    corners = _to_pixels(candidates.boxes, width, height)
    fractions = corners / (width, height, width, height)
    return [
        Detection(
            x_min=left,
            y_min=top,
            x_max=right,
            y_max=bottom,
            confidence=score,
            class_name=label_name(index, labels),
            x_min_normalized=left_fraction,
            y_min_normalized=top_fraction,
            x_max_normalized=right_fraction,
            y_max_normalized=bottom_fraction,
        )
        for (
            index,
            score,
            (left, top, right, bottom),
            (left_fraction, top_fraction, right_fraction, bottom_fraction),
        ) in zip(
            candidates.classes.tolist(),
            candidates.scores.tolist(),
            corners.tolist(),
            fractions.tolist(),
            strict=True,
        )
    ]


def select_classifications(
    scores: Floats, labels: Labels | None, settings: MlmodelVisionAttributes, n: int
) -> list[Classification]:
    """Return the `n` best classifications, highest confidence first, or all if `n` is not
    positive."""
    wanted = filter_rows(scores, np.arange(len(scores)), labels, settings)
    return to_classifications(
        top_k_rows(scores, wanted, n if n > 0 else len(scores)), scores, labels
    )


def to_classifications(
    rows: Integers, scores: Floats, labels: Labels | None
) -> list[Classification]:
    """Return the classes of these rows with their scores."""
    return [
        Classification(class_name=label_name(index, labels), confidence=score)
        for index, score in zip(rows.tolist(), scores[rows].tolist(), strict=True)
    ]


def label_name(index: int, labels: Labels | None) -> str:
    """Return the label of a class, or its index if it has none."""
    return (labels.get(index) if labels is not None else None) or str(index)


def filter_rows(
    scores: Floats, classes: Integers, labels: Labels | None, settings: MlmodelVisionAttributes
) -> Integers:
    """Return the rows that pass the confidence thresholds."""
    rows = np.flatnonzero(scores >= min_confidence(settings))
    if not settings.label_confidences:
        return rows
    by_class = min_confidence_by_class(settings.label_confidences, labels)
    if not by_class:
        return rows[:0]
    known_classes = np.array(sorted(by_class), np.int64)
    thresholds = np.array([by_class[each] for each in known_classes.tolist()], np.float32)
    positions = np.searchsorted(known_classes, classes[rows]).clip(max=len(known_classes) - 1)
    kept: Integers = rows[
        (known_classes[positions] == classes[rows]) & (scores[rows] >= thresholds[positions])
    ]
    return kept


def min_confidence(settings: MlmodelVisionAttributes) -> float:
    """Return the confidence below which no result is reported. NaN never passes."""
    if settings.label_confidences:
        return min(settings.label_confidences.values())
    return settings.default_minimum_confidence or 0.0


def find_unknown_labels(settings: MlmodelVisionAttributes, labels: Labels | None) -> list[str]:
    """Return the labels of `label_confidences` that no result can have."""
    names = labels.names if labels is not None else {}
    known = {name.casefold() for name in names.values()}
    return [
        name
        for name in settings.label_confidences
        if name.casefold() not in known and not (_is_class_number(name) and int(name) not in names)
    ]


def min_confidence_by_class(
    confidences: Mapping[str, float], labels: Labels | None
) -> dict[int, float]:
    """Return the thresholds of `label_confidences` by class of the model."""
    by_name = dict[str, float]()
    for name, threshold in confidences.items():
        known = by_name.get(name.casefold(), threshold)
        by_name[name.casefold()] = min(known, threshold)
    names = labels.names if labels is not None else {}
    found = {
        index: by_name[name.casefold()]
        for index, name in names.items()
        if name.casefold() in by_name
    }
    for name, threshold in by_name.items():
        if _is_class_number(name) and int(name) not in names:
            found[int(name)] = threshold
    return found


def _is_class_number(name: str) -> bool:
    """Return whether the name is a class index, which is reported for classes without a label."""
    return name.isdecimal() and len(name) <= _MAX_DIGITS and str(int(name)) == name


def _to_pixels(boxes: Floats, width: int, height: int) -> NDArray[np.int64]:
    """Convert fractions to pixels; 1 becomes the last pixel of the image."""
    last = np.array((width - 1, height - 1, width - 1, height - 1), np.float64)
    pixels: NDArray[np.int64] = (np.clip(boxes, 0, 1) * last).astype(np.int64)
    return pixels
