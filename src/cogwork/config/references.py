"""What attributes point at: other resources, and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from cogwork.config.fields import ExistingFile, Needs, Wants
from cogwork.config.positions import Pointer

Marker = Needs | Wants | ExistingFile


@dataclass(frozen=True, slots=True)
class Mention:
    marker: Marker
    text: str
    pointer: Pointer


def mentions(model: BaseModel, at: Pointer) -> Iterator[Mention]:
    """Every marked string of a validated model, at any depth, that is not empty."""
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        pointer = (*at, field.alias or name)
        markers = _markers(field)
        for marker in markers:
            yield from _strings(marker, value, pointer)
        if not markers:
            yield from _inside(value, pointer)


def mentions_of_invalid(
    kind: type[BaseModel], value: Mapping[str, object], at: Pointer
) -> Iterator[Mention]:
    """The same for what could not be validated, as far as its outermost members show it."""
    for name, field in kind.model_fields.items():
        key = field.alias or name
        for marker in _markers(field):
            yield from _strings(marker, value.get(key), (*at, key))


def _markers(field: FieldInfo) -> list[Marker]:
    return [
        item
        for item in (*field.metadata, *_metadata_inside(field.annotation))
        if isinstance(item, Needs | Wants | ExistingFile)
    ]


def _metadata_inside(annotation: object) -> Iterator[object]:
    """Of `Annotated[str, Needs()] | None` and of `list[Annotated[str, Needs()]]`."""
    if get_origin(annotation) is Annotated:
        yield from get_args(annotation)[1:]
    for argument in get_args(annotation):
        yield from _metadata_inside(argument)


def _strings(marker: Marker, value: object, pointer: Pointer) -> Iterator[Mention]:
    if isinstance(value, str) and value:
        yield Mention(marker, value, pointer)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(marker, item, (*pointer, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _strings(marker, item, (*pointer, str(key)))


def _inside(value: object, pointer: Pointer) -> Iterator[Mention]:
    if isinstance(value, BaseModel):
        yield from mentions(value, pointer)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _inside(item, (*pointer, index))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _inside(item, (*pointer, str(key)))
