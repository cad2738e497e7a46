"""The keys that objects of a configuration may have, in order to match them in any letter case."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

from cogwork.config.schema.fields import ObjectKeys


class KeyShape:
    """The known keys of an object, or of the objects in a list.

    The keys of free-form objects, such as `env` or the attributes of modules, are not known.
    """

    def __init__(
        self,
        annotations: Mapping[str, tuple[Any, ...]],
        other_keys: tuple[Any, ...] = (),
        aliases: Mapping[str, str] | None = None,
    ) -> None:
        """`annotations`: the types of the values by key. `other_keys`: the types of the values of
        keys that are free. `aliases`: keys of viam-server by their names in lower case."""
        self._annotations = annotations
        self._other_keys = other_keys
        self._aliases = aliases or {}
        self._inner: dict[str, KeyShape | None] = {}

    @functools.cached_property
    def _by_lower(self) -> Mapping[str, str]:
        # The first of several keys that differ only in case is used.
        return {key.lower(): key for key in reversed(tuple(self._annotations))}

    def find_key(self, written: str) -> str | None:
        """Return the known key for a key as it is written; None if it is unknown."""
        if written in self._annotations:
            return written
        lower = written.lower()
        return self._by_lower.get(lower) or self._aliases.get(lower)

    def is_complete(self, value: Mapping[str, object]) -> bool:
        """Whether all keys are written as they are defined."""
        return value.keys() <= self._annotations.keys()

    def inside(self, key: str) -> KeyShape | None:
        """Return the keys of the value of a known or free key; None if its keys are free."""
        if key not in self._annotations:
            return self._inside_free_keys
        if key not in self._inner:
            self._inner[key] = _combine(self._annotations[key])
        return self._inner[key]

    @functools.cached_property
    def _inside_free_keys(self) -> KeyShape | None:
        return _combine(self._other_keys)


def shape_of(
    kind: type[BaseModel],
    *,
    more_keys: Iterable[str] = (),
    aliases: Mapping[str, str] | None = None,
) -> KeyShape | None:
    """Return the keys of a model; None if it accepts any key.

    `more_keys`: keys that the model converts before it is validated.
    """
    if kind.model_config.get("extra") != "forbid":
        return None
    annotations = {**dict.fromkeys(more_keys, ()), **_annotations_of(kind)}
    return KeyShape(annotations, aliases=aliases)


def _annotations_of(kind: type[BaseModel]) -> dict[str, tuple[Any, ...]]:
    if any(_is_unresolved(field.annotation) for field in kind.model_fields.values()):
        kind.model_rebuild()
    return {
        field.alias or name: (field.annotation, *field.metadata)
        for name, field in kind.model_fields.items()
    }


def _is_unresolved(annotation: Any) -> bool:
    return type(annotation).__name__ == "ForwardRef" or any(
        map(_is_unresolved, get_args(annotation))
    )


def _combine(annotations: tuple[Any, ...]) -> KeyShape | None:
    """Return the keys of the objects that a value may be; None if it has no known keys."""
    found: dict[str, tuple[Any, ...]] = {}
    free: tuple[Any, ...] = ()
    for part in _object_types(annotations):
        if isinstance(part, ObjectKeys):
            members: Mapping[str, tuple[Any, ...]] = {
                key: () if inner is None else (inner,) for key, inner in part.keys.items()
            }
        elif _is_model(part):
            if part.model_config.get("extra") != "forbid":
                return None
            members = _annotations_of(part)
        else:
            free = (*free, *get_args(part)[1:])
            continue
        for key, types in members.items():
            found[key] = (*found.get(key, ()), *types)
    return KeyShape(found, free) if found or any(_object_types(free)) else None


def _object_types(annotations: tuple[Any, ...]) -> Iterator[Any]:
    """Yield the models, dictionaries and `ObjectKeys` in type annotations, also in lists."""
    for annotation in annotations:
        is_marked = isinstance(annotation, ObjectKeys)
        if is_marked or _is_model(annotation) or get_origin(annotation) is dict:
            yield annotation
        elif get_origin(annotation) is Annotated:
            yield from _object_types((annotation.__origin__, *annotation.__metadata__))
        else:
            yield from _object_types(get_args(annotation))


def _is_model(annotation: Any) -> bool:
    is_class = isinstance(annotation, type) and get_origin(annotation) is None
    return is_class and issubclass(annotation, BaseModel)
