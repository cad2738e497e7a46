"""Regenerates what is made from the code: the JSON Schema and the reference pages.

With --check it writes nothing, names what has drifted from the code, and exits 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cogwork.config.codes import CODES, Code
from cogwork.config.json_schema import machine_schema
from cogwork.drivers.table import builtin_models
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry
from cogwork.server.options import EXIT_CODES, OPTIONS, Option

ROOT = Path(__file__).parents[1]


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only say what would change")
    check = parser.parse_args(argv).check
    drifted = {path: text for path, text in generated().items() if _read(root / path) != text}
    for path, text in drifted.items():
        if check:
            print(f"{path} is not what the code says: run `make docs`", file=sys.stderr)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if check and drifted else 0


def generated() -> dict[str, str]:
    """Every generated file, by its path."""
    return {
        "schemas/machine.schema.json": _schema(),
        "docs/reference/diagnostics.md": _diagnostics(),
        "docs/reference/models.md": _models(),
        "docs/reference/options.md": _options(),
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _schema() -> str:
    schema = machine_schema(Registry(builtin_models()))
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _diagnostics() -> str:
    intro = (
        "# Diagnostics\n\n"
        "What `cogwork config check` and the server's log can say about a configuration. A code "
        "never changes its\nmeaning. `cogwork explain CODE` shows the same on the command line.\n\n"
        "| code | severity | |\n|---|---|---|\n"
    )
    rows = (
        f"| [{c.id}](#{c.id.lower()}) | {c.severity.value} | {c.title} |" for c in CODES.values()
    )
    return intro + "\n".join(rows) + "\n\n" + "\n".join(map(_diagnostic, CODES.values()))


def _diagnostic(code: Code) -> str:
    return (
        f"## {code.id}\n\n"
        f"**{code.title}** ({code.severity.value})\n\n"
        f"{code.explanation}\n\n"
        f"Wrong:\n\n{_snippet(code.wrong)}\n"
        f"Right:\n\n{_snippet(code.right)}"
    )


def _snippet(text: str) -> str:
    language = "json" if text.startswith(("{", '"')) else "text"
    return f"```{language}\n{text}\n```\n"


def _models() -> str:
    intro = (
        "# Models\n\nThe models that come with Cogwork, and what they read from `attributes`.\n\n"
    )
    models = sorted(builtin_models(), key=lambda model: (model.api, model.name))
    return intro + "\n".join(map(_model, models))


def _model(model: Model) -> str:
    schema = model.attributes.model_json_schema()
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    head = f"## {model.api} {model.name.short}\n\n"
    if model.reconfigures:
        head += "Changed attributes are taken over in place.\n\n"
    if not properties:
        return head + "It reads no attributes.\n"
    required = schema.get("required", ())
    rows = [
        f"| `{name}` | {_type(member)} | {_default(member, name in required)} "
        f"| {_in_a_cell(member.get('description', ''))} |"
        for name, member in properties.items()
    ]
    return head + "| attribute | type | default | |\n|---|---|---|---|\n" + "\n".join(rows) + "\n"


def _type(member: Mapping[str, Any]) -> str:
    if "enum" in member:
        return " or ".join(f"`{json.dumps(choice)}`" for choice in member["enum"])
    if "anyOf" in member:
        return " or ".join(_type(choice) for choice in member["anyOf"])
    if "$ref" in member:
        return "object"
    if member.get("type") == "array":
        return f"array of {_type(member['items'])}" if member.get("items") else "array"
    return str(member.get("type", "any"))


def _default(member: Mapping[str, Any], required: bool) -> str:
    if required:
        return "required"
    default = json.dumps(member.get("default"), ensure_ascii=False)
    return f"`{_in_a_cell(default)}`"


def _options() -> str:
    intro = (
        "# Options of cogwork-server\n\n"
        "An option is written `-x` or `--x`, and its value `-x=VALUE` or `-x VALUE`. A switch is "
        "turned off by\n`-x=false`. Of an option given twice, the last counts. "
        "`cogwork-server -h` prints them all.\n\n"
        "Some options are accepted for the sake of scripts that set them, although their subject "
        "comes with a later\nrelease. The server says so when it starts.\n\n"
        "| option | default | effect | in this release |\n|---|---|---|---|\n"
    )
    exits = (
        "\n\n## Exit codes\n\n| code | |\n|---|---|\n",
        *(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()),
    )
    return intro + "\n".join(map(_option, OPTIONS)) + "".join(exits)


def _option(option: Option) -> str:
    default = "" if option.default is None else f"`{json.dumps(option.default)}`"
    later = f"no effect: {option.later}" if option.later else ""
    return f"| `{option.usage}` | {default} | {_in_a_cell(option.effect)} | {_in_a_cell(later)} |"


def _in_a_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.exit(main())
