"""Model metadata as protobuf messages of the public API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from viam.proto.service.mlmodel import File, LabelType, Metadata, TensorInfo

from cogwork.drivers.mlmodel.model_info import DYNAMIC, ModelInfo, TensorSpec
from cogwork.resource.labels import Labels
from cogwork.resource.messages.structs import to_struct

LABELS_KEY = "labels"
"""Key in `extra` of each output where clients expect the path of the label file."""
NAMES_KEY = "names"
"""Key of the labels themselves, for clients on other computers that cannot read the file."""
_MAX_EXTENT = (1 << 31) - 1
"""Maximum value of a dimension in the message."""


def build_metadata(info: ModelInfo, label_path: str | None, labels: Labels | None) -> Metadata:
    outputs = [_build_tensor_info(each, label_path) for each in info.outputs]
    if outputs:
        outputs[0].extra.MergeFrom(to_struct(_model_extra(info, labels)))
    return Metadata(
        name=info.name,
        type=info.kind,
        description=info.description,
        input_info=[_build_tensor_info(each, None) for each in info.inputs],
        output_info=outputs,
    )


def _build_tensor_info(tensor: TensorSpec, label_path: str | None) -> TensorInfo:
    info = TensorInfo(
        name=tensor.name,
        description=tensor.description,
        data_type=tensor.dtype.name,
        shape=[extent if extent <= _MAX_EXTENT else DYNAMIC for extent in tensor.shape or ()],
        extra=to_struct(dict(_tensor_extra(tensor, label_path))),
    )
    if label_path is not None:
        info.associated_files.append(
            File(
                name=label_path, description="labels", label_type=LabelType.LABEL_TYPE_TENSOR_VALUE
            )
        )
    return info


def _tensor_extra(tensor: TensorSpec, label_path: str | None) -> Iterable[tuple[str, Any]]:
    if label_path is not None:
        yield LABELS_KEY, label_path
    if tensor.quantization is not None:
        quantization = tensor.quantization
        yield (
            "quantization",
            {"scale": quantization.scale, "zero_point": quantization.zero_point},
        )


def _model_extra(info: ModelInfo, labels: Labels | None) -> dict[str, Any]:
    """Return properties and labels, for which the API has no dedicated field."""
    known = dict(info.properties)
    if labels is not None:
        known[NAMES_KEY] = [labels.get(index) or str(index) for index in range(len(labels))]
    return known
