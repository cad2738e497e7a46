"""Convert a PyTorch checkpoint of EfficientNet-Lite0 to ONNX, from images to logits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper
from scripts.models.checkpoint import read_checkpoint
from scripts.onnx_graph import OnnxGraph

SIZE, CLASSES = 224, 1000
_BLOCKS = 16
_HALVING = {1, 3, 5, 11}
"""Blocks with stride 2; everything else follows from the shapes of the weights."""
_EPSILON = 1e-3
_HIGHEST = 6
"""Bounds of ReLU6."""


def convert(checkpoint: bytes) -> bytes:
    graph = _Network(read_checkpoint(checkpoint))
    x = graph.add_convolution("input", "_conv_stem", "_bn0", stride=2)
    for number in range(_BLOCKS):
        x = graph.add_block(x, f"_blocks.{number}", stride=2 if number in _HALVING else 1)
    x = graph.add_convolution(x, "_conv_head", "_bn1")
    graph.add_classifier(x)
    image = helper.make_tensor_value_info("input", TensorProto.FLOAT, [1, 3, SIZE, SIZE])
    # Exporters often leave an output's batch size dynamic, even if the input's batch size is fixed.
    logits = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", CLASSES])
    made = graph.model("efficientnet_lite0", [image], [logits])
    return made.SerializeToString(deterministic=True)


class _Network(OnnxGraph):
    def __init__(self, weights: Mapping[str, NDArray[Any]]) -> None:
        super().__init__()
        self._weights = weights

    def add_block(self, x: str, name: str, stride: int) -> str:
        """Add an inverted residual: expand (except in the first), depthwise convolve, project."""
        expand, project = f"{name}._expand_conv", f"{name}._project_conv"
        is_first = f"{expand}.weight" not in self._weights
        y = x if is_first else self.add_convolution(x, expand, f"{name}._bn0")
        y = self.add_convolution(y, f"{name}._depthwise_conv", f"{name}._bn1", stride)
        y = self.add_convolution(y, project, f"{name}._bn2", is_clipped=False)
        if is_first or stride > 1 or self._channels(expand, 1) != self._channels(project, 0):
            return y
        return self.add("Add", y, x)

    def _channels(self, name: str, axis: int) -> int:
        return int(self._weights[f"{name}.weight"].shape[axis])

    def add_convolution(
        self, x: str, name: str, norm: str, stride: int = 1, *, is_clipped: bool = True
    ) -> str:
        kernel, bias = self._fold(f"{name}.weight", norm)
        size = kernel.shape[-1]
        # TensorFlow's SAME padding, for sizes divisible by the stride.
        before, after = (size - stride) // 2, (size - stride + 1) // 2
        y = self.add(
            "Conv",
            x,
            self.constant(kernel),
            self.constant(bias),
            group=kernel.shape[0] if name.endswith("_depthwise_conv") else 1,
            kernel_shape=[size, size],
            pads=[before, before, after, after],
            strides=[stride, stride],
        )
        return self.add("Clip", y, self.constant(0), self.constant(_HIGHEST)) if is_clipped else y

    def _fold(self, name: str, norm: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return the kernel and bias with the batch normalization folded in."""
        scale, shift, mean, variance = (
            self._weights[f"{norm}.{part}"]
            for part in ("weight", "bias", "running_mean", "running_var")
        )
        factor = scale / np.sqrt(variance + np.float32(_EPSILON))
        return self._weights[name] * factor[:, None, None, None], shift - mean * factor

    def add_classifier(self, x: str) -> None:
        pooled = self.add("Flatten", self.add("GlobalAveragePool", x))
        weights, bias = (self.constant(self._weights[f"_fc.{e}"]) for e in ("weight", "bias"))
        self.add("Gemm", pooled, weights, bias, transB=1, name="logits")
