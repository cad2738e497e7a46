"""The description of a model, read from an ML model service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from viam.proto.service.mlmodel import Metadata, TensorInfo

from cogwork.core.errors import CogworkError
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.metadata_proto import LABELS_KEY, NAMES_KEY
from cogwork.drivers.mlmodel.model_info import DYNAMIC, Quantization, TensorSpec
from cogwork.drivers.vision.attributes import MlmodelVisionAttributes
from cogwork.drivers.vision.decoding.decoder import ModelView
from cogwork.resource.labels import InvalidLabels, Labels, load_labels
from cogwork.resource.messages.structs import to_dict

_BACKGROUND_NAMES = ("background", "bg", "???")
_TENSOR_KEYS = (LABELS_KEY, "label", NAMES_KEY, "quantization")


class BadMetadata(CogworkError):
    """The metadata of the model is invalid."""

    status = "FAILED_PRECONDITION"


async def load_model_view(model: Any, attributes: MlmodelVisionAttributes) -> ModelView:
    """Return the description of a model: from the engine of a built-in service, or from the
    metadata of any other service."""
    if isinstance(model, EngineModel):
        info = model.info
        view = ModelView(info.inputs, info.outputs, model.labels, info.properties)
    else:
        view = await asyncio.to_thread(_view_from_metadata, await model.metadata())
    if attributes.label_path is not None:
        labels = await asyncio.to_thread(load_labels, attributes.label_path)
        view = replace(view, labels=labels, has_background_class=_has_background(view.labels))
    return view


def _has_background(labels: Labels | None) -> bool:
    name = labels.get(0) if labels is not None else None
    return name is not None and name.strip("_ ").casefold() in _BACKGROUND_NAMES


def _view_from_metadata(metadata: Metadata) -> ModelView:
    outputs = [(info, to_dict(info.extra)) for info in metadata.output_info]
    properties = outputs[0][1] if outputs else {}
    return ModelView(
        tuple(_parse_tensor(info, to_dict(info.extra)) for info in metadata.input_info),
        tuple(_parse_tensor(info, extra) for info, extra in outputs),
        _find_labels(properties),
        {key: value for key, value in properties.items() if key not in _TENSOR_KEYS},
    )


def _parse_tensor(info: TensorInfo, extra: Mapping[str, Any]) -> TensorSpec:
    try:
        # Some services omit the type: assume float32, which nearly all of their models take.
        dtype = np.dtype(info.data_type or "float32")
    except TypeError:
        raise BadMetadata(
            f'the model declares the type "{info.data_type}" for its tensor "{info.name}", which '
            "is not a numeric type"
        ) from None
    shape = tuple(extent if extent > 0 else DYNAMIC for extent in info.shape)
    return TensorSpec(info.name, dtype, shape, info.description, _parse_quantization(extra))


def _parse_quantization(extra: Mapping[str, Any]) -> Quantization | None:
    match extra.get("quantization"):
        case {"scale": float(scale), "zero_point": float(zero)}:
            return Quantization(scale, int(zero))
    return None


def _find_labels(properties: Mapping[str, Any]) -> Labels | None:
    """Return the labels in the metadata, or in the label file that the metadata names, if
    readable."""
    match properties.get(NAMES_KEY):
        case [*names]:
            return Labels(dict(enumerate(map(str, names))))
    path = properties.get(LABELS_KEY) or properties.get("label")
    if not isinstance(path, str) or not path:
        return None
    try:
        return load_labels(path)
    except InvalidLabels:
        return None
