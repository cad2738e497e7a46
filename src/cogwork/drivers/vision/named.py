"""Detectors that tell boxes, classes and scores apart by name: as the API asks for it, and as
TensorFlow and others do.

Nothing in the numbers tells whether a box begins with its left or with its upper edge: that is
known by convention, from what the model's file says, or from `xmin_ymin_xmax_ymax_order`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from cogwork.config.diagnose import close_match, did_you_mean
from cogwork.drivers.mlmodel.facts import ANY, TensorFacts
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.named_rows import NamedOutputs, NamedRows
from cogwork.drivers.vision.reading import DetectorReading, ModelView, Refusal
from cogwork.drivers.vision.tables import ONE

LOCATION, CATEGORY, SCORE = "location", "category", "score"

_Order = tuple[int, int, int, int]
"""What each column of a box is: 0 the left edge, 1 the upper, 2 the right and 3 the lower."""
_YXYX: _Order = (1, 0, 3, 2)
_XYXY: _Order = (0, 1, 2, 3)


class _Convention(NamedTuple):
    boxes: str
    classes: str
    scores: str
    rows: str
    order: _Order


_CONVENTIONS = (
    _Convention(
        "TFLite_Detection_PostProcess",
        "TFLite_Detection_PostProcess:1",
        "TFLite_Detection_PostProcess:2",
        "TFLite_Detection_PostProcess:3",
        _YXYX,
    ),
    _Convention(
        "detection_boxes", "detection_classes", "detection_scores", "num_detections", _YXYX
    ),
    _Convention("det_boxes", "det_classes", "det_scores", "num_dets", _XYXY),
    _Convention("boxes", "labels", "scores", "", _XYXY),
)
"""Those of TensorFlow, twice; of TensorRT; of torchvision."""
_COUNTS = re.compile(r"num|count|n_det", re.IGNORECASE)


def named_detector(view: ModelView, settings: MlmodelVisionAttributes) -> DetectorReading | Refusal:
    if settings.family not in (None, "named", "ssd"):
        return Refusal((f'`family` is "{settings.family}": the outputs are not read by name',))
    wrong = misspelt(view, settings, (LOCATION, CATEGORY, SCORE)) or _wrong_order(settings)
    if wrong is not None:
        return wrong
    location, category, score = (
        output_for(view, settings, role) for role in (LOCATION, CATEGORY, SCORE)
    )
    if location is not None and score is not None:
        return _by_required_names(view, settings, location, category, score)
    if settings.family == "named":
        return _unnamed(view, settings)
    return _by_habit(view, settings)


def misspelt(
    view: ModelView, settings: MlmodelVisionAttributes, required: Sequence[str]
) -> Refusal | None:
    """A mapping from an output that the model does not have."""
    names = [each.name for each in view.outputs]
    for own, role in settings.remap_output_names.items():
        if role in required and own not in names and role not in names:
            guess = did_you_mean(own, names)
            return Refusal(
                (
                    f'remap_output_names maps "{own}" to "{role}", and the model has no output '
                    f'"{own}"; it has {listed(view.outputs)}{f": {guess}" if guess else ""}',
                )
            )
    return None


def output_for(
    view: ModelView, settings: MlmodelVisionAttributes, required: str
) -> TensorFacts | None:
    """The one with that name, or that is mapped to it."""
    by_name = {each.name: each for each in view.outputs}
    mapped = [own for own, role in settings.remap_output_names.items() if role == required]
    return next((by_name[name] for name in (*mapped, required) if name in by_name), None)


def listed(tensors: Sequence[TensorFacts]) -> str:
    return ", ".join(map(str, tensors)) or "none"


def _wrong_order(settings: MlmodelVisionAttributes) -> Refusal | None:
    order = settings.xmin_ymin_xmax_ymax_order
    if order is None or _as_order(order) is not None:
        return None
    return Refusal(
        (f"xmin_ymin_xmax_ymax_order is {order}, and has to hold each of 0, 1, 2 and 3 once",)
    )


def _by_required_names(
    view: ModelView,
    settings: MlmodelVisionAttributes,
    location: TensorFacts,
    category: TensorFacts | None,
    score: TensorFacts,
) -> DetectorReading | Refusal:
    if category is None and not (len(view.outputs) == 2 or _has_classes(score)):
        return Refusal(
            (
                f'the model has the outputs {listed(view.outputs)}, and none called "{CATEGORY}": '
                f'map the one that holds the classes to "{CATEGORY}" with remap_output_names',
            )
        )
    counts = [each for each in view.outputs if _is_single(each) and _COUNTS.search(each.name)]
    count = next((each for each in counts if each not in (location, category, score)), None)
    return _reading("named", NamedOutputs(location, score, category, count), view, settings, _YXYX)


def _has_classes(score: TensorFacts) -> bool:
    """A score for each class, or nobody knows."""
    return score.shape is None or len(score.shape) == 3


def _unnamed(view: ModelView, settings: MlmodelVisionAttributes) -> Refusal:
    reasons = [
        f'a detector has outputs called "{LOCATION}", "{CATEGORY}" and "{SCORE}", and this model '
        f"has {listed(view.outputs)}: map them with remap_output_names"
    ]
    for own, role in settings.remap_output_names.items():
        meant = close_match(role, (LOCATION, CATEGORY, SCORE))
        if meant is not None and meant != role:
            reasons.append(f'remap_output_names maps "{own}" to "{role}": did you mean "{meant}"?')
    return Refusal(tuple(reasons))


def _by_habit(view: ModelView, settings: MlmodelVisionAttributes) -> DetectorReading | Refusal:
    by_name = {each.name.removesuffix(":0"): each for each in view.outputs}
    for names in _CONVENTIONS:
        if {names.boxes, names.classes, names.scores} <= set(by_name):
            roles = NamedOutputs(
                by_name[names.boxes],
                by_name[names.scores],
                by_name[names.classes],
                by_name.get(names.rows),
            )
            return _reading("ssd", roles, view, settings, names.order)
    found = _by_shape(view.outputs)
    if found is None:
        return _unnamed(view, settings)
    return _reading("ssd", found, view, settings, _YXYX)


def _by_shape(outputs: Sequence[TensorFacts]) -> NamedOutputs | None:
    """Boxes, and two lists as long: classes and scores. A number beside them is how many count."""
    boxes = [each for each in outputs if _rows(each, 4) is not None]
    if len(boxes) != 1:
        return None
    location = boxes[0]
    singles = [each for each in outputs if _is_single(each) or _is_lone(each, location)]
    lists = [each for each in outputs if each not in singles and each is not location]
    if len(lists) != 2 or len(singles) > 1 or not all(_is_list(each, location) for each in lists):
        return None
    count = next(iter(singles), None)
    in_order = _told_apart(lists[0], lists[1], location)
    if in_order is None:
        return NamedOutputs(location, lists[1], lists[0], count, undecided=True)
    category, score = in_order
    return NamedOutputs(location, score, category, count)


def _told_apart(
    one: TensorFacts, other: TensorFacts, location: TensorFacts
) -> tuple[TensorFacts, TensorFacts] | None:
    """The category and the score, as far as that can be told before they are filled."""
    for first, second in ((one, other), (other, one)):
        if re.search("class|categor|label", first.name, re.IGNORECASE) or re.search(
            "score|conf|prob", second.name, re.IGNORECASE
        ):
            return first, second
    wholes = [each.dtype.kind in "iu" and each.quantisation is None for each in (one, other)]
    if wholes[0] != wholes[1]:
        return (one, other) if wholes[0] else (other, one)
    places = [_number_in(each.name) for each in (location, one, other)]
    if None in places:
        return None
    # TensorFlow numbers boxes, classes, scores and count in this order, or in the opposite one.
    near, far = (abs(place - places[0]) for place in places[1:])  # type: ignore[operator]
    return None if near == far else (one, other) if near < far else (other, one)


def _number_in(name: str) -> int | None:
    """Of `StatefulPartitionedCall:2`; the first has none at times."""
    match = re.fullmatch(r"StatefulPartitionedCall(?::([0-9]{1,9}))?", name)
    return int(match[1] or 0) if match else None


def _rows(tensor: TensorFacts, columns: int) -> int | None:
    """How many (or ANY), of a table of one picture."""
    match tensor.shape:
        case (batch, rows, last) if batch in ONE and last == columns:
            return rows
        case (rows, last) if rows != 1 and last == columns:
            return rows
    return None


def _is_single(tensor: TensorFacts) -> bool:
    return tensor.shape is not None and all(extent == 1 for extent in tensor.shape)


def _is_lone(tensor: TensorFacts, location: TensorFacts) -> bool:
    """One number for each picture, of which there is one."""
    return tensor.shape == (ANY,) and location.shape is not None and len(location.shape) == 3


def _is_list(tensor: TensorFacts, location: TensorFacts) -> bool:
    rows = _rows(location, 4)
    match tensor.shape, location.shape:
        case (batch, extent), (_, _, _) if batch in ONE:
            return ANY in (rows, extent) or rows == extent
        case (extent,), (_, _):
            return ANY in (rows, extent) or rows == extent
    return False


def _reading(
    family: str,
    roles: NamedOutputs,
    view: ModelView,
    settings: MlmodelVisionAttributes,
    convention: _Order,
) -> DetectorReading:
    notes = view.notes or {}
    is_ultralytics = {"task", "stride"} <= set(notes)
    order, assumed = _order(settings, notes, _XYXY if is_ultralytics else convention)
    if family == "ssd":
        assumed = (*_explained(roles), *assumed)
    reader = NamedRows(
        roles,
        tuple(np.argsort(order).tolist()),
        view.labels,
        settings,
    )
    return DetectorReading(
        family,
        assumed,
        reader.read,
        letterbox=is_ultralytics,
        pixels="0..1" if is_ultralytics else "default",
    )


def _order(
    settings: MlmodelVisionAttributes, notes: Mapping[str, Any], convention: _Order
) -> tuple[_Order, tuple[str, ...]]:
    told = _as_order(settings.xmin_ymin_xmax_ymax_order) or _as_order(notes.get("boxOrder"))
    if told is not None:
        return told, ()
    first = "left, upper, right, lower" if convention == _XYXY else "upper, left, lower, right"
    return convention, (
        f"boxes are taken to be {first} edge; set `xmin_ymin_xmax_ymax_order` if they are not",
    )


def _as_order(value: Any) -> _Order | None:
    """What went through another process has become floats."""
    if not isinstance(value, list | tuple) or not all(isinstance(e, int | float) for e in value):
        return None
    if sorted(value) != [0, 1, 2, 3]:
        return None
    first, second, third, fourth = map(int, value)
    return first, second, third, fourth


def _explained(roles: NamedOutputs) -> tuple[str, ...]:
    assert roles.category is not None
    taken = (
        f'"{roles.location.name}" is taken for the boxes, "{roles.category.name}" for the classes '
        f'and "{roles.score.name}" for the scores'
    )
    if not roles.undecided:
        return (taken,)
    return (taken, "where their numbers tell otherwise, the last two change places")
