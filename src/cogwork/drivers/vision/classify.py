"""Models that tell how sure they are of each of their labels."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.facts import TensorFacts
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Floats
from cogwork.drivers.vision.named import listed, misspelt, output_for
from cogwork.drivers.vision.reading import (
    BadOutput,
    ClassifierReading,
    ModelView,
    Refusal,
    Tensors,
)
from cogwork.drivers.vision.tables import ONE, numbers, times

PROBABILITY = "probability"

_Doubles = NDArray[np.float64]
_SLACK = 1e-3
"""What rounding makes of 0 and 1."""
_FULL = 256
"""What bytes that nobody explains stand for: this is all."""


def classifier_reading(
    view: ModelView, settings: MlmodelVisionAttributes
) -> ClassifierReading | Refusal:
    wrong = misspelt(view, settings, (PROBABILITY,))
    if wrong is not None:
        return wrong
    labels = len(view.labels) if view.labels is not None else None
    output = output_for(view, settings, PROBABILITY)
    if output is not None:
        return ClassifierReading(
            "named", _explained(output, labels), partial(_read, output, labels)
        )
    if len(view.outputs) != 1:
        return Refusal(
            (
                f'a classifier has an output called "{PROBABILITY}", and this model has '
                f"{listed(view.outputs)}: map one of them with remap_output_names",
            )
        )
    (output,) = view.outputs
    reason = _no_classes(output, labels)
    if reason is not None:
        return Refusal((reason,))
    taken = f"the only output {output} is taken for the probabilities"
    return ClassifierReading(
        "single", (taken, *_explained(output, labels)), partial(_read, output, labels)
    )


def _no_classes(output: TensorFacts, labels: int | None) -> str | None:
    """Why the only output of a model cannot be probabilities."""
    if output.shape is None:
        return None
    extents = _extents(output)
    if len(extents) > 1:
        return (
            f"a classifier gives out a list of probabilities, and the only output {output} is "
            f"{times(extents)}"
        )
    count = _classes(output)
    if labels is None or count is None or count in _fitting(labels):
        return None
    return (
        f"the only output {output} tells of {count} classes, and there are {labels} labels: "
        "give the labels of this model (`label_path`)"
    )


def _extents(output: TensorFacts) -> list[int]:
    """Without the batch, and without those of 1."""
    shape = output.shape or ()
    batched = shape[1:] if len(shape) > 1 and shape[0] in ONE else shape
    return [extent for extent in batched if extent != 1]


def _classes(output: TensorFacts) -> int | None:
    """None where the model leaves it open."""
    count = int(np.prod(_extents(output)))
    return count if output.shape is not None and count > 0 else None


def _fitting(labels: int) -> tuple[int, ...]:
    """As many as there are labels, one more for the background, or one that tells two apart."""
    return (labels, labels + 1, 1) if labels == 2 else (labels, labels + 1)


def _explained(output: TensorFacts, labels: int | None) -> tuple[str, ...]:
    count = _classes(output)
    if labels is None or count is None or count == labels:
        return ()
    if count == labels + 1:
        return (f"the first of its {count} classes is the background: there are {labels} labels",)
    if (count, labels) == (1, 2):
        return ("its only number is the probability of the second label",)
    return (
        f"it tells of {count} classes, and there are {labels} labels: those without are called by "
        "their number",
    )


def _read(output: TensorFacts, labels: int | None, tensors: Tensors) -> Floats:
    with np.errstate(all="ignore"):
        scores = _shares(_values(output, tensors), output)
    if labels is not None and len(scores) == labels + 1:
        return scores[1:]
    if (len(scores), labels) == (1, 2):
        return np.concatenate((1 - scores, scores))
    return scores


def _values(output: TensorFacts, tensors: Tensors) -> _Doubles:
    values = numbers(output, tensors).ravel().astype(np.float64)
    if not values.size:
        raise BadOutput(f'the output "{output.name}" is empty')
    kind = tensors[output.name].dtype
    if output.quantisation is None and kind in (np.uint8, np.int8):
        return _explained_bytes(values + 128 if kind == np.int8 else values)
    return values


def _explained_bytes(values: _Doubles) -> _Doubles:
    """Probabilities, if together they are not more than all; each may be rounded up."""
    total = values.sum()
    if total > _FULL + len(values) / 2:
        return values
    return values / (_FULL - 1 if total == _FULL - 1 else _FULL)


def _shares(values: _Doubles, output: TensorFacts) -> Floats:
    """From 0 to 1. What is not a number is not probable."""
    known = ~np.isnan(values)
    if not known.any():
        raise BadOutput(f'there is no number in the output "{output.name}": the model is broken')
    shares = _activated(np.nan_to_num(values, nan=-np.inf), known)
    return np.where(known, shares.clip(0, 1), 0).astype(np.float32)


def _activated(values: _Doubles, known: NDArray[np.bool_]) -> _Doubles:
    """What a model without a last activation leaves to us."""
    least, most = values[known].min(), values[known].max()
    if len(values) == 1:
        outside = least < -1 - _SLACK or most > 1 + _SLACK
        return 1 / (1 + np.exp(-values)) if outside else values
    if least >= -_SLACK and most <= 1 + _SLACK:
        return values
    powers = np.exp(values - most)
    shares: _Doubles = powers / powers.sum()
    return shares
