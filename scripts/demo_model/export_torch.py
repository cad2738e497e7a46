"""Export the network as TorchScript."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
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
from scripts.demo_model.metadata import DESCRIPTION
from scripts.demo_model.network import CLASSES
from torch import Tensor, nn
from torch.nn import functional

_CELLS = ROWS * COLUMNS


class Detector(nn.Module):
    """The network with the decoding of its maps into detections."""

    def __init__(self, layers: Sequence[Layer]) -> None:
        super().__init__()
        self.convolutions = nn.ModuleList(_Convolution(layer) for layer in layers)
        self.register_buffer("centers", torch.from_numpy(cell_centers()))
        self.register_buffer("cell", torch.from_numpy(cell_size()))
        self.centers: Tensor
        self.cell: Tensor

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        maps = (image.to(torch.float32) * (1 / 255)).permute(0, 3, 1, 2)
        for convolution in self.convolutions:
            maps = convolution(maps)
        logits = maps[:, :CLASSES]
        best, kind = logits.max(dim=1, keepdim=True)
        is_peak = best == functional.max_pool2d(best, 3, 1, 1)
        peaks = torch.where(is_peak, best, torch.full_like(best, SUPPRESSED_LOGIT)).reshape(_CELLS)
        values, cells = torch.topk(peaks, DETECTIONS, sorted=True)
        chance = torch.sigmoid(values)
        real = chance >= MIN_SCORE
        boxes = self._decode_boxes(maps[:, CLASSES:].reshape(4, _CELLS).t())
        found = real.to(torch.float32)
        return {
            "location": (boxes[cells] * found[:, None]).reshape(1, DETECTIONS, 4),
            "category": (kind.reshape(_CELLS)[cells] * found).reshape(1, DETECTIONS),
            "score": (chance * found).reshape(1, DETECTIONS),
        }

    def _decode_boxes(self, cells: Tensor) -> Tensor:
        center = (cells[:, :2] + self.centers) * self.cell
        half = torch.exp(cells[:, 2:]) * 0.5 * self.cell
        return torch.cat([center - half, center + half], dim=1).clamp(0.0, 1.0)


class _Convolution(nn.Module):
    def __init__(self, layer: Layer) -> None:
        super().__init__()
        before, after = layer.padding
        self.padding = [before, after, before, after]
        self.residual, self.rectified = layer.residual, layer.rectified
        outputs, inputs, side, _ = layer.kernel.shape
        self.conv = nn.Conv2d(inputs, outputs, side, layer.stride, dilation=layer.dilation)
        self.conv.weight = nn.Parameter(torch.tensor(layer.kernel))
        self.conv.bias = nn.Parameter(torch.tensor(layer.bias))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.conv(functional.pad(x, self.padding))
        if self.residual:
            y = x + y
        return functional.relu(y) if self.rectified else y


def export_torch(layers: Sequence[Layer], path: Path) -> None:
    blank = torch.zeros((1, HEIGHT, WIDTH, 3), dtype=torch.uint8)
    # Not strict, because the output is a dictionary; its keys are always the same.
    traced = torch.jit.trace(  # type: ignore[no-untyped-call]
        Detector(layers).eval(), (blank,), strict=False
    )
    facts = {
        "inputs": [{"name": "image", "dtype": "uint8", "shape": [1, HEIGHT, WIDTH, 3]}],
        "labels": list(LABELS),
        "description": DESCRIPTION,
    }
    # TorchScript itself does not describe its tensors.
    extra = {"cogwork.json": json.dumps(facts)}
    torch.jit.save(torch.jit.freeze(traced), str(path), _extra_files=extra)
