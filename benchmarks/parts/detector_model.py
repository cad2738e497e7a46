"""A generated detector of about the size of a YOLOv8n."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_CHANNELS = (24, 48, 96, 160, 256)
_COLUMNS = 84
"""Channels of the output: a box and the scores of 80 classes."""
_BACKGROUND_LOGIT = -7.0
"""Bias of the logits, so that most cells detect nothing."""


def make_network(path: Path, size: int, dtype: str) -> str:
    """Write a network with input `images`, 1x3x size x size, and the `output0` of a YOLOv8."""
    kind = TensorProto.UINT8 if dtype == "uint8" else TensorProto.FLOAT
    rows = sum((size // stride) ** 2 for stride in (8, 16, 32))
    made = _GraphBuilder()
    made.build(cast=dtype == "uint8")
    graph = helper.make_graph(
        made.nodes,
        "network",
        [helper.make_tensor_value_info("images", kind, [1, 3, size, size])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, [1, _COLUMNS, rows])],
        made.weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    properties = {"task": "detect", "names": str({n: f"thing{n}" for n in range(80)})}
    helper.set_model_props(model, properties)
    onnx.save(model, str(path))
    return str(path)


class _GraphBuilder:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self._rng = np.random.default_rng(0)

    def build(self, cast: bool) -> None:
        last, channels, heads = "images", 3, []
        if cast:
            self._node("Cast", [last], "cast", to=TensorProto.FLOAT)
            last = "cast"
        for number, wide in enumerate(_CHANNELS):
            for step, stride in enumerate((2, 1)):
                last = self._conv(last, f"conv{number}_{step}", channels, wide, 3, stride)
                channels = wide
            if number >= 2:
                heads.append(self._head(last, f"head{number}", channels))
        self._node("Concat", heads, "all", axis=2)
        self._constant("parts", np.array([4, _COLUMNS - 4], np.int64))
        self.nodes.append(helper.make_node("Split", ["all", "parts"], ["boxes", "raw"], axis=1))
        self._node("Sigmoid", ["raw"], "scores")
        self._node("Concat", ["boxes", "scores"], "output0", axis=1)

    def _conv(self, last: str, name: str, channels: int, wide: int, size: int, stride: int) -> str:
        scale = (2 / (size * size * channels)) ** 0.5
        kernel = self._rng.normal(0, scale, (wide, channels, size, size)).astype("f4")
        self._constant(f"{name}_w", kernel)
        pad = size // 2
        self._node("Conv", [last, f"{name}_w"], name, strides=[stride] * 2, pads=[pad] * 4)
        return self._node("Relu", [name], f"{name}_r")

    def _head(self, last: str, name: str, channels: int) -> str:
        kernel = self._rng.normal(0, 0.02, (_COLUMNS, channels, 1, 1)).astype("f4")
        bias = np.full(_COLUMNS, _BACKGROUND_LOGIT, "f4")
        bias[:4] = 40.0
        self._constant(f"{name}_w", kernel)
        self._constant(f"{name}_b", bias)
        self._node("Conv", [last, f"{name}_w", f"{name}_b"], name)
        self._constant(f"{name}_s", np.array([1, _COLUMNS, -1], np.int64))
        return self._node("Reshape", [name, f"{name}_s"], f"{name}_flat")

    def _constant(self, name: str, value: Any) -> None:
        self.weights.append(numpy_helper.from_array(value, name))

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output
