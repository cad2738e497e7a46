"""Regenerates what is made from the code: the JSON Schema of the configuration file."""

from __future__ import annotations

import json
from pathlib import Path

from cogwork.config.json_schema import machine_schema
from cogwork.drivers.table import builtin_models
from cogwork.resource.registry import Registry

ROOT = Path(__file__).parents[1]


def main() -> None:
    schema = machine_schema(Registry(builtin_models()))
    text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
    (ROOT / "schemas" / "machine.schema.json").write_text(text)


if __name__ == "__main__":
    main()
