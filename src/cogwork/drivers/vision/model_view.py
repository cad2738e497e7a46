"""What a vision service gets to know of its model."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from viam.proto.service.mlmodel import Metadata, TensorInfo

from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.facts import ANY, Quantisation, TensorFacts
from cogwork.drivers.mlmodel.metadata import LABELS, NAMES
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.reading import ModelView
from cogwork.resource.labels import InvalidLabels, Labels, labels_in
from cogwork.resource.structs import to_dict

_ABOUT_THE_TENSOR = (LABELS, "label", NAMES, "quantization")


class BadMetadata(CogworkError):
    """A model whose own description cannot be used."""

    status = "FAILED_PRECONDITION"


async def view_of(model: Any, attributes: MlmodelVisionAttributes) -> ModelView:
    """Of any ML model service: one of ours is asked directly."""
    if isinstance(model, EngineModel):
        facts = model.facts
        view = ModelView(facts.inputs, facts.outputs, model.labels, facts.notes)
    else:
        view = await asyncio.to_thread(_of_metadata, await model.metadata())
    if attributes.label_path is not None:
        labels = await asyncio.to_thread(labels_in, attributes.label_path)
        view = replace(view, labels=labels)
    return view


def _of_metadata(metadata: Metadata) -> ModelView:
    outputs = [(info, to_dict(info.extra)) for info in metadata.output_info]
    about = outputs[0][1] if outputs else {}
    return ModelView(
        tuple(_tensor(info, to_dict(info.extra)) for info in metadata.input_info),
        tuple(_tensor(info, extra) for info, extra in outputs),
        _labels_of(about),
        {key: value for key, value in about.items() if key not in _ABOUT_THE_TENSOR},
    )


def _tensor(info: TensorInfo, extra: Mapping[str, Any]) -> TensorFacts:
    try:
        # Some services leave the type out; nearly all of those take floats.
        dtype = np.dtype(info.data_type or "float32")
    except TypeError:
        raise BadMetadata(
            f'the model says that its tensor "{info.name}" is of type "{info.data_type}", which '
            "is no type of numbers"
        ) from None
    shape = tuple(extent if extent > 0 else ANY for extent in info.shape)
    return TensorFacts(info.name, dtype, shape, info.description, _quantisation(extra))


def _quantisation(extra: Mapping[str, Any]) -> Quantisation | None:
    match extra.get("quantization"):
        case {"scale": float(scale), "zero_point": float(zero)}:
            return Quantisation(scale, int(zero))
    return None


def _labels_of(about: Mapping[str, Any]) -> Labels | None:
    """The names themselves, or the path of a file that this computer may have, too."""
    match about.get(NAMES):
        case [*names]:
            return Labels(dict(enumerate(map(str, names))))
    path = about.get(LABELS) or about.get("label")
    if not isinstance(path, str) or not path:
        return None
    try:
        return labels_in(path)
    except InvalidLabels:
        return None
