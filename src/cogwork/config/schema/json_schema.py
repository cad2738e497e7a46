"""The JSON Schema of the configuration file, for completion and validation in editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, models_json_schema
from pydantic_core import core_schema

from cogwork.config.schema.fields import Section
from cogwork.config.schema.machine import ComponentConfig, MachineConfig, ServiceConfig
from cogwork.config.schema.model_catalog import ModelCatalog, ModelSchema
from cogwork.core import duration
from cogwork.graph.name import ModelName
from cogwork.graph.public_apis import PUBLIC_APIS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_REF_PREFIX = "#/$defs/"
_ANNOTATIONS = ("title", "default", "description")
_RESOURCES: dict[str, type[BaseModel]] = {"component": ComponentConfig, "service": ServiceConfig}


def machine_schema(catalog: ModelCatalog) -> dict[str, Any]:
    """Return the schema of the whole file. The attributes depend on `api` and `model`."""
    schemas = sorted(catalog.schemas(), key=lambda schema: (schema.api, schema.model))
    ours: tuple[type[BaseModel], ...] = (MachineConfig, *_RESOURCES.values())
    models = {*ours, *(schema.attributes for schema in schemas)}
    ordered = sorted(models, key=lambda model: f"{model.__module__}.{model.__qualname__}")
    references, generated = models_json_schema(
        [(model, "validation") for model in ordered],
        schema_generator=_EditorSchemaGenerator,
        ref_template=f"{_REF_PREFIX}{{model}}",
    )
    # Read the generated names from the references: they differ from the class names if a plug-in
    # has a class of the same name.
    names = {
        model: str(references[model, "validation"]["$ref"]).removeprefix(_REF_PREFIX)
        for model in ours
    }
    definitions = generated["$defs"]
    for kind, model in _RESOURCES.items():
        definition = definitions[names[model]]
        _allow_legacy_fields(definition)
        _suggest_apis(definition, kind)
        conditions = [
            _conditional_schema(schema, references[schema.attributes, "validation"])
            for schema in schemas
            if schema.api.kind == kind
        ]
        if conditions:
            definition["allOf"] = conditions
    machine = definitions.pop(names[MachineConfig])
    return {
        "$schema": DIALECT,
        **machine,
        "title": "Cogwork machine",
        "$defs": _drop_unused(definitions, machine),
    }


def describe_model(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of one model for the reference, without the null alternatives."""
    return model.model_json_schema(
        schema_generator=_SchemaGenerator, ref_template=f"{_REF_PREFIX}{{model}}"
    )


class _SchemaGenerator(GenerateJsonSchema):
    """A generator without titles, which would only repeat the keys."""

    def get_title_from_name(self, name: str) -> str:
        del name
        return ""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        """Write defaults as they appear in a file, such as durations with a unit."""
        generated = super().default_schema(schema)
        default = generated.get("default")
        if "$ref" in generated:
            generated.pop("default", None)
        elif isinstance(default, float) and generated.get("type") == "string":
            generated["default"] = duration.render(default)
        return generated

    def encode_default(self, dft: Any) -> Any:
        return dft.short if isinstance(dft, ModelName) else super().encode_default(dft)


class _EditorSchemaGenerator(_SchemaGenerator):
    """A generator that allows null for every optional key of a section."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        generated = super().model_schema(schema)
        if issubclass(schema["cls"], Section):
            for name, member in generated.get("properties", {}).items():
                if name not in generated.get("required", ()):
                    generated["properties"][name] = _allow_null(member)
        return generated


def _allow_null(member: JsonSchemaValue) -> JsonSchemaValue:
    outside: JsonSchemaValue = {key: value for key, value in member.items() if key in _ANNOTATIONS}
    inside = {key: value for key, value in member.items() if key not in outside}
    choices = inside["anyOf"] if inside.keys() == {"anyOf"} else [inside]
    if {"type": "null"} in choices:
        return member
    if isinstance(inside.get("type"), str) and "enum" not in inside:
        return {**member, "type": [inside["type"], "null"]}
    return {"anyOf": [*choices, {"type": "null"}], **outside}


def _conditional_schema(schema: ModelSchema, attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted({str(schema.model), schema.model.short})
    return {
        "if": {
            "properties": {"api": {"const": str(schema.api)}, "model": {"enum": names}},
            "required": ["api", "model"],
        },
        "then": {"properties": {"attributes": _allow_null(dict(attributes))}},
    }


_LEGACY_FIELDS = {
    "type": "The last part of `api`, in older files.",
    "namespace": "The first part of `api`, in older files. Defaults to `rdk`.",
}


def _allow_legacy_fields(definition: dict[str, Any]) -> None:
    """Allow `namespace` and `type` instead of `api`."""
    for name, meaning in _LEGACY_FIELDS.items():
        definition["properties"][name] = {
            "type": ["string", "null"],
            "description": meaning,
            "deprecated": True,
        }
    required = [name for name in definition.get("required", []) if name != "api"]
    definition["required"] = required
    written = {"required": ["api"], "properties": {"api": {"type": ["string", "object"]}}}
    legacy = {"required": ["type"], "properties": {"type": {"type": "string"}}}
    definition["anyOf"] = [written, legacy]


def _suggest_apis(definition: dict[str, Any], kind: str) -> None:
    api = definition["properties"]["api"]
    known = [str(api) for api in PUBLIC_APIS if api.kind == kind]
    definition["properties"]["api"] = _allow_null(
        {**api, "anyOf": [{"enum": known}, *api["anyOf"]]}
    )


def _drop_unused(definitions: Mapping[str, Any], machine: Mapping[str, Any]) -> dict[str, Any]:
    """Drop unused definitions, such as the types that validators return."""
    text = json.dumps([machine, definitions])
    return {
        name: definition
        for name, definition in definitions.items()
        if f'"{_REF_PREFIX}{name}"' in text
    }
