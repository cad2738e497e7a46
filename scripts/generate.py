"""Generate the JSON Schema, the reference pages and the page's tables of methods from the code.

With --check, write nothing, list outdated files, and exit with 1 if any are outdated.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scripts.api_page import render_api_page
from scripts.cli_page import cli_page
from scripts.cloud_api_page import render_cloud_api_page
from scripts.decisions_page import decisions_page
from scripts.driver_page import render_driver_page
from scripts.existing_product_page import render_existing_product_page
from scripts.limits_page import render_limits_page
from scripts.method_roles import render_method_roles
from scripts.moving_methods import render_moving_methods
from scripts.roles_page import render_roles_page

from cogwork.config.schema.codes import CODES, Code
from cogwork.config.schema.json_schema import describe_model, machine_schema
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.schema.schema_text import describe_type, find_default, nested_objects
from cogwork.drivers.builtin_models import builtin_models
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry
from cogwork.server.options import EXIT_CODES, OPTIONS, Option

ROOT = Path(__file__).parents[1]
JsonSchema = Mapping[str, Any]


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only list outdated files")
    check = parser.parse_args(argv).check
    drifted = {path: text for path, text in generate_files().items() if _read(root / path) != text}
    for path, text in drifted.items():
        if check:
            print(f"{path} is outdated; run `make docs`", file=sys.stderr)
        else:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
    return 1 if check and drifted else 0


def generate_files() -> dict[str, str]:
    """Return the content of every generated file by path."""
    return {
        "schemas/machine.schema.json": _render_schema(),
        "docs/coming-from-viam-server.md": render_existing_product_page(INACTIVE_PARTS),
        "docs/adr/README.md": decisions_page(ROOT / "docs" / "adr"),
        "docs/reference/api.md": render_api_page(),
        "docs/reference/cli.md": cli_page(),
        "docs/reference/cloud-api.md": render_cloud_api_page(),
        "docs/reference/configuration.md": _render_configuration(),
        "docs/reference/diagnostics.md": _render_diagnostics(),
        "docs/reference/driver.md": render_driver_page(),
        "docs/reference/limits.md": render_limits_page(),
        "docs/reference/models.md": _render_models(),
        "docs/reference/options.md": _render_options(),
        "docs/reference/roles.md": render_roles_page(),
        "web/src/machine/method_roles.ts": render_method_roles(),
        "web/src/machine/moving_methods.ts": render_moving_methods(),
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _render_schema() -> str:
    schema = machine_schema(Registry(builtin_models()))
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


_NO_EFFECT = "Read and checked, but without effect in this release."
INACTIVE_PARTS = {
    **dict.fromkeys(
        (
            "components.service_configs",
            "services.frame",
            "services.service_configs",
            "remotes.service_configs",
            "tracing",
            "enable_web_profile",
        ),
        _NO_EFFECT,
    ),
}
"""Notes for the sections of the file that have no or limited effect in this release."""

EXAMPLES = {
    "": """{
  "$schema": "./machine.schema.json",
  "components": [{ "name": "thermometer", "api": "rdk:component:sensor", "model": "fake" }],
  "network": { "bind_address": "localhost:8080" },
  "revision": "2"
}""",
    "components": """{
  "components": [
    {
      "name": "thermometer",
      "api": "rdk:component:sensor",
      "model": "fake",
      "attributes": { "readings": { "celsius": 21.5 } },
      "frame": { "parent": "world", "translation": { "x": 250, "z": 900 } },
      "log_configuration": { "level": "debug" }
    },
    {
      "name": "recorder",
      "api": "rdk:component:generic",
      "model": "fake",
      "depends_on": ["thermometer"]
    }
  ]
}""",
    "services": """{
  "services": [{ "name": "diary", "api": "rdk:service:generic", "model": "fake" }]
}""",
    "modules": """{
  "modules": [
    { "name": "acme", "executable_path": "/opt/acme/run.sh", "env": { "MODE": "fast" } },
    { "name": "lamps", "executable_path": "/opt/lamps/run.sh", "limits": { "memory_mb": 256 } }
  ]
}""",
    "remotes": """{
  "remotes": [
    {
      "name": "line2",
      "address": "line2.local:8080",
      "auth": {
        "entity": "the-id-of-the-key",
        "credentials": { "type": "api-key", "payload": "${LINE2_KEY}" }
      }
    }
  ]
}""",
    "network": """{
  "network": {
    "bind_address": "localhost:8080",
    "grpc_address": "localhost:8081",
    "sessions": { "heartbeat_window": "500ms" },
    "traffic_tunnel_endpoints": [{ "port": 22 }]
  }
}""",
    "auth": """{
  "network": {
    "bind_address": ":8080",
    "tls_cert_file": "/etc/cogwork/cert.pem",
    "tls_key_file": "/etc/cogwork/key.pem"
  },
  "auth": {
    "handlers": [
      { "type": "api-key", "config": { "keys": ["workshop"], "workshop": "${WORKSHOP_KEY}" } }
    ]
  }
}""",
    "cloud": """{
  "cloud": {
    "id": "the-id-of-this-part",
    "api_key": { "id": "the-id-of-the-key", "key": "${CLOUD_KEY}" },
    "app_address": "https://fleet.example.org:443"
  }
}""",
    "packages": """{
  "packages": [
    {
      "name": "detector",
      "version": "1.2.3",
      "url": "https://models.example.org/detector-1.2.3.tar.gz"
    }
  ],
  "components": [
    {
      "name": "where",
      "api": "rdk:component:sensor",
      "model": "fake",
      "attributes": { "readings": { "labels": "${packages.ml_model.detector}/labels.txt" } }
    }
  ]
}""",
    "processes": """{
  "processes": [{ "id": "web", "name": "python3", "args": ["-m", "http.server"], "log": true }]
}""",
    "log": """{
  "log": [
    { "pattern": "rdk.*", "level": "warn" },
    { "pattern": "rdk:component:camera/belt", "level": "debug" }
  ],
  "components": [{ "name": "belt", "api": "rdk:component:camera", "model": "fake" }]
}""",
    "maintenance": """{
  "components": [
    {
      "name": "safe",
      "api": "rdk:component:sensor",
      "model": "fake",
      "attributes": { "readings": { "nobody_inside": true } }
    }
  ],
  "maintenance": {
    "sensor_name": "rdk:component:sensor/safe",
    "maintenance_allowed_key": "nobody_inside"
  }
}""",
    "agent": """{
  "agent": {
    "version_control": { "agent": "stable", "viam-server": "1.4.0" },
    "system_configuration": { "os_auto_upgrade_type": "security" }
  }
}""",
    "jobs": """{
  "components": [{ "name": "thermometer", "api": "rdk:component:sensor", "model": "fake" }],
  "jobs": [
    { "name": "hourly", "schedule": "1h", "resource": "thermometer", "method": "GetReadings" }
  ]
}""",
    "tracing": """{ "tracing": { "enabled": true, "otlpendpoint": "localhost:4317" } }""",
}
"""A complete example file for each section, in the order of the page."""


def _render_configuration() -> str:
    intro = (
        "# Configuration file\n\n"
        "Every field of the file that `cogwork-server -config` reads. "
        "[Configuration](../concepts/configuration.md) explains\nhow it is read, "
        "[Diagnostics](diagnostics.md) lists the errors, and [Models](models.md) the `attributes` "
        "of\neach model.\n\n"
        "A field that is missing or `null` has its default. Fields marked *(later)* are read and "
        "checked, but have no\neffect in this release.\n\n"
        'A duration is a number with a unit, in quotes: `"200ms"`, `"10s"`, `"1h30m"`. A log '
        'level is `"debug"`,\n`"info"`, `"warn"` or `"error"`. A name starts with a letter or a '
        "digit, followed by letters, digits, `-` and\n`_`; it has at most 60 characters for a "
        "resource or a remote, and 200 otherwise.\n\n"
    )
    machine = describe_model(MachineConfig)
    places = _section_paths(machine)
    sections = [_render_section("", machine, places)]
    sections += [
        _render_section(path, machine["$defs"][name], places) for name, path in places.items()
    ]
    return intro + "\n".join(sections)


def _section_paths(machine: JsonSchema) -> dict[str, str]:
    """Return the section in which each kind of object is described: the first that uses it."""
    places: dict[str, str] = {}

    def visit(name: str, path: str) -> None:
        if name not in places:
            places[name] = path
            for key, _, inner in nested_objects(machine["$defs"][name], machine["$defs"]):
                visit(inner, f"{path}.{key}")

    parts = {key: name for key, _, name in nested_objects(machine, machine["$defs"])}
    for part in sorted(parts, key=list(EXAMPLES).index):
        visit(parts[part], part)
    return places


def _render_section(path: str, schema: JsonSchema, places: Mapping[str, str]) -> str:
    text = f"{'#' * (2 + path.count('.'))} {path or 'Top level'}\n\n{schema['description']}\n\n"
    if path in INACTIVE_PARTS:
        text += f"{INACTIVE_PARTS[path]}\n\n"
    later = [key for key in schema["properties"] if f"{path}.{key}".lstrip(".") in INACTIVE_PARTS]
    text += _render_table("field", schema, places, later)
    return text + f"\n{_render_snippet(EXAMPLES[path])}" if path in EXAMPLES else text


def _render_diagnostics() -> str:
    intro = (
        "# Diagnostics\n\n"
        "The diagnostics of `cogwork config check` and of the server's log. The meaning of a code "
        "never\nchanges. `cogwork explain CODE` shows the same text on the command line.\n\n"
        "| code | severity | |\n|---|---|---|\n"
    )
    rows = (
        f"| [{c.id}](#{c.id.lower()}) | {c.severity.value} | {c.title} |" for c in CODES.values()
    )
    return intro + "\n".join(rows) + "\n\n" + "\n".join(map(_render_diagnostic, CODES.values()))


def _render_diagnostic(code: Code) -> str:
    return (
        f"## {code.id}\n\n"
        f"**{code.title}** ({code.severity.value})\n\n"
        f"{code.explanation}\n\n"
        f"Wrong:\n\n{_render_snippet(code.wrong)}\n"
        f"Right:\n\n{_render_snippet(code.right)}"
    )


def _render_snippet(text: str) -> str:
    language = "json" if text.startswith(("{", '"')) else "text"
    return f"```{language}\n{text}\n```\n"


def _render_models() -> str:
    intro = "# Models\n\nThe built-in models and their `attributes`.\n\n"
    models = sorted(builtin_models(), key=lambda model: (model.api, model.name))
    return intro + "\n".join(map(_render_model, models))


def _render_model(model: Model) -> str:
    schema = describe_model(model.load_attributes())
    head = f"## {model.api} {model.name.short}\n\n"
    if "description" in schema:
        head += f"{schema['description']}\n\n"
    if model.reconfigures:
        head += "Changed attributes are applied without a rebuild.\n\n"
    if not schema.get("properties"):
        return head + "This model has no attributes.\n"
    return head + "\n".join(_render_tables(schema, "", schema.get("$defs", {})))


def _render_tables(schema: JsonSchema, path: str, definitions: JsonSchema) -> Iterator[str]:
    """Yield the table of the attributes, and one for each nested object."""
    yield _render_table("attribute", schema)
    for key, member, name in nested_objects(schema, definitions):
        inner = path + key
        reader = f"Each of `{inner}`" if member.get("type") == "array" else f"`{inner}`"
        first, *others = _render_tables(definitions[name], f"{inner}.", definitions)
        yield f"{reader} reads:\n\n{first}"
        yield from others


def _render_table(
    title: str,
    schema: JsonSchema,
    places: Mapping[str, str] = MappingProxyType({}),
    later: Collection[str] = (),
) -> str:
    required = schema.get("required", ())
    rows = [
        f"| `{key}` | {_render_type(member, places)} | {_render_default(member, key in required)} "
        f"| {_escape_cell(member.get('description', ''))}{' *(later)*' * (key in later)} |\n"
        for key, member in schema["properties"].items()
    ]
    return f"| {title} | type | default | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _render_type(member: JsonSchema, places: Mapping[str, str]) -> str:
    return describe_type(
        member, quote=lambda text: f"`{text}`", link=lambda name: _render_link(name, places)
    )


def _render_link(name: str, places: Mapping[str, str]) -> str:
    place = places.get(name)
    return f"[object](#{place.replace('.', '')})" if place else "object"


def _render_default(member: JsonSchema, required: bool) -> str:
    if required:
        return "required"
    default = find_default(member)
    return (
        "none" if default is None else f"`{_escape_cell(json.dumps(default, ensure_ascii=False))}`"
    )


def _render_options() -> str:
    intro = (
        "# Options of cogwork-server\n\n"
        "Write an option as `-x` or `--x`, and its value as `-x=VALUE` or `-x VALUE`. Turn a "
        "switch off with\n`-x=false`. If an option is given twice, the last one counts. "
        "`cogwork-server -h` prints all options.\n\n"
        "Some options are accepted for compatibility with existing scripts, but have no effect "
        "in this\nrelease. The server logs this when it starts.\n\n"
        "| option | default | effect | in this release |\n|---|---|---|---|\n"
    )
    exits = (
        "\n\n## Exit codes\n\n| code | |\n|---|---|\n",
        *(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES.items()),
    )
    return intro + "\n".join(map(_render_option, OPTIONS)) + "".join(exits)


def _render_option(option: Option) -> str:
    default = "" if option.default is None else f"`{json.dumps(option.default)}`"
    later = f"no effect: {option.unsupported_reason}" if option.unsupported_reason else ""
    cells = (f"`{option.usage}`", default, _escape_cell(option.description), _escape_cell(later))
    return f"| {' | '.join(cells)} |"


def _escape_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    sys.exit(main())
