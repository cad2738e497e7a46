"""Convert YOLOv2-tiny to ONNX, with outputs in the layouts of other YOLO exporters.

The weights are int8 with a scale per channel, which reduces the files to a quarter of their size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto, helper
from scripts.models.darknet import Convolution, Shape, read_weights
from scripts.onnx_graph import OnnxGraph

SIZE, STRIDE = 416, 32
_GRID = SIZE // STRIDE
_CELLS = _GRID * _GRID
_ANCHORS = (
    (0.57273, 0.677385),
    (1.87446, 2.06253),
    (3.33843, 5.47434),
    (7.88282, 3.52778),
    (9.77052, 9.16828),
)
"""Width and height of each anchor, in cells."""
_ROWS = len(_ANCHORS) * _CELLS
_CLASSES = 80
_COLUMNS = 5 + _CLASSES
_WIDTHS = (3, 16, 32, 64, 128, 256, 512, 1024, 512)
_SHAPES = (
    *(Shape(filters, channels, 3) for channels, filters in pairwise(_WIDTHS)),
    Shape(len(_ANCHORS) * _COLUMNS, _WIDTHS[-1], 1, is_normalized=False),
)
_POOLED = 6
"""Number of leading convolutions that are followed by a pooling layer."""
_LEAK = 0.1
_MOST_PER_CLASS, _MOST_OVERLAP, _LEAST_SCORE = 30, 0.45, 0.2


class Head:
    """The decoded output of the last convolution: [1, anchors, columns, cells] each."""

    def __init__(self, graph: OnnxGraph, raw: str) -> None:
        shape = graph.constant([1, len(_ANCHORS), _COLUMNS, _CELLS], np.int64)
        parts = graph.add_multi_output(
            "Split",
            graph.add("Reshape", raw, shape),
            graph.constant([2, 2, 1, _CLASSES], np.int64),
            names=["offset", "growth", "logit", "logits"],
            axis=2,
        )
        offset, growth, logit, logits = parts
        cell = graph.add("Add", graph.add("Sigmoid", offset), graph.constant(_cell_corners()))
        anchors = np.array(_ANCHORS, np.float32).reshape(1, -1, 2, 1) * STRIDE
        self.center = graph.add("Mul", cell, graph.constant(STRIDE))
        self.extent = graph.add("Mul", graph.add("Exp", growth), graph.constant(anchors))
        self.objectness = graph.add("Sigmoid", logit)
        self.classes = graph.add("Softmax", logits, axis=2)

    def scores(self, graph: OnnxGraph) -> str:
        return graph.add("Mul", self.classes, self.objectness)


def convert_v8(weights: bytes, names: bytes) -> bytes:
    """Write `output0` [1, 84, 845]: center and size in pixels, then a score per class."""
    return _convert(weights, names, _write_v8)


def convert_v5(weights: bytes, names: bytes) -> bytes:
    """Write `output0` [1, 845, 85]: center and size in pixels, objectness, then the classes."""
    return _convert(weights, names, _write_v5)


def convert_nms(weights: bytes, names: bytes) -> bytes:
    """Write `detection_boxes` (edges in pixels), `_classes` and `_scores`, after NMS."""
    return _convert(weights, names, _write_nms)


Write = Callable[[OnnxGraph, Head], list[ValueInfoProto]]


def _convert(weights: bytes, names: bytes, write: Write) -> bytes:
    graph = OnnxGraph()
    head = Head(graph, _add_trunk(graph, read_weights(weights, _SHAPES)))
    images = helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    outputs = write(graph, head)
    metadata = {
        "names": str(dict(enumerate(names.decode().split("\n")[:_CLASSES]))),
        "task": "detect",
        "imgsz": str([SIZE, SIZE]),
        "stride": str(STRIDE),
    }
    made: ModelProto = graph.model("yolov2_tiny", [images], outputs, metadata)
    return made.SerializeToString(deterministic=True)


def _add_trunk(graph: OnnxGraph, convolutions: Iterable[Convolution]) -> str:
    x = "images"
    for number, convolution in enumerate(convolutions, 1):
        x = _add_convolution(graph, x, convolution)
        if number < len(_SHAPES):
            x = graph.add("LeakyRelu", x, alpha=_LEAK)
        if number < _POOLED:
            x = graph.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        elif number == _POOLED:  # the last one keeps the size
            x = graph.add("MaxPool", x, kernel_shape=[2, 2], strides=[1, 1], pads=[0, 0, 1, 1])
    return x


def _add_convolution(graph: OnnxGraph, x: str, convolution: Convolution) -> str:
    kernel, bias = convolution
    scale = np.abs(kernel).max(axis=(1, 2, 3)) / np.float32(127)
    quantized = np.rint(kernel / scale[:, None, None, None])
    weights = graph.add(
        "DequantizeLinear",
        graph.constant(quantized, np.int8),
        graph.constant(scale),
        graph.constant(np.zeros(len(scale)), np.int8),
        axis=0,
    )
    size = kernel.shape[-1]
    return graph.add(
        "Conv",
        x,
        weights,
        graph.constant(bias),
        kernel_shape=[size, size],
        pads=[size // 2] * 4,
        strides=[1, 1],
    )


def _cell_corners() -> NDArray[np.float32]:
    rows, columns = np.divmod(np.arange(_CELLS, dtype=np.float32), _GRID)
    return np.stack((columns, rows))[None, None]


def _write_v8(graph: OnnxGraph, head: Head) -> list[ValueInfoProto]:
    table = graph.add("Concat", head.center, head.extent, head.scores(graph), axis=2)
    columns = graph.add("Transpose", table, perm=[0, 2, 1, 3])
    shape = [1, 4 + _CLASSES, _ROWS]
    graph.add("Reshape", columns, graph.constant(shape, np.int64), name="output0")
    return [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shape)]


def _write_v5(graph: OnnxGraph, head: Head) -> list[ValueInfoProto]:
    parts = (head.center, head.extent, head.objectness, head.classes)
    rows = graph.add("Transpose", graph.add("Concat", *parts, axis=2), perm=[0, 1, 3, 2])
    shape = [1, _ROWS, _COLUMNS]
    graph.add("Reshape", rows, graph.constant(shape, np.int64), name="output0")
    return [helper.make_tensor_value_info("output0", TensorProto.FLOAT, shape)]


def _write_nms(graph: OnnxGraph, head: Head) -> list[ValueInfoProto]:
    boxes, scores = _add_boxes(graph, head), _add_scores(graph, head)
    kept = graph.add(
        "NonMaxSuppression",
        boxes,
        scores,
        graph.constant([_MOST_PER_CLASS], np.int64),
        graph.constant([_MOST_OVERLAP]),
        graph.constant([_LEAST_SCORE]),
    )
    first = graph.constant([0], np.int64)
    rows = graph.add("Gather", kept, graph.constant(2, np.int64), axis=1)
    classes = graph.add("Gather", kept, graph.constant(1, np.int64), axis=1)
    graph.add("Gather", boxes, rows, axis=1, name="detection_boxes")
    graph.add("Unsqueeze", classes, first, name="detection_classes")
    graph.add("Unsqueeze", graph.add("GatherND", scores, kept), first, name="detection_scores")
    return [
        helper.make_tensor_value_info("detection_boxes", TensorProto.FLOAT, [1, None, 4]),
        helper.make_tensor_value_info("detection_classes", TensorProto.INT64, [1, None]),
        helper.make_tensor_value_info("detection_scores", TensorProto.FLOAT, [1, None]),
    ]


def _add_boxes(graph: OnnxGraph, head: Head) -> str:
    half = graph.add("Mul", head.extent, graph.constant(0.5))
    low, high = graph.add("Sub", head.center, half), graph.add("Add", head.center, half)
    rows = graph.add("Transpose", graph.add("Concat", low, high, axis=2), perm=[0, 1, 3, 2])
    return graph.add("Reshape", rows, graph.constant([1, _ROWS, 4], np.int64))


def _add_scores(graph: OnnxGraph, head: Head) -> str:
    columns = graph.add("Transpose", head.scores(graph), perm=[0, 2, 1, 3])
    return graph.add("Reshape", columns, graph.constant([1, _CLASSES, _ROWS], np.int64))
