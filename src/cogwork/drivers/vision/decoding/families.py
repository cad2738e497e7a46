"""Recognition of detector families by the shapes and metadata of their outputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.candidates import Candidates, ImageFit
from cogwork.drivers.vision.decoding.decoder import DetectorDecoder, Mismatch, ModelView, Tensors
from cogwork.drivers.vision.decoding.detr import match_detr
from cogwork.drivers.vision.decoding.end_to_end import match_end_to_end
from cogwork.drivers.vision.decoding.model_hints import ModelHints, gather_hints
from cogwork.drivers.vision.decoding.output_pair import match_yolo_pair
from cogwork.drivers.vision.decoding.output_table import OutputTable
from cogwork.drivers.vision.decoding.yolo import match_yolo
from cogwork.drivers.vision.postprocessing.postprocessor import Postprocessor, make_postprocessor

_Decode = Callable[[Tensors, ImageFit], Candidates]
_Matcher = Callable[[ModelHints, Postprocessor], DetectorDecoder | Mismatch | None]

_MATCHERS: tuple[_Matcher, ...] = (
    match_end_to_end,
    match_detr,
    match_yolo_pair,
    match_yolo,
)


def match_family(view: ModelView, settings: MlmodelVisionAttributes) -> DetectorDecoder | Mismatch:
    """Return the decoder of the configured family, or of the first one that the outputs match."""
    hints, postprocessor = gather_hints(view, settings), make_postprocessor(settings)
    if hints.family is None and (reason := _explain_unsupported(hints)):
        return Mismatch((reason,))
    for match_outputs in _MATCHERS:
        match match_outputs(hints, postprocessor):
            case DetectorDecoder() as decoder:
                return replace(decoder, decode=partial(_decode_quietly, decoder.decode))
            case Mismatch() as mismatch:
                return mismatch
    return Mismatch((_explain_unknown(hints),))


def _decode_quietly(decode: _Decode, tensors: Tensors, fit: ImageFit) -> Candidates:
    """Decode without NumPy warnings, because the decoders drop NaN and infinite values
    themselves."""
    with np.errstate(all="ignore"):
        return decode(tensors, fit)


def _explain_unsupported(hints: ModelHints) -> str | None:
    """Explain why a recognized model cannot be decoded."""
    if hints.task == "classify":
        return "the metadata of the model declares the task `classify`: it does not detect boxes"
    if hints.task == "obb":
        return (
            "the metadata of the model declares oriented boxes (`obb`), but a vision service "
            "reports axis-aligned boxes: export a model that was trained for the task `detect`"
        )
    if any(each.shape is None for each in hints.outputs):
        return (
            f"the model's file does not declare the shape of {_format_outputs(hints)}: "
            "set `family` to the family of the model"
        )
    if _has_anchors(hints.tables):
        return (
            f"{_format_outputs(hints)} match an anchor-based face or hand detector: its boxes are "
            "offsets from anchors that the file does not contain. Export it with box decoding "
            "included, or use a model with an output of four columns for boxes"
        )
    if hints.outputs and len(hints.map_outputs) == len(hints.outputs):
        return (
            f"{_format_outputs(hints)} are feature maps, not lists of boxes: if they are the raw "
            "head of a detector, export the model with box decoding included"
        )
    return None


def _has_anchors(tables: list[OutputTable]) -> bool:
    """Return whether the outputs look like boxes relative to anchors.

    Such models have one output with a single score per row, and one with boxes followed by
    keypoints.
    """
    columns = [each.both_orientations()[1].columns for each in tables]
    rows = {each.both_orientations()[1].rows for each in tables}
    return len(columns) == 2 and len(rows) == 1 and min(columns) == 1 and max(columns) > 5


def _explain_unknown(hints: ModelHints) -> str:
    prefix = f"`family` is set to `{hints.family}`, but " if hints.family is not None else ""
    return f"{prefix}{_format_outputs(hints)} match no known detector format"


def _format_outputs(hints: ModelHints) -> str:
    return f"the outputs {', '.join(map(str, hints.outputs)) or '(none)'}"
