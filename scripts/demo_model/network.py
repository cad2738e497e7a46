"""The detector network, which predicts class and size at each cell of a coarse grid.

After "Objects as Points" (Zhou, Wang and Krähenbühl, 2019): the center of a part is a peak in the
heatmap of its class. So non-maximum suppression is not needed.
"""

from __future__ import annotations

import itertools

import torch
from scripts.demo_model.data import LABELS
from scripts.demo_model.layers import Layer
from torch import Tensor, nn
from torch.nn import functional

CLASSES = len(LABELS)
OUTPUTS = CLASSES + 4
"""Channels of each cell: a logit per class, the offset to the center (y, x), and the logarithm of
the size (y, x), with lengths in cells."""
_STEM = (16, 24, 48)
_DILATIONS = (1, 2, 4, 2)
_INITIAL_LOGIT = -3.0
"""Initial logit. It is negative, because most cells do not contain a center."""


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.residual = stride == 1
        self.padding = (0, 1, 0, 1) if stride == 2 else (dilation,) * 4
        self.conv = nn.Conv2d(inputs, outputs, 3, stride, dilation=dilation, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(self.conv(functional.pad(x, self.padding)))
        return functional.relu(x + y if self.residual else y)

    def layer(self) -> Layer:
        """Return the layer with the normalization folded into the convolution."""
        norm = self.norm
        assert norm.running_mean is not None
        assert norm.running_var is not None
        scale = norm.weight.double() / torch.sqrt(norm.running_var.double() + norm.eps)
        kernel = self.conv.weight.double() * scale[:, None, None, None]
        bias = norm.bias.double() - norm.running_mean.double() * scale
        return Layer(
            kernel.detach().float().numpy(),
            bias.detach().float().numpy(),
            stride=self.conv.stride[0],
            dilation=self.conv.dilation[0],
            residual=self.residual,
        )


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        widths = (3, *_STEM)
        stem = [Block(a, b, stride=2) for a, b in itertools.pairwise(widths)]
        trunk = [Block(widths[-1], widths[-1], dilation=each) for each in _DILATIONS]
        self.blocks = nn.Sequential(*stem, *trunk)
        self.head = nn.Conv2d(widths[-1], OUTPUTS, 1)
        assert self.head.bias is not None
        nn.init.constant_(self.head.bias[:CLASSES], _INITIAL_LOGIT)

    def forward(self, images: Tensor) -> Tensor:
        """Run the network on uint8 images in NHWC layout."""
        x = images.permute(0, 3, 1, 2).float() / 255
        y: Tensor = self.head(self.blocks(x))
        return y

    def layers(self) -> list[Layer]:
        assert self.head.bias is not None
        last = Layer(
            self.head.weight.detach().numpy(), self.head.bias.detach().numpy(), rectified=False
        )
        return [*(block.layer() for block in self.blocks if isinstance(block, Block)), last]

    def parameter_count(self) -> int:
        return sum(each.numel() for each in self.parameters())
