"""The keys of a whole configuration: of its sections, and of the attributes of known models."""

from __future__ import annotations

import functools
from collections.abc import Mapping

from cogwork.config.check.key_names import KeyNames, Record, WrittenKeys
from cogwork.config.schema.existing_product.difference import Treatment
from cogwork.config.schema.existing_product.lookup import attribute_differences
from cogwork.config.schema.fields import parse_api, parse_model
from cogwork.config.schema.key_shape import KeyShape, shape_of
from cogwork.config.schema.machine import (
    ComponentConfig,
    MachineConfig,
    ResourceConfig,
    ServiceConfig,
)
from cogwork.config.schema.model_catalog import ModelCatalog, ModelSchema
from cogwork.config.text.positions import Json, Pointer

_RESOURCES: Mapping[str | int, type[ResourceConfig]] = {
    "components": ComponentConfig,
    "services": ServiceConfig,
}
_LEGACY_KEYS = ("namespace", "type")
_CLOUD_KEYS = ("fragments", "fragment_mods")


def name_keys(
    value: dict[str, Json], catalog: ModelCatalog, written: WrittenKeys, record: Record
) -> dict[str, Json]:
    """Return the configuration with all keys as they are defined.

    `written` gets the keys that are written in another way; `record` takes the diagnostics.
    """

    def find_inner(at: Pointer, holder: Mapping[str, Json], key: str) -> KeyShape | None:
        if key == "attributes" and len(at) == 2 and at[0] in _RESOURCES:
            return _find_attributes_shape(_RESOURCES[at[0]], holder, catalog)
        return _find_resource_shape(at, key)

    return _apply(KeyNames(written, record, find_inner), value, _machine_shape())


def name_section_keys(
    value: dict[str, Json], written: WrittenKeys | None = None
) -> dict[str, Json]:
    """Return the configuration with the keys of its sections as they are defined.

    `written` gets the keys that are written in another way. For editors and clouds, which resolve
    fragments and leave attributes to the machine.
    """

    def find_inner(at: Pointer, _: Mapping[str, Json], key: str) -> KeyShape | None:
        return _find_resource_shape(at, key)

    names = KeyNames(written or WrittenKeys(), lambda _: None, find_inner)
    return _apply(names, value, _machine_shape(_CLOUD_KEYS))


def _apply(names: KeyNames, value: dict[str, Json], shape: KeyShape | None) -> dict[str, Json]:
    assert shape is not None  # a machine has no unknown sections
    named = names.apply(value, shape, ())
    assert isinstance(named, dict)
    return named


def _find_resource_shape(at: Pointer, key: str) -> KeyShape | None:
    return _resource_shape(_RESOURCES[key]) if not at and key in _RESOURCES else None


@functools.cache
def _machine_shape(more_keys: tuple[str, ...] = ()) -> KeyShape | None:
    return shape_of(MachineConfig, more_keys=more_keys)


@functools.cache
def _resource_shape(kind: type[ResourceConfig]) -> KeyShape | None:
    return shape_of(kind, more_keys=_LEGACY_KEYS)


def _find_attributes_shape(
    kind: type[ResourceConfig], resource: Mapping[str, Json], catalog: ModelCatalog
) -> KeyShape | None:
    """Return the keys of the attributes of a resource; None for the models of modules."""
    converted = kind.convert_legacy_fields(dict(resource))
    try:
        api = parse_api(converted.get("api"))
        default = kind.model_fields["model"].default
        model = parse_model(converted["model"]) if "model" in converted else default
    except ValueError:
        return None
    schema = catalog.find(api, model)
    return _attributes_shape(schema) if schema is not None else None


@functools.cache
def _attributes_shape(schema: ModelSchema) -> KeyShape | None:
    differences = attribute_differences(schema.api, schema.model)
    aliases = {
        row.keys[0]: row.new_key
        for row in differences.values()
        if row.treatment is Treatment.RENAMED
    }
    return shape_of(schema.attributes, aliases=aliases)
