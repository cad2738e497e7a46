"""Export the network as an ONNX file of standard operations."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper
from scripts.demo_model.data import HEIGHT, LABELS, WIDTH
from scripts.demo_model.layers import (
    COLUMNS,
    DETECTIONS,
    MIN_SCORE,
    ROWS,
    SUPPRESSED_LOGIT,
    Layer,
    cell_centers,
    cell_size,
)
from scripts.demo_model.metadata import AUTHOR, DESCRIPTION, NAME
from scripts.onnx_graph import OnnxGraph

_CELLS = ROWS * COLUMNS


def export_onnx(layers: Iterable[Layer], path: Path) -> None:
    onnx.save(_build_model(layers), str(path))


def _build_model(layers: Iterable[Layer]) -> ModelProto:
    graph = OnnxGraph()
    maps = _add_trunk(graph, layers)
    _add_detections(graph, maps)
    image = helper.make_tensor_value_info("image", TensorProto.UINT8, [1, HEIGHT, WIDTH, 3])
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (
            ("location", [1, DETECTIONS, 4]),
            ("category", [1, DETECTIONS]),
            ("score", [1, DETECTIONS]),
        )
    ]
    names = str(dict(enumerate(LABELS)))
    metadata = {"names": names, "description": DESCRIPTION, "author": AUTHOR, "task": "detect"}
    return graph.model(NAME, [image], outputs, metadata, DESCRIPTION)


def _add_trunk(graph: OnnxGraph, layers: Iterable[Layer]) -> str:
    pixels = graph.add("Cast", "image", to=TensorProto.FLOAT)
    scaled = graph.add("Mul", pixels, graph.constant(1 / 255))
    x = graph.add("Transpose", scaled, perm=[0, 3, 1, 2])
    for layer in layers:
        x = _add_layer(graph, x, layer)
    return x


def _add_layer(graph: OnnxGraph, x: str, layer: Layer) -> str:
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


def _add_detections(graph: OnnxGraph, maps: str) -> None:
    classes = len(LABELS)
    logits, way, size = graph.add_multi_output(
        "Split",
        maps,
        graph.constant([classes, 2, 2], np.int64),
        names=["logits", "way", "size"],
        axis=1,
    )
    best = graph.add("ReduceMax", logits, axes=[1], keepdims=1)
    highest = graph.add("MaxPool", best, kernel_shape=[3, 3], pads=[1, 1, 1, 1])
    peaks = graph.add(
        "Where", graph.add("Equal", best, highest), best, graph.constant(SUPPRESSED_LOGIT)
    )
    values, cells = graph.add_multi_output(
        "TopK",
        _reshape(graph, peaks, _CELLS),
        graph.constant([DETECTIONS], np.int64),
        names=["values", "cells"],
        sorted=1,
    )
    chance = graph.add("Sigmoid", values)
    real = graph.add("GreaterOrEqual", chance, graph.constant(MIN_SCORE))
    nothing = graph.constant(0)

    score = graph.add("Where", real, chance, nothing)
    _reshape(graph, score, 1, DETECTIONS, name="score")

    index = _reshape(graph, graph.add("ArgMax", logits, axis=1, keepdims=0), _CELLS)
    kind = graph.add("Cast", graph.add("Gather", index, cells), to=TensorProto.FLOAT)
    category = graph.add("Where", real, kind, nothing)
    _reshape(graph, category, 1, DETECTIONS, name="category")

    boxes = graph.add("Gather", _add_boxes(graph, way, size), cells)
    rows = _reshape(graph, real, DETECTIONS, 1)
    location = graph.add("Where", rows, boxes, nothing)
    _reshape(graph, location, 1, DETECTIONS, 4, name="location")


def _add_boxes(graph: OnnxGraph, way: str, size: str) -> str:
    """Add the boxes of every cell."""
    cell = graph.constant(cell_size())
    center = graph.add("Add", _per_cell(graph, way), graph.constant(cell_centers()))
    center = graph.add("Mul", center, cell)
    half = graph.add("Mul", graph.add("Exp", _per_cell(graph, size)), graph.constant(0.5))
    half = graph.add("Mul", half, cell)
    edges = graph.add(
        "Concat", graph.add("Sub", center, half), graph.add("Add", center, half), axis=1
    )
    return graph.add("Clip", edges, graph.constant(0), graph.constant(1))


def _per_cell(graph: OnnxGraph, maps: str) -> str:
    return graph.add("Transpose", _reshape(graph, maps, 2, _CELLS), perm=[1, 0])


def _reshape(graph: OnnxGraph, x: str, *shape: int, name: str | None = None) -> str:
    return graph.add("Reshape", x, graph.constant(shape, np.int64), name=name)
