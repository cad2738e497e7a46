"""Tiny generated ONNX models."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

# This is read when onnxruntime is imported, which otherwise sends telemetry.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

Extents = Sequence[int | str] | None
Tensor = tuple[str, int, Extents]
"""Name, type and extents."""

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[Tensor],
    outputs: Sequence[Tensor],
    constants: Mapping[str, NDArray[Any]] | None = None,
    notes: Mapping[str, str] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*each) for each in outputs],
        [numpy_helper.from_array(array, name) for name, array in (constants or {}).items()],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    made.ir_version = 8
    helper.set_model_props(made, dict(notes or {}))
    return made


def save_model(path: Path, made: onnx.ModelProto) -> Path:
    path.write_bytes(made.SerializeToString())
    return path


def one_node(
    op: str, given: Sequence[Tensor], gives: Tensor = ("y", FLOAT, None), **attributes: Any
) -> onnx.ModelProto:
    node = helper.make_node(op, [name for name, _, _ in given], [gives[0]], **attributes)
    return model([node], given, [gives])


def relu(extents: Extents = ("n", 4), notes: Mapping[str, str] | None = None) -> onnx.ModelProto:
    node = helper.make_node("Relu", ["x"], ["y"])
    return model([node], [("x", FLOAT, extents)], [("y", FLOAT, extents)], notes=notes)


def add_constant(number: float) -> onnx.ModelProto:
    """Return a model for x + number, of the same size for any number."""
    return model(
        [helper.make_node("Add", ["x", "c"], ["y"])],
        [("x", FLOAT, [2])],
        [("y", FLOAT, [2])],
        {"c": np.full(2, number, np.float32)},
    )


def product(rows: int = 64) -> onnx.ModelProto:
    """Return a model with enough weights for a separate file."""
    weights = np.random.default_rng(2).random((rows, rows), np.float32)
    return model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", FLOAT, ["n", rows])],
        [("y", FLOAT, ["n", rows])],
        {"w": weights},
    )


def save_with_external_data(path: Path, made: onnx.ModelProto) -> Path:
    """Save the model with its weights in a separate file beside it."""
    onnx.save(
        made,
        str(path),
        save_as_external_data=True,
        location=f"{path.stem}.data",
        size_threshold=0,
    )
    return path
