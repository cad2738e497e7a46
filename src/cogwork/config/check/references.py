"""Find the references in attributes: to other resources, and to files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cogwork.config.schema.fields import (
    Dependency,
    ExistingFile,
    OptionalDependency,
    find_markers,
)
from cogwork.config.text.positions import Pointer

Marker = Dependency | OptionalDependency | ExistingFile


@dataclass(frozen=True, slots=True)
class AttributeReference:
    marker: Marker
    text: str
    pointer: Pointer


def find_references(model: BaseModel, at: Pointer) -> Iterator[AttributeReference]:
    """Yield every non-empty string that is marked as a reference, at any depth of a validated
    model."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        pointer = (*at, field.alias or name)
        markers = _find_markers(field)
        for marker in markers:
            yield from _find_strings(marker, value, pointer)
        if not markers:
            yield from _find_nested(value, pointer)


def find_references_in_invalid(
    kind: type[BaseModel], value: Mapping[str, object], at: Pointer
) -> Iterator[AttributeReference]:
    """Yield the references in the top-level fields of an object that failed validation."""
    for name, field in kind.model_fields.items():
        key = field.alias or name
        for marker in _find_markers(field):
            yield from _find_strings(marker, value.get(key), (*at, key))


def _find_markers(field: FieldInfo) -> list[Marker]:
    return [
        item
        for item in find_markers(field)
        if isinstance(item, Dependency | OptionalDependency | ExistingFile)
    ]


def _find_strings(marker: Marker, value: object, pointer: Pointer) -> Iterator[AttributeReference]:
    if isinstance(value, str) and value:
        yield AttributeReference(marker, value, pointer)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _find_strings(marker, item, (*pointer, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_strings(marker, item, (*pointer, str(key)))


def _find_nested(value: object, pointer: Pointer) -> Iterator[AttributeReference]:
    if isinstance(value, BaseModel):
        yield from find_references(value, pointer)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _find_nested(item, (*pointer, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _find_nested(item, (*pointer, str(key)))
