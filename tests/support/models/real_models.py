r"""The real models, labels and photos of `make models`, and reference results.

A test that needs a missing file is skipped; in CI, it fails.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
from scripts.models import cache
from scripts.models.catalog import FILES

GOLDEN = Path(__file__).parent / "golden_outputs.json"
"""Outputs of the bare engines on pictures that Pillow resized (bilinear, stretched)."""

ONNX = ("efficientnet_lite0_logits.onnx", "yolov2tiny_nms_w8.onnx", "yolov2tiny_v8layout_w8.onnx")


def model_path(name: str) -> Path:
    """Return the path of a model or of its labels."""
    path = cache.directory() / name
    if not path.exists():
        _skip_missing(name)
    return path


def photo_path(name: str) -> Path:
    return model_path(f"photos/{name}")


def photo_paths() -> list[Path]:
    return [model_path(file.name) for file in FILES if file.name.startswith("photos/")]


def is_here(name: str) -> bool:
    """Return whether the file exists, for tests that can do without it."""
    return (cache.directory() / name).exists()


def golden_outputs(model: str) -> dict[str, list[Any]]:
    outputs: dict[str, list[Any]] = json.loads(GOLDEN.read_text())[model]
    return outputs


def _skip_missing(name: str) -> NoReturn:
    reason = f'{name} is not here: run "make models"'
    if os.environ.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
