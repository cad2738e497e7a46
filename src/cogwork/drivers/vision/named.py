"""Detectors that tell boxes, classes and scores apart by name: as the API asks for it, and as
TensorFlow and others do.

Nothing in the numbers tells whether a box begins with its left or with its upper edge: that is
known by convention, from what the model's file says, or from `xmin_ymin_xmax_ymax_order`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cogwork.config.diagnose import close_match, did_you_mean
from cogwork.drivers.mlmodel.facts import ANY, TensorFacts
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.boxes import whole
from cogwork.drivers.vision.candidates import Candidates, Fit, Floats, stretched
from cogwork.drivers.vision.choose import surest_rows, wanted_rows
from cogwork.drivers.vision.reading import (
    BadOutput,
    DetectorReading,
    ModelView,
    Refusal,
    Tensors,
)
from cogwork.drivers.vision.tables import ONE, numbers
from cogwork.resource.labels import Labels

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
_LARGEST_PART = 2.0
"""Parts of a picture that are beyond this are pixels, and scores are percents."""
_LARGEST_CLASS = 2.0**31
_NEARLY = 1e-3
"""What is missing from whole numbers that were calculated."""


@dataclass(frozen=True, slots=True)
class _Roles:
    location: TensorFacts
    score: TensorFacts
    category: TensorFacts | None = None
    """None: the score tells the class, or there is one."""
    count: TensorFacts | None = None
    undecided: bool = False
    """Whether category and score may be the other way round."""


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
    return _reading("named", _Roles(location, score, category, count), view, settings, _YXYX)


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
            roles = _Roles(
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


def _by_shape(outputs: Sequence[TensorFacts]) -> _Roles | None:
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
        return _Roles(location, lists[1], lists[0], count, undecided=True)
    category, score = in_order
    return _Roles(location, score, category, count)


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
    roles: _Roles,
    view: ModelView,
    settings: MlmodelVisionAttributes,
    convention: _Order,
) -> DetectorReading:
    notes = view.notes or {}
    is_ultralytics = {"task", "stride"} <= set(notes)
    order, assumed = _order(settings, notes, _XYXY if is_ultralytics else convention)
    if family == "ssd":
        assumed = (*_explained(roles), *assumed)
    reader = _Reader(
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


def _explained(roles: _Roles) -> tuple[str, ...]:
    assert roles.category is not None
    taken = (
        f'"{roles.location.name}" is taken for the boxes, "{roles.category.name}" for the classes '
        f'and "{roles.score.name}" for the scores'
    )
    if not roles.undecided:
        return (taken,)
    return (taken, "where their numbers tell otherwise, the last two change places")


@dataclass(frozen=True, slots=True)
class _Reader:
    roles: _Roles
    columns: tuple[int, ...]
    """Where in a box the left, upper, right and lower edge is."""
    labels: Labels | None
    settings: MlmodelVisionAttributes
    """Rows that are not reported anyway are left out early: there may be very many."""

    def read(self, tensors: Tensors, fit: Fit) -> Candidates:
        with np.errstate(all="ignore"):
            return self._read(tensors, fit)

    def _read(self, tensors: Tensors, fit: Fit) -> Candidates:
        boxes = numbers(self.roles.location, tensors)
        if boxes.size % 4:
            raise BadOutput(f"{_given(self.roles.location, boxes)} does not hold 4 numbers a box")
        count = boxes.size // 4
        boxes = _table(boxes, count, 4)
        scores, classes = self._scored(tensors, count)
        sound = (scores > 0) & (np.abs(classes) < _LARGEST_CLASS) & np.isfinite(boxes.sum(axis=1))
        indices = np.where(sound, classes, 0).astype(np.int64).clip(min=0)
        scores = np.where(sound, scores, np.float32(np.nan))
        wanted = wanted_rows(scores, indices, self.labels, self.settings)
        rows = surest_rows(scores, wanted, self.settings.maximum_detections)
        edges = boxes[rows][:, self.columns]
        return Candidates(_parts(edges, scores[rows], fit), scores[rows], indices[rows])

    def _scored(self, tensors: Tensors, count: int) -> tuple[Floats, Floats]:
        """The scores, from 0 to 1, and the classes of so many boxes. What does not count is NaN."""
        roles = self.roles
        scores = numbers(roles.score, tensors)
        if roles.category is None:
            best, classes = _best(scores, roles, count)
            scores = _shares(best, roles.score, tensors)
        else:
            category, score = roles.category, roles.score
            classes = numbers(category, tensors)
            if roles.undecided and _is_other_way_round(classes, scores):
                category, score, classes, scores = score, category, scores, classes
            scores = _shares(scores.ravel(), score, tensors)
            classes = _wholes(classes.ravel(), category)
        if not len(scores) == len(classes) == count:
            raise BadOutput(
                "the outputs of the model do not fit together: they tell of "
                f"{count} boxes, {len(classes)} classes and {len(scores)} scores"
            )
        return _counted(scores, roles.count, tensors), classes


def _given(facts: TensorFacts, values: NDArray[Any]) -> str:
    return f'the output "{facts.name}" ({"x".join(map(str, values.shape)) or "scalar"})'


def _table(values: Floats, rows: int, columns: int) -> Floats:
    """Rows first, whichever way they come."""
    extents = [extent for extent in values.shape if extent != 1]
    if rows != columns and extents == [columns, rows]:
        return values.reshape(columns, rows).T
    return values.reshape(rows, columns)


def _best(scores: Floats, roles: _Roles, count: int) -> tuple[Floats, Floats]:
    """The best score of each box, and its class."""
    if scores.size == count:
        return scores.ravel(), np.zeros(scores.size, np.float32)
    if not count or not scores.size or scores.size % count or count not in scores.shape:
        raise BadOutput(
            f"{_given(roles.score, scores)} does not hold a score for each class of {count} boxes"
        )
    table = _table(scores, count, scores.size // count)
    if np.isnan(table.sum()):
        table = np.where(np.isnan(table), -np.inf, table)
    classes = table.argmax(axis=1)
    return table[np.arange(count), classes], classes.astype(np.float32)


def _shares(scores: Floats, facts: TensorFacts, tensors: Tensors) -> Floats:
    """From 0 to 1. Some models tell percents, some bytes without saying what these stand for. What
    is infinite becomes NaN."""
    kind = tensors[facts.name].dtype
    if facts.quantisation is None and kind in (np.uint8, np.int8):
        scores = (scores + 128 if kind == np.int8 else scores) / np.float32(255)
    scores = np.where(np.isfinite(scores), scores, np.float32(np.nan))
    if (scores > _LARGEST_PART).any():
        scores = scores / np.float32(100)
    return scores.clip(0, 1)


def _wholes(classes: Floats, facts: TensorFacts) -> Floats:
    quantised = facts.quantisation is not None
    return np.rint(classes) if quantised else np.trunc(classes + np.float32(_NEARLY))


def _is_other_way_round(category: Floats, score: Floats) -> bool:
    """Classes are whole numbers, and not all 0; also beside scores that happen to be whole."""
    if not _look_whole(category):
        return _look_whole(score)
    return _look_whole(score) and bool(category.max() <= 1 < score.max())


def _look_whole(values: Floats) -> bool:
    return bool(values.size and values.any() and (values == np.rint(values)).all())


def _counted(scores: Floats, facts: TensorFacts | None, tensors: Tensors) -> Floats:
    """Without those of rows that only fill the tensor up."""
    count = numbers(facts, tensors).ravel()[:1] if facts is not None else np.empty(0)
    if not count.size or not np.isfinite(count[0]) or count[0] >= len(scores):
        return scores
    counted = scores.copy()
    counted[max(0, int(count[0] + _NEARLY)) :] = np.nan
    return counted


def _parts(edges: Floats, scores: Floats, fit: Fit) -> Floats:
    """Of the picture, from edges in parts or pixels of the input."""
    if _are_pixels(edges, scores):
        edges = fit.to_picture(edges)
    elif fit != stretched(fit.input_width, fit.input_height):
        edges = fit.to_picture(edges * whole(fit))
    edges = edges.clip(0, 1)
    first, second = edges[:, :2], edges[:, 2:]
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), axis=1)


def _are_pixels(edges: Floats, scores: Floats) -> bool:
    """Told by the boxes that the model is rather sure of: others may be anything."""
    if not len(scores):
        return False
    farthest = edges[scores >= scores.max() / 2].max(axis=1)
    return bool(np.median(farthest) > _LARGEST_PART)
