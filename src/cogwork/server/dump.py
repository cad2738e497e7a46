"""Option `-dump-resources`: write all models with the JSON Schemas of their attributes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from cogwork.config.schema.model_catalog import ModelSchema
from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.registry import Registry, entry_point_models


def dump_resources(path: Path) -> int:
    registry = Registry([*builtin_models(), *entry_point_models()])
    schemas = sorted(registry.schemas(), key=lambda schema: (str(schema.api), str(schema.model)))
    text = json.dumps([_describe_model(schema) for schema in schemas], indent="\t") + "\n"
    try:
        _write(path, text.encode())
    except OSError as error:
        print(f"cogwork-server: cannot write {path}: {write_reason(error)}", file=sys.stderr)
        return 1
    return 0


def _write(path: Path, data: bytes) -> None:
    """Write a file. Replace a regular file atomically, but write through a device such as
    /dev/stdout."""
    if path.exists() and not path.is_file():
        path.write_bytes(data)
    else:
        atomic.write(path.resolve(), data)


def _describe_model(schema: ModelSchema) -> dict[str, Any]:
    return {
        "api": str(schema.api),
        "model": str(schema.model),
        "attribute_schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            **schema.attributes.model_json_schema(),
        },
    }
