"""Find the references in attributes: to other resources, and to files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar, cast

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cogwork.config.schema.fields import (
    Dependency,
    ExistingFile,
    OptionalDependency,
    find_markers,
)
from cogwork.config.text.positions import Pointer

T = TypeVar("T")

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


def replace_texts(value: T, at: Pointer, texts: Mapping[Pointer, str]) -> T:
    """Return a copy of a validated value with other strings at these pointers."""
    return cast("T", _replace_texts(value, at, texts))


def _replace_texts(value: object, at: Pointer, texts: Mapping[Pointer, str]) -> object:
    if not any(pointer[: len(at)] == at for pointer in texts):
        return value
    if isinstance(value, str):
        return texts.get(at, value)
    if isinstance(value, BaseModel):
        return value.model_copy(
            update={
                name: _replace_texts(getattr(value, name), (*at, field.alias or name), texts)
                for name, field in type(value).model_fields.items()
                if name in value.model_fields_set
            }
        )
    if isinstance(value, list | tuple):
        items = (_replace_texts(item, (*at, index), texts) for index, item in enumerate(value))
        return type(value)(items)
    if isinstance(value, dict):
        return {key: _replace_texts(item, (*at, str(key)), texts) for key, item in value.items()}
    return value


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
