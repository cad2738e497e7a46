"""The facts of a model as the public API tells them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viam.proto.service.mlmodel import File, LabelType, Metadata, TensorInfo

from cogwork.drivers.mlmodel.facts import ANY, ModelFacts, TensorFacts
from cogwork.resource.labels import Labels
from cogwork.resource.structs import to_struct

LABELS = "labels"
"""Where clients look for the path of the label file: in what is `extra` of each output."""
NAMES = "names"
"""The labels themselves, where the model's file holds them: a client may be on another computer."""
_LARGEST = (1 << 31) - 1
"""Extent that the message holds."""


def metadata_of(facts: ModelFacts, label_path: str | None, labels: Labels | None) -> Metadata:
    outputs = [_info(each, label_path) for each in facts.outputs]
    if outputs:
        outputs[0].extra.MergeFrom(to_struct(_about_the_model(facts, labels)))
    return Metadata(
        name=facts.name,
        type=facts.kind,
        description=facts.description,
        input_info=[_info(each, None) for each in facts.inputs],
        output_info=outputs,
    )


def _info(tensor: TensorFacts, label_path: str | None) -> TensorInfo:
    info = TensorInfo(
        name=tensor.name,
        description=tensor.description,
        data_type=tensor.dtype.name,
        shape=[extent if extent <= _LARGEST else ANY for extent in tensor.shape or ()],
        extra=to_struct(dict(_extra(tensor, label_path))),
    )
    if label_path is not None:
        info.associated_files.append(
            File(
                name=label_path, description="labels", label_type=LabelType.LABEL_TYPE_TENSOR_VALUE
            )
        )
    return info


def _extra(tensor: TensorFacts, label_path: str | None) -> Iterable[tuple[str, Any]]:
    if label_path is not None:
        yield LABELS, label_path
    if tensor.quantisation is not None:
        quantisation = tensor.quantisation
        yield (
            "quantization",
            {"scale": quantisation.scale, "zero_point": quantisation.zero_point},
        )


def _about_the_model(facts: ModelFacts, labels: Labels | None) -> dict[str, Any]:
    """The API has no place of its own for it."""
    known = dict(facts.notes)
    if labels is not None:
        known[NAMES] = [labels.get(index) or str(index) for index in range(len(labels))]
    return known
