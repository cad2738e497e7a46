"""Find the rows for a setting, a model or a module."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TypeAlias

from cogwork.config.schema.existing_product.attributes import ATTRIBUTES
from cogwork.config.schema.existing_product.difference import (
    ANY_ITEM,
    Difference,
    KeyPath,
    MissingModel,
)
from cogwork.config.schema.existing_product.models import BUILTIN_INSTEAD, MISSING_MODELS
from cogwork.config.schema.existing_product.sections import SECTION_KEYS
from cogwork.graph.name import Api, ModelName

Differences: TypeAlias = Mapping[KeyPath, Difference]
"""The rows of a section or of the attributes of a model, by the path of the key in lower case."""
NO_DIFFERENCES: Differences = MappingProxyType({})


@functools.cache
def section_differences(section: str) -> Differences:
    """Return the settings of a section. The section "" is the top level."""
    return _by_keys(SECTION_KEYS.get(section, ()))


@functools.cache
def attribute_differences(api: Api, model: ModelName) -> Differences:
    return _by_keys(ATTRIBUTES.get((api.subtype, model.short), ()))


def find_difference(differences: Differences, location: Sequence[str | int]) -> Difference | None:
    """Return the row for the key at a location below the section or the attributes."""
    if not differences:
        return None
    keys = (part.lower() if isinstance(part, str) else ANY_ITEM for part in location)
    return differences.get(tuple(keys))


def find_missing_model(api: Api, model: ModelName) -> MissingModel | None:
    if not model.is_builtin:
        return None
    return _missing_models().get((api.kind, api.subtype, model.short))


def find_builtin_instead(module_id: str) -> str | None:
    """Return the built-in model that replaces the models of a module."""
    return BUILTIN_INSTEAD.get(module_id)


def _by_keys(rows: tuple[Difference, ...]) -> Differences:
    return {row.keys: row for row in rows}


@functools.cache
def _missing_models() -> Mapping[tuple[str, str, str], MissingModel]:
    return {(row.kind, row.subtype, row.model): row for row in MISSING_MODELS}
