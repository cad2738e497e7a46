"""Tiny networks and the files they are saved in. Importing this module imports torch."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.export import Dim

Records = dict[str, bytes]


class Conv(nn.Module):
    """Takes images of 8 x 8 and returns a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
        self.head = nn.Linear(4, 2)

    def forward(self, image: Tensor) -> dict[str, Tensor]:
        features = self.layers(image)
        return {"features": features, "scores": self.head(features.mean(dim=[2, 3]))}


class Classifier(nn.Module):
    """Takes images of one size, whose pixels are flattened."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.head = nn.Linear(3 * (side // 16) ** 2, 5)

    def forward(self, image: Tensor) -> Tensor:
        pooled = nn.functional.avg_pool2d(image, 16)
        scores: Tensor = self.head(pooled.flatten(1))
        return scores.softmax(dim=1)


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


class Pair(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        return x + y, x - y


class Found(NamedTuple):
    boxes: Tensor
    scores: Tensor


class Detector(nn.Module):
    def forward(self, x: Tensor) -> Found:
        return Found(x * 2, x + 1)


class Nested(nn.Module):
    def forward(self, x: Tensor) -> dict[str, tuple[Tensor, Tensor]]:
        return {"both": (x, x + 1)}


class Types(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return x.to(torch.float16), x.to(torch.bfloat16), x > 0


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_complex(x)


class Writer(nn.Module):
    """Writes to its input."""

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1)
        flat /= 255
        return flat.sum()


class Same(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x


class Listed(nn.Module):
    def forward(self, images: list[Tensor]) -> Tensor:
        return images[0]


class Optional(nn.Module):
    def forward(self, x: Tensor, scale: float = 3.0) -> Tensor:
        return x * scale


class Saver(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        torch.save(x, "stolen")
        return x


class Mapper(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.from_file("stolen", True, 4).sum()


def script(path: Path, module: nn.Module, notes: Mapping[str, Any] | None = None) -> Any:
    scripted: Any = torch.jit.script(module.eval())
    scripted.save(str(path), _extra_files=_files(notes))
    return scripted


def trace(path: Path, module: nn.Module, *example: Tensor) -> Any:
    traced: Any = torch.jit.trace(module.eval(), example)  # type: ignore[no-untyped-call]
    traced.save(str(path))
    return traced


def program(
    path: Path, module: nn.Module, *example: Tensor, notes: Mapping[str, Any] | None = None
) -> nn.Module:
    """Export the module with a batch size of 1 to 16."""
    batch = Dim("batch", min=1, max=16)
    exported = torch.export.export(
        module.eval(), example, dynamic_shapes=tuple({0: batch} for _ in example)
    )
    torch.export.save(exported, path, extra_files=_files(notes))
    return module


def changed(source: Path, target: Path, change: Callable[[Records], None]) -> None:
    """Copy the archive and change its records, given without their folder."""
    with zipfile.ZipFile(source) as archive:
        records = {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}
    change(records)
    with zipfile.ZipFile(target, "w") as archive:
        for name, data in records.items():
            archive.writestr(f"model/{name}", data)


def saved(what: object) -> bytes:
    """Return what torch.save writes."""
    file = io.BytesIO()
    torch.save(what, file)
    return file.getvalue()


def _files(notes: Mapping[str, Any] | None) -> dict[str, str]:
    return {name: json.dumps(each) for name, each in (notes or {}).items()}
