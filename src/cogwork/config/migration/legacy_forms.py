"""The older forms of resources, which still work, and their short forms."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping

from cogwork.config.migration.source_text import SourceText
from cogwork.config.migration.step import Step, StepKind
from cogwork.config.schema.fields import parse_api, parse_model
from cogwork.config.schema.machine import ComponentConfig, ResourceConfig, ServiceConfig
from cogwork.config.text.json_edit import Edit, Remove, Rename, SetValue
from cogwork.config.text.positions import Json, Pointer

_SECTIONS: dict[str, type[ResourceConfig]] = {
    "components": ComponentConfig,
    "services": ServiceConfig,
}
_LEGACY_API = ("namespace", "type")
_CURRENT_FORM = "this is the current form"


def find_legacy_forms(source: SourceText) -> Iterator[Step]:
    if not isinstance(source.value, dict):
        return
    for section, kind in _SECTIONS.items():
        listed = source.value.get(section)
        for index, item in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(item, dict):
                at = (section, index)
                yield from _shorten_api(source, at, item, kind)
                yield from _shorten_model(source, at, item)


def _shorten_api(
    source: SourceText, at: Pointer, item: Mapping[str, Json], kind: type[ResourceConfig]
) -> Iterator[Step]:
    legacy = [key for key in _LEGACY_API if key in item]
    if item.get("api") is not None:
        for key in legacy:
            place = (*at, key)
            yield Step(
                StepKind.REMOVED,
                place,
                (Remove(place),),
                source.show_entry(place),
                "",
                '"api" is used instead',
            )
        yield from _replace_object(source, (*at, "api"), item["api"], _format_api)
        return
    if not isinstance(item.get("type"), str) or any(
        source.has_variable((*at, key)) for key in legacy
    ):
        return
    api = _format_api(kind.convert_legacy_fields(dict(item))["api"])
    if api is None:
        return
    place = (*at, "type")
    edits: list[Edit] = [Rename(place, "api"), SetValue(place, api)]
    edits += [Remove((*at, key)) for key in ("namespace", "api") if key in item]
    old = ", ".join(source.show_entry((*at, key)) for key in legacy)
    new = f'"api": {json.dumps(api)}'
    yield Step(StepKind.REPLACED, place, tuple(edits), old, new, _CURRENT_FORM)


def _shorten_model(source: SourceText, at: Pointer, item: Mapping[str, Json]) -> Iterator[Step]:
    yield from _replace_object(source, (*at, "model"), item.get("model"), _format_model)


def _replace_object(
    source: SourceText, at: Pointer, value: Json, shorten: Callable[[Json], str | None]
) -> Iterator[Step]:
    """Replace an object with the parts of a name by the name."""
    short = shorten(value) if isinstance(value, dict) and not source.has_variable(at) else None
    if short is not None:
        edits = (SetValue(at, short),)
        old, new = source.show_entry(at), json.dumps(short)
        yield Step(StepKind.REPLACED, at, edits, old, new, _CURRENT_FORM)


def _format_api(value: Json) -> str | None:
    try:
        return str(parse_api(value))
    except ValueError:
        return None


def _format_model(value: Json) -> str | None:
    try:
        return parse_model(value).short
    except ValueError:
        return None
