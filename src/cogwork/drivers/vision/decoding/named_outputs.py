"""Recognition of detectors by output names: the names of the API, of TensorFlow and of others.

The values do not reveal whether a box starts with its left or its top edge. The order follows from
the naming convention, the metadata of the model or `xmin_ymin_xmax_ymax_order`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cogwork.config.check.diagnostics import did_you_mean
from cogwork.drivers.mlmodel.model_info import DYNAMIC, TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.decoding.decoder import DetectorDecoder, Mismatch, ModelView
from cogwork.drivers.vision.decoding.named_decoder import NamedDecoder, NamedOutputs
from cogwork.drivers.vision.decoding.output_pair import DETR_NAMES
from cogwork.drivers.vision.decoding.output_table import BATCH_OF_ONE

LOCATION, CATEGORY, SCORE = "location", "category", "score"

_EdgeOrder = tuple[int, int, int, int]
"""Meaning of each column of a box: 0 the left edge, 1 the top, 2 the right and 3 the bottom."""
_YXYX: _EdgeOrder = (1, 0, 3, 2)
_XYXY: _EdgeOrder = (0, 1, 2, 3)


class _NamingConvention(NamedTuple):
    boxes: str
    classes: str
    scores: str
    detection_count: str
    order: _EdgeOrder


_CONVENTIONS = (
    _NamingConvention(
        "TFLite_Detection_PostProcess",
        "TFLite_Detection_PostProcess:1",
        "TFLite_Detection_PostProcess:2",
        "TFLite_Detection_PostProcess:3",
        _YXYX,
    ),
    _NamingConvention(
        "detection_boxes", "detection_classes", "detection_scores", "num_detections", _YXYX
    ),
    _NamingConvention("det_boxes", "det_classes", "det_scores", "num_dets", _XYXY),
    _NamingConvention("boxes", "labels", "scores", "", _XYXY),
)
"""Conventions of TensorFlow Lite, TensorFlow, TensorRT and torchvision."""
_COUNT_NAME = re.compile(r"num|count|n_det", re.IGNORECASE)


def match_named_detector(
    view: ModelView, settings: MlmodelVisionAttributes
) -> DetectorDecoder | Mismatch:
    if settings.family not in (None, "named", "ssd"):
        return Mismatch((f'`family` is "{settings.family}": outputs are not matched by name',))
    error = check_output_remap(view, settings, (LOCATION, CATEGORY, SCORE)) or _check_edge_order(
        settings
    )
    if error is not None:
        return error
    location, category, score = (
        find_output(view, settings, role) for role in (LOCATION, CATEGORY, SCORE)
    )
    if location is not None and score is not None:
        return _match_required_names(view, settings, location, category, score)
    if settings.family == "named":
        return _explain_missing_names(view)
    return _match_conventions(view, settings)


def check_output_remap(
    view: ModelView, settings: MlmodelVisionAttributes, required: Sequence[str]
) -> Mismatch | None:
    """Return a mismatch if the configuration maps an output that the model does not have."""
    names = [each.name for each in view.outputs]
    for own, role in settings.remap_output_names.items():
        if role in required and own not in names and role not in names:
            guess = did_you_mean(own, names)
            return Mismatch(
                (
                    f'remap_output_names maps "{own}" to "{role}", but the model has no output '
                    f'"{own}"; it has {format_tensors(view.outputs)}'
                    f"{f': {guess}' if guess else ''}",
                )
            )
    return None


def is_known_output(name: str) -> bool:
    """Return whether a decoder looks for an output of this name, besides the required names."""
    return (
        any(name and name in names[:4] for names in _CONVENTIONS)
        or name in DETR_NAMES
        or _COUNT_NAME.search(name) is not None
    )


def find_output(
    view: ModelView, settings: MlmodelVisionAttributes, required: str
) -> TensorSpec | None:
    """Return the output that has this name or is mapped to it."""
    by_name = {each.name: each for each in view.outputs}
    mapped = [own for own, role in settings.remap_output_names.items() if role == required]
    return next((by_name[name] for name in (*mapped, required) if name in by_name), None)


def format_tensors(tensors: Sequence[TensorSpec]) -> str:
    return ", ".join(map(str, tensors)) or "none"


def _check_edge_order(settings: MlmodelVisionAttributes) -> Mismatch | None:
    order = settings.xmin_ymin_xmax_ymax_order
    if order is None or _parse_edge_order(order) is not None:
        return None
    return Mismatch(
        (f"xmin_ymin_xmax_ymax_order is {order}, but must contain each of 0, 1, 2 and 3 once",)
    )


def _match_required_names(
    view: ModelView,
    settings: MlmodelVisionAttributes,
    location: TensorSpec,
    category: TensorSpec | None,
    score: TensorSpec,
) -> DetectorDecoder | Mismatch:
    if category is None and not (len(view.outputs) == 2 or _has_class_scores(score)):
        return Mismatch(
            (
                f"the model has the outputs {format_tensors(view.outputs)}, "
                f'but none named "{CATEGORY}": '
                f'map the one with the classes to "{CATEGORY}" with remap_output_names',
            )
        )
    counts = [each for each in view.outputs if _is_scalar(each) and _COUNT_NAME.search(each.name)]
    count = next((each for each in counts if each not in (location, category, score)), None)
    return _make_decoder(
        "named", NamedOutputs(location, score, category, count), view, settings, _YXYX
    )


def _has_class_scores(score: TensorSpec) -> bool:
    """Return whether the model may have a score per class."""
    return score.shape is None or len(score.shape) == 3


def _explain_missing_names(view: ModelView) -> Mismatch:
    return Mismatch(
        (
            f'a detector needs outputs named "{LOCATION}", "{CATEGORY}" and "{SCORE}", but this '
            f"model has {format_tensors(view.outputs)}: map them with remap_output_names",
        )
    )


def _match_conventions(
    view: ModelView, settings: MlmodelVisionAttributes
) -> DetectorDecoder | Mismatch:
    by_name = {each.name.removesuffix(":0"): each for each in view.outputs}
    for names in _CONVENTIONS:
        if {names.boxes, names.classes, names.scores} <= set(by_name):
            outputs = NamedOutputs(
                by_name[names.boxes],
                by_name[names.scores],
                by_name[names.classes],
                by_name.get(names.detection_count),
            )
            return _make_decoder("ssd", outputs, view, settings, names.order)
    found = _match_shapes(view.outputs)
    if found is None:
        return _explain_missing_names(view)
    return _make_decoder("ssd", found, view, settings, _YXYX)


def _match_shapes(outputs: Sequence[TensorSpec]) -> NamedOutputs | None:
    """Match outputs by shape: one output of boxes, and two with one value per box for classes and
    scores. A scalar output is the number of boxes."""
    boxes = [each for each in outputs if _row_count(each, 4) is not None]
    if len(boxes) != 1:
        return None
    location = boxes[0]
    singles = [each for each in outputs if _is_scalar(each) or _is_batched_scalar(each, location)]
    lists = [each for each in outputs if each not in singles and each is not location]
    if (
        len(lists) != 2
        or len(singles) > 1
        or not all(_has_value_per_row(each, location) for each in lists)
    ):
        return None
    count = next(iter(singles), None)
    in_order = _identify_category(lists[0], lists[1], location)
    if in_order is None:
        return NamedOutputs(location, lists[1], lists[0], count, is_ambiguous=True)
    category, score = in_order
    return NamedOutputs(location, score, category, count)


def _identify_category(
    one: TensorSpec, other: TensorSpec, location: TensorSpec
) -> tuple[TensorSpec, TensorSpec] | None:
    """Return category and score, if names, types or output numbers identify them."""
    for first, second in ((one, other), (other, one)):
        if re.search("class|categor|label", first.name, re.IGNORECASE) or re.search(
            "score|conf|prob", second.name, re.IGNORECASE
        ):
            return first, second
    are_integers = [each.dtype.kind in "iu" and each.quantization is None for each in (one, other)]
    if are_integers[0] != are_integers[1]:
        return (one, other) if are_integers[0] else (other, one)
    numbers = [_parse_output_number(each.name) for each in (location, one, other)]
    if None in numbers:
        return None
    # TensorFlow numbers boxes, classes, scores and count in this order, or in the opposite one.
    near, far = (abs(number - numbers[0]) for number in numbers[1:])  # type: ignore[operator]
    return None if near == far else (one, other) if near < far else (other, one)


def _parse_output_number(name: str) -> int | None:
    """Parse the output number in a name such as `StatefulPartitionedCall:2`.

    The name of the first output may lack the number.
    """
    match = re.fullmatch(r"StatefulPartitionedCall(?::([0-9]{1,9}))?", name)
    return int(match[1] or 0) if match else None


def _row_count(tensor: TensorSpec, columns: int) -> int | None:
    """Return the number of rows (possibly DYNAMIC) of an output for a single image.

    Return None if the rows of the output do not have the given number of columns.
    """
    match tensor.shape:
        case (batch, rows, last) if batch in BATCH_OF_ONE and last == columns:
            return rows
        case (rows, last) if rows != 1 and last == columns:
            return rows
    return None


def _is_scalar(tensor: TensorSpec) -> bool:
    return tensor.shape is not None and all(extent == 1 for extent in tensor.shape)


def _is_batched_scalar(tensor: TensorSpec, location: TensorSpec) -> bool:
    """Return whether the tensor has a dynamic batch size and one value per image."""
    return tensor.shape == (DYNAMIC,) and location.shape is not None and len(location.shape) == 3


def _has_value_per_row(tensor: TensorSpec, location: TensorSpec) -> bool:
    rows = _row_count(location, 4)
    match tensor.shape, location.shape:
        case (batch, extent), (_, _, _) if batch in BATCH_OF_ONE:
            return DYNAMIC in (rows, extent) or rows == extent
        case (extent,), (_, _):
            return DYNAMIC in (rows, extent) or rows == extent
    return False


def _make_decoder(
    family: str,
    outputs: NamedOutputs,
    view: ModelView,
    settings: MlmodelVisionAttributes,
    convention: _EdgeOrder,
) -> DetectorDecoder:
    metadata = view.properties or {}
    is_ultralytics = {"task", "stride"} <= set(metadata)
    order, assumed = _resolve_edge_order(
        settings, metadata, _XYXY if is_ultralytics else convention
    )
    if family == "ssd":
        assumed = (*_explain_assumptions(outputs), *assumed)
    decoder = NamedDecoder(outputs, tuple(np.argsort(order).tolist()))
    return DetectorDecoder(
        family,
        assumed,
        decoder.decode,
        letterbox=is_ultralytics,
        normalization="0..1" if is_ultralytics else "default",
    )


def _resolve_edge_order(
    settings: MlmodelVisionAttributes, metadata: Mapping[str, Any], convention: _EdgeOrder
) -> tuple[_EdgeOrder, tuple[str, ...]]:
    order = _parse_edge_order(settings.xmin_ymin_xmax_ymax_order) or _parse_edge_order(
        metadata.get("boxOrder")
    )
    if order is not None:
        return order, ()
    first = "left, top, right, bottom" if convention == _XYXY else "top, left, bottom, right"
    return convention, (
        f"boxes are assumed to be in the order {first}; otherwise set `xmin_ymin_xmax_ymax_order`",
    )


def _parse_edge_order(value: Any) -> _EdgeOrder | None:
    """Parse an edge order. In metadata from another process, its numbers are floats."""
    if not isinstance(value, list | tuple) or not all(isinstance(e, int | float) for e in value):
        return None
    if sorted(value) != [0, 1, 2, 3]:
        return None
    first, second, third, fourth = map(int, value)
    return first, second, third, fourth


def _explain_assumptions(outputs: NamedOutputs) -> tuple[str, ...]:
    assert outputs.category is not None
    assumption = (
        f'"{outputs.location.name}" is used for the boxes, "{outputs.category.name}" for the '
        f'classes and "{outputs.score.name}" for the scores'
    )
    if not outputs.is_ambiguous:
        return (assumption,)
    return (assumption, "classes and scores are swapped if their values indicate it")
