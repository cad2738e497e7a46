"""The network as an ONNX file, of plain operations."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from scripts.demo_model.about import AUTHOR, DESCRIPTION, NAME
from scripts.demo_model.data import HEIGHT, LABELS, WIDTH
from scripts.demo_model.layers import (
    COLUMNS,
    DETECTIONS,
    FAINTEST,
    HIDDEN,
    ROWS,
    Layer,
    cell_centres,
    cell_size,
)

_OPSET, _IR_VERSION = 17, 8
"""Old enough for every runtime of the last years."""
_CELLS = ROWS * COLUMNS


def export_onnx(layers: Iterable[Layer], path: Path) -> None:
    onnx.save(_model(layers), str(path))


def _model(layers: Iterable[Layer]) -> ModelProto:
    graph = _Graph()
    maps = _trunk(graph, layers)
    _detections(graph, maps)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            NAME,
            [helper.make_tensor_value_info("image", TensorProto.UINT8, [1, HEIGHT, WIDTH, 3])],
            [
                helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                for name, shape in (
                    ("location", [1, DETECTIONS, 4]),
                    ("category", [1, DETECTIONS]),
                    ("score", [1, DETECTIONS]),
                )
            ],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", _OPSET)],
        ir_version=_IR_VERSION,
        producer_name="cogwork",
        doc_string=DESCRIPTION,
    )
    names = str(dict(enumerate(LABELS)))
    helper.set_model_props(
        model, {"names": names, "description": DESCRIPTION, "author": AUTHOR, "task": "detect"}
    )
    onnx.checker.check_model(model, full_check=True)
    return model


@dataclass(slots=True)
class _Graph:
    nodes: list[NodeProto] = field(default_factory=list)
    constants: list[TensorProto] = field(default_factory=list)

    def constant(self, value: Any, dtype: type[np.generic] = np.float32) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, dtype), name))
        return name

    def add(self, operation: str, *inputs: str, name: str | None = None, **options: Any) -> str:
        """Gives the name of its output: that asked for, or one of its own."""
        return self.add_pair(operation, *inputs, names=[name] if name else None, **options)[0]

    def add_pair(
        self, operation: str, *inputs: str, names: list[str] | None = None, **options: Any
    ) -> list[str]:
        names = names or [f"{operation.lower()}_{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operation, inputs, names, **options))
        return names


def _trunk(graph: _Graph, layers: Iterable[Layer]) -> str:
    pixels = graph.add("Cast", "image", to=TensorProto.FLOAT)
    scaled = graph.add("Mul", pixels, graph.constant(1 / 255))
    x = graph.add("Transpose", scaled, perm=[0, 3, 1, 2])
    for layer in layers:
        x = _layer(graph, x, layer)
    return x


def _layer(graph: _Graph, x: str, layer: Layer) -> str:
    before, after = layer.padding
    y = graph.add(
        "Conv",
        x,
        graph.constant(layer.kernel),
        graph.constant(layer.bias),
        kernel_shape=layer.kernel.shape[2:],
        strides=[layer.stride] * 2,
        dilations=[layer.dilation] * 2,
        pads=[before, before, after, after],
    )
    y = graph.add("Add", x, y) if layer.residual else y
    return graph.add("Relu", y) if layer.rectified else y


def _detections(graph: _Graph, maps: str) -> None:
    classes = len(LABELS)
    logits, way, size = graph.add_pair(
        "Split",
        maps,
        graph.constant([classes, 2, 2], np.int64),
        names=["logits", "way", "size"],
        axis=1,
    )
    best = graph.add("ReduceMax", logits, axes=[1], keepdims=1)
    highest = graph.add("MaxPool", best, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    peaks = graph.add("Where", graph.add("Equal", best, highest), best, graph.constant(HIDDEN))
    values, cells = graph.add_pair(
        "TopK",
        _reshaped(graph, peaks, _CELLS),
        graph.constant([DETECTIONS], np.int64),
        names=["values", "cells"],
        sorted=1,
    )
    chance = graph.add("Sigmoid", values)
    real = graph.add("GreaterOrEqual", chance, graph.constant(FAINTEST))
    nothing = graph.constant(0)

    score = graph.add("Where", real, chance, nothing)
    _reshaped(graph, score, 1, DETECTIONS, name="score")

    index = _reshaped(graph, graph.add("ArgMax", logits, axis=1, keepdims=0), _CELLS)
    kind = graph.add("Cast", graph.add("Gather", index, cells), to=TensorProto.FLOAT)
    category = graph.add("Where", real, kind, nothing)
    _reshaped(graph, category, 1, DETECTIONS, name="category")

    boxes = graph.add("Gather", _boxes(graph, way, size), cells)
    rows = _reshaped(graph, real, DETECTIONS, 1)
    location = graph.add("Where", rows, boxes, nothing)
    _reshaped(graph, location, 1, DETECTIONS, 4, name="location")


def _boxes(graph: _Graph, way: str, size: str) -> str:
    """Of every cell."""
    cell = graph.constant(cell_size())
    centre = graph.add("Add", _per_cell(graph, way), graph.constant(cell_centres()))
    centre = graph.add("Mul", centre, cell)
    half = graph.add("Mul", graph.add("Exp", _per_cell(graph, size)), graph.constant(0.5))
    half = graph.add("Mul", half, cell)
    edges = graph.add(
        "Concat", graph.add("Sub", centre, half), graph.add("Add", centre, half), axis=1
    )
    return graph.add("Clip", edges, graph.constant(0), graph.constant(1))


def _per_cell(graph: _Graph, maps: str) -> str:
    return graph.add("Transpose", _reshaped(graph, maps, 2, _CELLS), perm=[1, 0])


def _reshaped(graph: _Graph, x: str, *shape: int, name: str | None = None) -> str:
    return graph.add("Reshape", x, graph.constant(shape, np.int64), name=name)
