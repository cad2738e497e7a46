"""Classifiers: models that output a score per label."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from cogwork.drivers.mlmodel.model_info import TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Floats
from cogwork.drivers.vision.decoding.decoder import (
    BadOutput,
    ClassifierDecoder,
    Mismatch,
    ModelView,
    Tensors,
)
from cogwork.drivers.vision.decoding.named_outputs import (
    check_output_remap,
    find_output,
    format_tensors,
)
from cogwork.drivers.vision.decoding.output_table import (
    BATCH_OF_ONE,
    dequantize_output,
    format_shape,
)

PROBABILITY = "probability"

_Doubles = NDArray[np.float64]
_TOLERANCE = 1e-3
"""Rounding error by which probabilities may exceed the range from 0 to 1."""
_IMAGENET_CLASSES = 1000
"""Number of ImageNet labels. TensorFlow models for these labels have a background class in
front."""
_BYTE_SCALE = 256
"""Byte value of probability 1, if the output has no quantization parameters."""


def match_classifier(
    view: ModelView, settings: MlmodelVisionAttributes
) -> ClassifierDecoder | Mismatch:
    remap_error = check_output_remap(view, settings, (PROBABILITY,))
    if remap_error is not None:
        return remap_error
    labels = len(view.labels) if view.labels is not None else None
    has_background = view.has_background_class or labels == _IMAGENET_CLASSES
    output = find_output(view, settings, PROBABILITY)
    if output is not None:
        return ClassifierDecoder(
            "named",
            _explain_assumptions(output, labels, has_background),
            partial(_decode, output, labels, has_background),
        )
    if len(view.outputs) != 1:
        return Mismatch(
            (
                f'a classifier needs an output named "{PROBABILITY}", but this model has '
                f"{format_tensors(view.outputs)}: map one of them with remap_output_names",
            )
        )
    (output,) = view.outputs
    reason = _explain_mismatch(output, labels)
    if reason is not None:
        return Mismatch((reason,))
    assumption = f"the only output {output} is used as the probabilities"
    return ClassifierDecoder(
        "single",
        (assumption, *_explain_assumptions(output, labels, has_background)),
        partial(_decode, output, labels, has_background),
    )


def _explain_mismatch(output: TensorSpec, labels: int | None) -> str | None:
    """Explain why the only output of a model cannot hold probabilities."""
    if output.shape is None:
        return None
    extents = _squeeze_shape(output)
    if len(extents) > 1:
        return (
            f"a classifier outputs a list of probabilities, but the only output {output} has the "
            f"shape {format_shape(extents)}"
        )
    count = _class_count(output)
    if labels is None or count is None or count in _compatible_counts(labels):
        return None
    return (
        f"the only output {output} has {count} classes, but there are {labels} labels: "
        "set `label_path` to the labels of this model"
    )


def _squeeze_shape(output: TensorSpec) -> list[int]:
    """Return the shape without the batch axis and axes of size 1."""
    shape = output.shape or ()
    batched = shape[1:] if len(shape) > 1 and shape[0] in BATCH_OF_ONE else shape
    return [extent for extent in batched if extent != 1]


def _class_count(output: TensorSpec) -> int | None:
    """Return the number of classes, or None if it is dynamic."""
    count = int(np.prod(_squeeze_shape(output)))
    return count if output.shape is not None and count > 0 else None


def _compatible_counts(labels: int) -> tuple[int, ...]:
    """Return the possible numbers of classes.

    A model has one class per label, or an additional background class. With two labels, it may also
    have a single score that separates the two.
    """
    return (labels, labels + 1, 1) if labels == 2 else (labels, labels + 1)


def _explain_assumptions(
    output: TensorSpec, labels: int | None, has_background: bool
) -> tuple[str, ...]:
    count = _class_count(output)
    if labels is None or count is None or count == labels:
        return ()
    if count == labels + 1 and has_background:
        return (f"the first of its {count} classes is the background: there are {labels} labels",)
    if (count, labels) == (1, 2):
        return ("its only value is the probability of the second label",)
    return (
        f"it has {count} classes, but there are {labels} labels: classes without a label are "
        "reported by index",
    )


def _decode(
    output: TensorSpec, labels: int | None, has_background: bool, tensors: Tensors
) -> Floats:
    with np.errstate(all="ignore"):
        scores = _to_probabilities(_read_values(output, tensors), output)
    if has_background and labels is not None and len(scores) == labels + 1:
        return scores[1:]
    if (len(scores), labels) == (1, 2):
        return np.concatenate((1 - scores, scores))
    return scores


def _read_values(output: TensorSpec, tensors: Tensors) -> _Doubles:
    values = dequantize_output(output, tensors).ravel().astype(np.float64)
    if not values.size:
        raise BadOutput(f'the output "{output.name}" is empty')
    kind = tensors[output.name].dtype
    if output.quantization is None and kind in (np.uint8, np.int8):
        return _scale_bytes(values + 128 if kind == np.int8 else values)
    return values


def _scale_bytes(values: _Doubles) -> _Doubles:
    """Scale byte values to probabilities.

    If the scaled values would clearly add up to more than 1, they are not probabilities: return the
    values unchanged.
    """
    total = values.sum()
    if total > _BYTE_SCALE + len(values) / 2:
        return values
    return values / (_BYTE_SCALE - 1 if total == _BYTE_SCALE - 1 else _BYTE_SCALE)


def _to_probabilities(values: _Doubles, output: TensorSpec) -> Floats:
    """Return probabilities from 0 to 1; NaN becomes 0."""
    known = ~np.isnan(values)
    if not known.any():
        raise BadOutput(f'all values of the output "{output.name}" are NaN: the model is broken')
    probabilities = _apply_activation(np.nan_to_num(values, nan=-np.inf), known)
    return np.where(known, probabilities.clip(0, 1), 0).astype(np.float32)


def _apply_activation(values: _Doubles, known: NDArray[np.bool_]) -> _Doubles:
    """Apply softmax or sigmoid to the logits of a model without a final activation."""
    least, most = values[known].min(), values[known].max()
    if len(values) == 1:
        outside = least < -1 - _TOLERANCE or most > 1 + _TOLERANCE
        return 1 / (1 + np.exp(-values)) if outside else values
    if least >= -_TOLERANCE and most <= 1 + _TOLERANCE:
        return values
    exponentials = np.exp(values - most)
    probabilities: _Doubles = exponentials / exponentials.sum()
    return probabilities
