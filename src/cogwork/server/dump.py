"""`-dump-resources`: every model there is, with the JSON Schema of its attributes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cogwork.config.catalogue import Shape
from cogwork.core import atomic
from cogwork.drivers.table import builtin_models
from cogwork.resource.registry import Registry, plugged_in


def dump_resources(path: Path) -> int:
    registry = Registry([*builtin_models(), *plugged_in()])
    shapes = sorted(registry.shapes(), key=lambda shape: (str(shape.api), str(shape.model)))
    text = json.dumps([_described(shape) for shape in shapes], indent="\t") + "\n"
    try:
        _write(path, text.encode())
    except OSError as error:
        print(f"cogwork-server: cannot write {path}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, data: bytes) -> None:
    """What is no file, such as /dev/stdout, must not be replaced by one."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        atomic.write(path.resolve(), data)


def _described(shape: Shape) -> dict[str, Any]:
    return {
        "api": str(shape.api),
        "model": str(shape.model),
        "attribute_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **shape.attributes.model_json_schema(),
        },
    }
