"""Detectors whose outputs have names of their own: which family one is of, by its looks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, Fit
from cogwork.drivers.vision.clues import Clues, clues_of
from cogwork.drivers.vision.detr import detr_reading
from cogwork.drivers.vision.end_to_end import end_to_end_reading
from cogwork.drivers.vision.pairs import yolo_pair_reading
from cogwork.drivers.vision.reading import DetectorReading, ModelView, Refusal, Tensors
from cogwork.drivers.vision.sieve import Sieve, sieve_of
from cogwork.drivers.vision.tables import Table
from cogwork.drivers.vision.yolo import yolo_reading

_Read = Callable[[Tensors, Fit], Candidates]
_Recognise = Callable[[Clues, Sieve], DetectorReading | Refusal | None]

_FAMILIES: tuple[_Recognise, ...] = (
    end_to_end_reading,
    detr_reading,
    yolo_pair_reading,
    yolo_reading,
)


def family_reading(view: ModelView, settings: MlmodelVisionAttributes) -> DetectorReading | Refusal:
    """A configured family is taken at its word; without one, what is seen must agree."""
    clues, sieve = clues_of(view, settings), sieve_of(settings)
    if clues.family is None and (reason := _known_otherwise(clues)):
        return Refusal((reason,))
    for recognise in _FAMILIES:
        match recognise(clues, sieve):
            case DetectorReading() as reading:
                return replace(reading, read=partial(_quietly, reading.read))
            case Refusal() as refusal:
                return refusal
    return Refusal((_unknown(clues),))


def _quietly(read: _Read, tensors: Tensors, fit: Fit) -> Candidates:
    """What is not a number is left out in the end; until then it may be reckoned with."""
    with np.errstate(all="ignore"):
        return read(tensors, fit)


def _known_otherwise(clues: Clues) -> str | None:
    """Why a model that is recognised cannot be read."""
    if clues.task == "classify":
        return "the model's file notes that its task is to classify: it finds no boxes"
    if clues.task == "obb":
        return (
            "the model's file notes that its boxes are turned (`obb`), and the boxes of a vision "
            "service are upright: export a model that was trained to detect"
        )
    if any(each.shape is None for each in clues.outputs):
        return (
            f"the model's file does not say what {_listed(clues)} hold: set `family` to what it is"
        )
    if _has_anchors(clues.tables):
        return (
            f"{_listed(clues)} look like those of an anchor-based face or hand detector: its boxes "
            "are distances from anchors that the file does not carry. Export it with its decoding, "
            "or use a model that has its boxes in an output of four columns"
        )
    if clues.outputs and len(clues.maps) == len(clues.outputs):
        return (
            f"{_listed(clues)} are maps, not lists of boxes: if they are the raw head of a "
            "detector, export the model with its decoding"
        )
    return None


def _has_anchors(tables: list[Table]) -> bool:
    """One column of scores, and boxes followed by points."""
    columns = [each.both_ways()[1].columns for each in tables]
    rows = {each.both_ways()[1].rows for each in tables}
    return len(columns) == 2 and len(rows) == 1 and min(columns) == 1 and max(columns) > 5


def _unknown(clues: Clues) -> str:
    told = f"`family` is set to `{clues.family}`, but " if clues.family is not None else ""
    return f"{told}{_listed(clues)} are not those of a detector that is known by its looks"


def _listed(clues: Clues) -> str:
    return f"the outputs {', '.join(map(str, clues.outputs)) or '(there are none)'}"
