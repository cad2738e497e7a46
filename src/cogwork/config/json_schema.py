"""The JSON Schema of the configuration file, for editors: completion, and red lines as you type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from cogwork.config.apis import PUBLIC_APIS
from cogwork.config.catalogue import Catalogue, Shape
from cogwork.config.fields import Section
from cogwork.config.schema import ComponentConfig, MachineConfig, ServiceConfig
from cogwork.core import duration
from cogwork.graph.name import ModelName

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = "#/$defs/"
_OUTSIDE = ("title", "default", "description")
_RESOURCES: dict[str, type[BaseModel]] = {"component": ComponentConfig, "service": ServiceConfig}


def machine_schema(catalogue: Catalogue) -> dict[str, Any]:
    """The whole file; the attributes of each model depend on its api and model."""
    shapes = sorted(catalogue.shapes(), key=lambda shape: (shape.api, shape.model))
    ours: tuple[type[BaseModel], ...] = (MachineConfig, *_RESOURCES.values())
    models = {*ours, *(shape.attributes for shape in shapes)}
    ordered = sorted(models, key=lambda model: f"{model.__module__}.{model.__qualname__}")
    references, generated = models_json_schema(
        [(model, "validation") for model in ordered],
        schema_generator=_ForEditors,
        ref_template=f"{_DEFINITIONS}{{model}}",
    )
    # A plug-in may have a class of the same name: only the reference knows the one of ours.
    names = {
        model: str(references[model, "validation"]["$ref"]).removeprefix(_DEFINITIONS)
        for model in ours
    }
    definitions = generated["$defs"]
    for kind, model in _RESOURCES.items():
        definition = definitions[names[model]]
        _allow_older_files(definition)
        _suggest_apis(definition, kind)
        conditions = [
            _when(shape, references[shape.attributes, "validation"])
            for shape in shapes
            if shape.api.kind == kind
        ]
        if conditions:
            definition["allOf"] = conditions
    machine = definitions.pop(names[MachineConfig])
    return {
        "$schema": DIALECT,
        **machine,
        "title": "Cogwork machine",
        "$defs": _used(definitions, machine),
    }


def described(model: type[BaseModel]) -> dict[str, Any]:
    """One model as one would write it, for people: that null is absent goes without saying."""
    return model.model_json_schema(
        schema_generator=_Generator, ref_template=f"{_DEFINITIONS}{{model}}"
    )


class _Generator(GenerateJsonSchema):
    """Titles repeat the keys; an editor shows better without them."""

    def get_title_from_name(self, name: str) -> str:
        del name
        return ""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """A default as one would write it."""
        made = super().default_schema(schema)
        default = made.get("default")
        if "$ref" in made:
            made.pop("default", None)
        elif isinstance(default, float) and made.get("type") == "string":
            made["default"] = duration.render(default)
        return made

    def encode_default(self, dft: Any) -> Any:
        return dft.short if isinstance(dft, ModelName) else super().encode_default(dft)


class _ForEditors(_Generator):
    """Null is absent, in any section."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        made = super().model_schema(schema)
        if issubclass(schema["cls"], Section):
            for name, member in made.get("properties", {}).items():
                if name not in made.get("required", ()):
                    made["properties"][name] = _or_null(member)
        return made


def _or_null(member: JsonSchemaValue) -> JsonSchemaValue:
    outside: JsonSchemaValue = {key: value for key, value in member.items() if key in _OUTSIDE}
    inside = {key: value for key, value in member.items() if key not in outside}
    choices = inside["anyOf"] if inside.keys() == {"anyOf"} else [inside]
    if {"type": "null"} in choices:
        return member
    if isinstance(inside.get("type"), str) and "enum" not in inside:
        return {**member, "type": [inside["type"], "null"]}
    return {"anyOf": [*choices, {"type": "null"}], **outside}


def _when(shape: Shape, attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted({str(shape.model), shape.model.short})
    return {
        "if": {
            "properties": {"api": {"const": str(shape.api)}, "model": {"enum": names}},
            "required": ["api", "model"],
        },
        "then": {"properties": {"attributes": _or_null(dict(attributes))}},
    }


_IN_OLDER_FILES = {
    "type": "The last part of `api`, in older files.",
    "namespace": "The first part of `api`, in older files. By default it is `rdk`.",
}


def _allow_older_files(definition: dict[str, Any]) -> None:
    """`namespace` and `type` may stand for `api`."""
    for name, meaning in _IN_OLDER_FILES.items():
        definition["properties"][name] = {
            "type": ["string", "null"],
            "description": meaning,
            "deprecated": True,
        }
    required = [name for name in definition.get("required", []) if name != "api"]
    definition["required"] = required
    written = {"required": ["api"], "properties": {"api": {"type": ["string", "object"]}}}
    spelled = {"required": ["type"], "properties": {"type": {"type": "string"}}}
    definition["anyOf"] = [written, spelled]


def _suggest_apis(definition: dict[str, Any], kind: str) -> None:
    api = definition["properties"]["api"]
    known = [str(api) for api in PUBLIC_APIS if api.kind == kind]
    definition["properties"]["api"] = _or_null({**api, "anyOf": [{"enum": known}, *api["anyOf"]]})


def _used(definitions: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Pydantic also defines what the validators make of a text."""
    text = json.dumps([machine, definitions])
    return {
        name: definition
        for name, definition in definitions.items()
        if f'"{_DEFINITIONS}{name}"' in text
    }
