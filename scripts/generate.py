"""Regenerates what is made from the code: the JSON Schema and the reference pages.

With --check it writes nothing, names what has drifted from the code, and exits 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from scripts.api_page import api_page

from cogwork.config.codes import CODES, Code
from cogwork.config.json_schema import described, machine_schema
from cogwork.config.schema import MachineConfig
from cogwork.drivers.table import builtin_models
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry
from cogwork.server.options import EXIT_CODES, OPTIONS, Option

ROOT = Path(__file__).parents[1]
JsonSchema = Mapping[str, Any]


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
        "docs/reference/api.md": api_page(),
        "docs/reference/configuration.md": _configuration(),
        "docs/reference/diagnostics.md": _diagnostics(),
        "docs/reference/models.md": _models(),
        "docs/reference/options.md": _options(),
    }


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None


def _schema() -> str:
    schema = machine_schema(Registry(builtin_models()))
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


_NO_EFFECT = "Read and checked, without effect before a later release."
_ONLY_HERE = "Until then, a server that\nis configured to have it listens on this computer only."
LATER = {
    **dict.fromkeys(
        (
            "components.service_configs",
            "services.frame",
            "services.service_configs",
            "remotes",
            "network.fqdn",
            "network.tls_cert_file",
            "network.tls_key_file",
            "network.no_tls",
            "packages",
            "processes",
            "tracing",
            "enable_web_profile",
        ),
        _NO_EFFECT,
    ),
    "auth": f"{_NO_EFFECT} {_ONLY_HERE}",
    "cloud": f"{_NO_EFFECT} {_ONLY_HERE}\nIts ids are told to clients.",
}
"""Parts of the file whose subject does not run in this release, and what the page says of them."""

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
  "packages": [{ "name": "detector", "package": "acme/detector", "version": "1.2.3" }],
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
    { "pattern": "rdk.resource_manager.rdk:component:camera/*", "level": "debug" }
  ]
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
    "jobs": """{
  "components": [{ "name": "thermometer", "api": "rdk:component:sensor", "model": "fake" }],
  "jobs": [
    { "name": "hourly", "schedule": "1h", "resource": "thermometer", "method": "GetReadings" }
  ]
}""",
    "tracing": """{ "tracing": { "enabled": true, "otlpendpoint": "localhost:4317" } }""",
}
"""A whole file for each part, in the order of the page."""


def _configuration() -> str:
    intro = (
        "# Configuration file\n\n"
        "Every field of the file that `cogwork-server -config` reads. "
        "[Configuration](../concepts/configuration.md) says\nhow it is read, "
        "[Diagnostics](diagnostics.md) what can be wrong with it, and [Models](models.md) what "
        "each\nmodel reads from `attributes`.\n\n"
        "A field that is left out or `null` has its default. What is marked *(later)* is read and "
        "checked, and has no\neffect before a later release.\n\n"
        'A duration is a number with a unit, in quotes: `"200ms"`, `"10s"`, `"1h30m"`. A log '
        'level is `"debug"`,\n`"info"`, `"warn"` or `"error"`. A name starts with a letter or a '
        "digit and goes on with letters, digits, `-` and\n`_`; it has at most 60 characters for a "
        "resource or a remote, and 200 for anything else.\n\n"
    )
    machine = described(MachineConfig)
    places = _places(machine)
    sections = [_section("", machine, places)]
    sections += [_section(path, machine["$defs"][name], places) for name, path in places.items()]
    return intro + "\n".join(sections)


def _places(machine: JsonSchema) -> dict[str, str]:
    """Where each kind of object is described: where the page first comes to it."""
    places: dict[str, str] = {}

    def visit(name: str, path: str) -> None:
        if name not in places:
            places[name] = path
            for key, _, inner in _objects(machine["$defs"][name], machine["$defs"]):
                visit(inner, f"{path}.{key}")

    parts = {key: name for key, _, name in _objects(machine, machine["$defs"])}
    for part in sorted(parts, key=list(EXAMPLES).index):
        visit(parts[part], part)
    return places


def _section(path: str, schema: JsonSchema, places: Mapping[str, str]) -> str:
    text = f"{'#' * (2 + path.count('.'))} {path or 'Top level'}\n\n{schema['description']}\n\n"
    if path in LATER:
        text += f"{LATER[path]}\n\n"
    later = [key for key in schema["properties"] if f"{path}.{key}".lstrip(".") in LATER]
    text += _table("field", schema, places, later)
    return text + f"\n{_snippet(EXAMPLES[path])}" if path in EXAMPLES else text


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
    schema = described(model.attributes)
    head = f"## {model.api} {model.name.short}\n\n"
    if model.reconfigures:
        head += "Changed attributes are taken over in place.\n\n"
    if not schema.get("properties"):
        return head + "It reads no attributes.\n"
    return head + "\n".join(_tables(schema, "", schema.get("$defs", {})))


def _tables(schema: JsonSchema, path: str, definitions: JsonSchema) -> Iterator[str]:
    """Of the attributes, and of each object among them."""
    yield _table("attribute", schema)
    for key, member, name in _objects(schema, definitions):
        inner = path + key
        reader = f"Each of `{inner}`" if member.get("type") == "array" else f"`{inner}`"
        first, *others = _tables(definitions[name], f"{inner}.", definitions)
        yield f"{reader} reads:\n\n{first}"
        yield from others


def _objects(schema: JsonSchema, definitions: JsonSchema) -> Iterator[tuple[str, JsonSchema, str]]:
    """The members that are objects with members of their own, or lists of them."""
    for key, member in schema.get("properties", {}).items():
        name = _definition(member)
        if name is not None and "properties" in definitions[name]:
            yield key, member, name


def _definition(member: JsonSchema) -> str | None:
    choices = [member, member.get("items", {}), *member.get("anyOf", ())]
    references = [choice["$ref"] for choice in choices if "$ref" in choice]
    return references[0].rpartition("/")[2] if references else None


def _table(
    title: str,
    schema: JsonSchema,
    places: Mapping[str, str] = MappingProxyType({}),
    later: Collection[str] = (),
) -> str:
    required = schema.get("required", ())
    rows = [
        f"| `{key}` | {_type(member, places)} | {_default(member, key in required)} "
        f"| {_in_a_cell(member.get('description', ''))}{' *(later)*' * (key in later)} |\n"
        for key, member in schema["properties"].items()
    ]
    return f"| {title} | type | default | meaning |\n|---|---|---|---|\n{''.join(rows)}"


def _type(member: JsonSchema, places: Mapping[str, str]) -> str:
    if "title" in member:
        return str(member["title"])
    if "enum" in member:
        return " or ".join(f"`{json.dumps(choice)}`" for choice in member["enum"])
    if "const" in member:
        return f"`{json.dumps(member['const'])}`"
    if "anyOf" in member:
        choices = [choice for choice in member["anyOf"] if choice != _NULL]
        return " or ".join(_type(choice, places) for choice in choices)
    if "$ref" in member:
        return _linked(member, places)
    if member.get("type") == "array":
        return f"array of {_type(member['items'], places)}" if member.get("items") else "array"
    values = member.get("additionalProperties")
    if isinstance(values, Mapping) and "type" in values:
        return f"object of {_type(values, places)}"
    return str(member.get("type", "any"))


_NULL = {"type": "null"}
_ANYTHING = "JsonValue"


def _linked(member: JsonSchema, places: Mapping[str, str]) -> str:
    name = _definition(member)
    if name == _ANYTHING:
        return "any"
    place = places.get(name or "")
    return f"[object](#{place.replace('.', '')})" if place else "object"


def _default(member: JsonSchema, required: bool) -> str:
    if required:
        return "required"
    is_object = "$ref" in member and _definition(member) != _ANYTHING
    default = member.get("default", {} if is_object else None)
    return "none" if default is None else f"`{_in_a_cell(json.dumps(default, ensure_ascii=False))}`"


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
