"""Which of what a model found is reported, and what it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Floats, Numbers
from cogwork.resource.labels import Labels

_LONGEST_NUMBER = 18
"""Digits that fit into 64 bits whatever they are."""


@dataclass(frozen=True, slots=True)
class Detected:
    label: str
    confidence: float
    x_min: int
    """In pixels, as the three that follow."""
    y_min: int
    x_max: int
    y_max: int
    x_min_normalized: float
    """The pixel as a part of the picture's width or height, as the three that follow: clients work
    out the size of the picture from both."""
    y_min_normalized: float
    x_max_normalized: float
    y_max_normalized: float


@dataclass(frozen=True, slots=True)
class Classified:
    label: str
    confidence: float


EVERYTHING = MlmodelVisionAttributes.model_construct()
"""The settings of services that choose for themselves."""


def detections(
    candidates: Candidates,
    labels: Labels | None,
    settings: MlmodelVisionAttributes,
    width: int,
    height: int,
) -> list[Detected]:
    """In a picture of that many pixels, the surest first."""
    wanted = wanted_rows(candidates.scores, candidates.classes, labels, settings)
    rows = surest_rows(candidates.scores, wanted, settings.maximum_detections)
    chosen = candidates.pick(rows)
    corners = _pixels(chosen.boxes, width, height)
    parts = corners / (width, height, width, height)
    return [
        Detected(label_of(index, labels), score, *corner, *part)
        for index, score, corner, part in zip(
            chosen.classes.tolist(),
            chosen.scores.tolist(),
            corners.tolist(),
            parts.tolist(),
            strict=True,
        )
    ]


def classifications(
    scores: Floats, labels: Labels | None, settings: MlmodelVisionAttributes, n: int
) -> list[Classified]:
    """The surest first; all of them if `n` is not above 0."""
    wanted = wanted_rows(scores, np.arange(len(scores)), labels, settings)
    rows = surest_rows(scores, wanted, n if n > 0 else len(scores))
    return [
        Classified(label_of(index, labels), score)
        for index, score in zip(rows.tolist(), scores[rows].tolist(), strict=True)
    ]


def label_of(index: int, labels: Labels | None) -> str:
    """One without a name is called by its number."""
    return (labels.get(index) if labels is not None else None) or str(index)


def wanted_rows(
    scores: Floats, classes: Numbers, labels: Labels | None, settings: MlmodelVisionAttributes
) -> Numbers:
    """Those that the settings let through."""
    rows = np.flatnonzero(scores >= least_confidence(settings))
    if not settings.label_confidences:
        return rows
    least = _least_by_class(settings.label_confidences, labels)
    if not least:
        return rows[:0]
    listed = np.array(sorted(least), np.int64)
    bounds = np.array([least[each] for each in listed.tolist()], np.float32)
    places = np.searchsorted(listed, classes[rows]).clip(max=len(listed) - 1)
    kept: Numbers = rows[(listed[places] == classes[rows]) & (scores[rows] >= bounds[places])]
    return kept


def surest_rows(scores: Floats, rows: Numbers, most: int) -> Numbers:
    """At most so many of the rows, the surest first; equally sure ones in their order."""
    values = scores[rows]
    if len(rows) > most:
        least = np.partition(values, len(values) - most)[len(values) - most]
        rows, values = rows[values >= least], values[values >= least]
    return rows[np.argsort(-values, kind="stable")[:most]]


def least_confidence(settings: MlmodelVisionAttributes) -> float:
    """Nothing below it is reported, whatever it is called. NaN is not at or above anything."""
    if settings.label_confidences:
        return min(settings.label_confidences.values())
    return settings.default_minimum_confidence or 0.0


def _least_by_class(confidences: Mapping[str, float], labels: Labels | None) -> dict[int, float]:
    by_name = dict[str, float]()
    for name, least in confidences.items():
        known = by_name.get(name.casefold(), least)
        by_name[name.casefold()] = min(known, least)
    names = labels.names if labels is not None else {}
    found = {
        index: by_name[name.casefold()]
        for index, name in names.items()
        if name.casefold() in by_name
    }
    for name, least in by_name.items():
        if _is_number(name) and int(name) not in names:
            found[int(name)] = least
    return found


def _is_number(name: str) -> bool:
    """As a class without a name is called."""
    return name.isdecimal() and len(name) <= _LONGEST_NUMBER and str(int(name)) == name


def _pixels(boxes: Floats, width: int, height: int) -> NDArray[np.int64]:
    """The last pixel is the end of the picture."""
    last = np.array((width - 1, height - 1, width - 1, height - 1), np.float64)
    pixels: NDArray[np.int64] = (np.clip(boxes, 0, 1) * last).astype(np.int64)
    return pixels
