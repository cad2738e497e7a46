"""The JSON Schema of the configuration file, for editors: completion, and red lines as you type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from cogwork.config.apis import PUBLIC_APIS
from cogwork.config.catalogue import Catalogue, Shape
from cogwork.config.schema import MachineConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_DEFINITIONS = {"component": "ComponentConfig", "service": "ServiceConfig"}


def machine_schema(catalogue: Catalogue) -> dict[str, Any]:
    """The whole file; the attributes of each model depend on its api and model."""
    shapes = sorted(catalogue.shapes(), key=lambda shape: (shape.api, shape.model))
    models: set[type[BaseModel]] = {MachineConfig, *(shape.attributes for shape in shapes)}
    ordered = sorted(models, key=lambda model: f"{model.__module__}.{model.__qualname__}")
    references, generated = models_json_schema(
        [(model, "validation") for model in ordered],
        schema_generator=_Generator,
        ref_template="#/$defs/{model}",
    )
    definitions = generated["$defs"]
    for kind, name in _DEFINITIONS.items():
        _allow_older_files(definitions[name])
        _suggest_apis(definitions[name], kind)
        definitions[name]["allOf"] = [
            _when(shape, references[shape.attributes, "validation"])
            for shape in shapes
            if shape.api.kind == kind
        ]
        if not definitions[name]["allOf"]:
            del definitions[name]["allOf"]
    machine = definitions.pop("MachineConfig")
    return {"$schema": DIALECT, **machine, "title": "Cogwork machine", "$defs": definitions}


class _Generator(GenerateJsonSchema):
    """Titles repeat the keys; an editor shows better without them."""

    def get_title_from_name(self, name: str) -> str:
        del name
        return ""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def _when(shape: Shape, attributes: Mapping[str, Any]) -> dict[str, Any]:
    names = sorted({str(shape.model), shape.model.short})
    return {
        "if": {
            "properties": {"api": {"const": str(shape.api)}, "model": {"enum": names}},
            "required": ["api", "model"],
        },
        "then": {"properties": {"attributes": dict(attributes)}},
    }


def _allow_older_files(definition: dict[str, Any]) -> None:
    """`namespace` and `type` may stand for `api`."""
    definition["properties"]["type"] = {"type": "string", "deprecated": True}
    definition["properties"]["namespace"] = {"type": "string", "deprecated": True}
    required = [name for name in definition.get("required", []) if name != "api"]
    definition["required"] = required
    definition["anyOf"] = [{"required": ["api"]}, {"required": ["type"]}]


def _suggest_apis(definition: dict[str, Any], kind: str) -> None:
    api = definition["properties"]["api"]
    known = [str(api) for api in PUBLIC_APIS if api.kind == kind]
    definition["properties"]["api"] = {"anyOf": [{"enum": known}, *api["anyOf"]]}
