"""Models as `cogwork models` lists them: built-in, from packages, and from modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from cogwork.cli.models.example import make_example
from cogwork.cli.models.model_summary import first_sentence, read_summary
from cogwork.config.schema.json_schema import describe_model
from cogwork.config.schema.schema_text import (
    JsonSchema,
    describe_type,
    find_default,
    nested_objects,
)
from cogwork.drivers.builtin_models import builtin_models
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model, install_advice
from cogwork.resource.registry import iter_entry_point_models
from cogwork.resource.sdk.adapter import SdkClassModel

BUILT_IN = "built-in"


class AttributeRow(NamedTuple):
    path: str
    """The name; of a nested attribute, its path, such as `pins.pwm` or `analogs[].pin`."""
    type: str
    is_required: bool
    default: Any
    description: str

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.path,
            "type": self.type,
            "required": self.is_required,
            "default": self.default,
            "description": self.description,
        }


@dataclass(frozen=True, slots=True)
class ModelEntry:
    api: Api
    name: ModelName
    source: str
    """`built-in`, `package NAME` or `module NAME`."""
    summary: str
    advice: str | None = None
    """How to install what the model needs; None if nothing is missing."""
    model: Model | None = None
    """None for a model of a module, which alone knows its attributes."""

    @property
    def schema(self) -> JsonSchema | None:
        """The schema of the attributes; None if only the model's code knows them."""
        if self.model is None or isinstance(self.model, SdkClassModel):
            return None
        return describe_model(self.model.load_attributes())

    def to_json(self) -> dict[str, Any]:
        schema = self.schema
        return {
            "api": str(self.api),
            "model": self.name.short,
            "source": self.source,
            "summary": self.summary,
            "install": self.advice,
            "attributes": None
            if schema is None
            else [row.to_json() for row in iter_attributes(schema)],
            "example": make_example(self.api, self.name, schema),
        }


def merge_models(entries: Iterable[ModelEntry]) -> list[ModelEntry]:
    """Return the models sorted by API and name. Of models with one name, the first is used."""
    known: dict[tuple[Api, ModelName], ModelEntry] = {}
    for entry in entries:
        known.setdefault((entry.api, entry.name), entry)
    return [known[key] for key in sorted(known)]


def iter_models() -> Iterator[ModelEntry]:
    """Yield the built-in models and the models of installed packages."""
    for model in builtin_models():
        yield _make_entry(BUILT_IN, model)
    for package, model in iter_entry_point_models():
        yield _make_entry(f"package {package}", model)


def _make_entry(source: str, model: Model) -> ModelEntry:
    needs = model.needs
    return ModelEntry(
        model.api,
        model.name,
        source,
        read_summary(model.module) or first_sentence(model.load_attributes().__doc__ or ""),
        install_advice(needs.name) if needs is not None and needs.find_missing() else None,
        model,
    )


def iter_attributes(schema: JsonSchema) -> Iterator[AttributeRow]:
    """Yield the attributes, each followed by the attributes of its objects."""
    return _iter_rows(schema, schema.get("$defs", {}), "")


def _iter_rows(schema: JsonSchema, definitions: JsonSchema, path: str) -> Iterator[AttributeRow]:
    required = schema.get("required", ())
    inner = {key: name for key, _, name in nested_objects(schema, definitions)}
    for key, member in schema.get("properties", {}).items():
        yield AttributeRow(
            f"{path}{key}",
            describe_type(member),
            key in required,
            None if key in required else find_default(member),
            " ".join(member.get("description", "").split()),
        )
        if key in inner:
            brackets = "[]" if member.get("type") == "array" else ""
            yield from _iter_rows(definitions[inner[key]], definitions, f"{path}{key}{brackets}.")


def search(entries: Iterable[ModelEntry], words: Iterable[str]) -> list[ModelEntry]:
    """Return the models that match every word: an API, or a part of the API, name or sentence.

    If the words are the name of exactly one model, return only that one.
    """
    found = list(entries)
    for word in words:
        of_api = [each for each in found if word in (each.api.subtype, str(each.api))]
        found = of_api or [each for each in found if _contains(each, word.lower())]
    exact = [each for each in found if {each.name.short, str(each.name)}.intersection(words)]
    return exact if len(exact) == 1 else found


def _contains(entry: ModelEntry, word: str) -> bool:
    text = f"{entry.api} {entry.name} {entry.name.short} {entry.source} {entry.summary}"
    return word in text.lower()
