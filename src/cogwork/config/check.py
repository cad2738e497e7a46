"""Judges a whole configuration: every fault at once, and what can be used of the rest."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from pydantic import Strict

from cogwork.config import codes
from cogwork.config.catalogue import Shape
from cogwork.config.crosscheck import Resource, cross_check
from cogwork.config.diagnose import (
    Diagnostic,
    Effect,
    Quote,
    quote_plainly,
)
from cogwork.config.fields import Attributes, ExistingFile, Needs, read_api
from cogwork.config.findings import Findings
from cogwork.config.module import ModuleConfig
from cogwork.config.placeholders import PackagePath, fill
from cogwork.config.positions import Json, Pointer
from cogwork.config.references import mentions, mentions_of_invalid
from cogwork.config.schema import (
    ComponentConfig,
    MachineConfig,
    PackageConfig,
    ResourceConfig,
    ServiceConfig,
)
from cogwork.config.surroundings import Surroundings
from cogwork.config.validate import Validator
from cogwork.core.errors import InvalidName
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.spec import Spec

_REFUSING = frozenset({"cloud", "network", "auth"})
_DISPENSABLE = frozenset({"log_configuration", "log_level"})
_RESOURCES: dict[str, type[ResourceConfig]] = {
    "components": ComponentConfig,
    "services": ServiceConfig,
}
_NO_MODEL = ModelName("", "", "")


@dataclass(frozen=True, slots=True)
class Checked:
    config: MachineConfig
    specs: tuple[Spec, ...]
    diagnostics: tuple[Diagnostic, ...]
    entries: int = 0
    """How many resources the file lists, sound or not."""

    @property
    def refused(self) -> bool:
        return any(found.effect is Effect.REFUSED for found in self.diagnostics)


def check(
    value: Json,
    surroundings: Surroundings,
    quote: Quote = quote_plainly,
    scrub: Callable[[str], str] = str,
) -> Checked:
    """Scrubbing takes out of a message what it may not say."""
    return _Check(surroundings, Findings(surroundings, quote, scrub)).run(value)


class _Check:
    def __init__(self, surroundings: Surroundings, findings: Findings) -> None:
        self._around = surroundings
        self._findings = findings
        self._packages: dict[str, PackagePath] = {}
        self._places: dict[str, list[Pointer]] = {}

    def run(self, value: Json) -> Checked:
        if not isinstance(value, dict):
            self._findings.add(
                codes.WRONG_TYPE, "expected an object at the top", (), Effect.REFUSED
            )
            return Checked(MachineConfig.model_construct(), (), self._findings.diagnostics)
        self._unknown_sections(value)
        parts = {
            section.field: part
            for name, section in _sections().items()
            if (part := self._section(section, value.get(name))) is not None
        }
        resources = self._resources(value)
        for section in _RESOURCES:
            parts[section] = [r.config for r in resources if r.config and r.at[0] == section]
        # Each part is validated already, on its own.
        config = MachineConfig.model_construct(**parts)
        cross_check(config, resources, self._places, self._findings, self._around.catalogue)
        entries = sum(
            len(listed) for name in _RESOURCES if isinstance(listed := value.get(name), list)
        )
        return Checked(config, self._specs(resources), self._findings.diagnostics, entries)

    def _unknown_sections(self, value: Mapping[str, Json]) -> None:
        known = _sections().keys() | _RESOURCES.keys()
        for key in value:
            if key not in known:
                self._findings.add(
                    codes.UNKNOWN_KEY,
                    f'unknown key "{key}"',
                    (key,),
                    Effect.IGNORED,
                    at_key=True,
                    hint=self._findings.guess(key, known),
                )

    def _section(self, section: _Section, value: Json) -> Any:
        """The validated section, without the items that cannot be used; None if nothing can."""
        if value is None:
            return None
        if not section.is_list:
            effect = Effect.REFUSED if section.name in _REFUSING else Effect.IGNORED
            return self._findings.validated(section.validator, value, (section.name,), effect)
        usable = [
            (at, checked)
            for at, item in self._items(section.name, value)
            if (checked := self._item(section, item, at)) is not None
        ]
        kept = self._without_duplicates(usable)
        self._places[section.name] = [at for at, _ in kept]
        if section.name == "packages":
            self._packages = _package_paths((item for _, item in kept), self._around.home)
        return [item for _, item in kept]

    def _item(self, section: _Section, item: Json, at: Pointer) -> Any:
        if section.name == "modules":
            item = self._filled(item, at, ("executable_path", "env"))
        checked = self._findings.validated(section.validator, item, at, Effect.IGNORED)
        if isinstance(checked, ModuleConfig) and checked.type == "local":
            self._findings.file_must_exist(
                checked.executable_path, (*at, "executable_path"), Effect.UNHEALTHY
            )
        return checked

    def _items(self, name: str, value: Json) -> list[tuple[Pointer, Json]]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._findings.add(codes.WRONG_TYPE, f'"{name}" is a list', (name,), Effect.IGNORED)
            return []
        return [((name, index), item) for index, item in enumerate(value)]

    def _without_duplicates(self, items: list[tuple[Pointer, Any]]) -> list[tuple[Pointer, Any]]:
        seen: dict[str, Pointer] = {}
        kept = []
        for at, item in items:
            key = "id" if hasattr(item, "id") else "name"
            name = getattr(item, key, None)
            if name in seen:
                self._findings.duplicate(name, (*at, key), (*seen[name], key))
                continue
            if name is not None:
                seen[name] = at
            kept.append((at, item))
        return kept

    def _resources(self, value: Mapping[str, Json]) -> list[Resource]:
        # One name may also be in both lists, when one of the two is in the wrong list.
        kept: dict[ResourceName, Resource] = {}
        for section, kind in _RESOURCES.items():
            for at, item in self._items(section, value.get(section)):
                resource = self._resource(kind, item, at)
                if resource is None:
                    continue
                first = kept.setdefault(resource.name, resource)
                if first is not resource:
                    self._findings.duplicate(resource.name.name, (*at, "name"), (*first.at, "name"))
        return list(kept.values())

    def _resource(self, kind: type[ResourceConfig], item: Json, at: Pointer) -> Resource | None:
        item = self._filled(item, at, ("attributes",))
        config: ResourceConfig | None = self._findings.validated(
            _resource_validator(kind), item, at, Effect.UNHEALTHY
        )
        if config is None:
            name = _salvaged_name(kind, item)
            return Resource(at, name, None) if name is not None else None
        resource = Resource(at, config.full_name, config)
        shape = self._around.catalogue.find(config.api, config.model)
        if shape is None:
            resource.settings = config.model_copy(update={"log_configuration": None})
        else:
            resource.settings = self._attributes(resource, shape, config)
        for index, text in enumerate(config.depends_on):
            self._depends(resource.needs, text, None, (*at, "depends_on", index))
        return resource

    def _attributes(
        self, resource: Resource, shape: Shape, config: ResourceConfig
    ) -> Attributes | None:
        at = (*resource.at, "attributes")
        attributes: Attributes | None = self._findings.validated(
            _attributes_validator(shape.attributes), config.attributes, at, Effect.UNHEALTHY
        )
        found = (
            mentions(attributes, at)
            if attributes is not None
            else mentions_of_invalid(shape.attributes, config.attributes, at)
        )
        for mention in found:
            if isinstance(mention.marker, ExistingFile):
                self._findings.file_must_exist(mention.text, mention.pointer, Effect.UNHEALTHY)
            else:
                kind = resource.needs if isinstance(mention.marker, Needs) else resource.wants
                self._depends(kind, mention.text, mention.marker.api, mention.pointer)
        return attributes

    def _depends(
        self, kind: dict[Reference, Pointer], text: str, api: str | None, at: Pointer
    ) -> None:
        try:
            reference = Reference.parse(text)
        except InvalidName as error:
            self._findings.add(codes.BAD_NAME, str(error), at, Effect.UNHEALTHY)
            return
        if api is not None and reference.api is None:
            reference = Reference(reference.short, Api.parse(api))
        kind.setdefault(reference, at)

    def _filled(self, item: Json, at: Pointer, keys: tuple[str, ...]) -> Json:
        """The item with the placeholders filled in the members that may have them."""
        if not isinstance(item, dict):
            return item
        for key in keys:
            if key not in item:
                continue
            value, faults = fill(item[key], self._packages, self._around.environment)
            if value is not item[key]:
                item = {**item, key: value}
            for fault in faults:
                self._findings.add(
                    codes.BAD_PLACEHOLDER,
                    fault.message,
                    (*at, key, *fault.pointer),
                    Effect.UNHEALTHY,
                )
        return item

    def _specs(self, resources: Iterable[Resource]) -> tuple[Spec, ...]:
        faults = self._findings.static_faults()
        return tuple(
            Spec(
                resource.name,
                resource.config.model if resource.config else _NO_MODEL,
                resource.settings,
                tuple(resource.needs),
                tuple(resource.wants),
                faults.get(resource.at),
                json.dumps(resource.config.attributes, sort_keys=True) if resource.config else "",
            )
            for resource in resources
        )


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    field: str
    validator: Validator
    is_list: bool


@functools.cache
def _sections() -> dict[str, _Section]:
    """All but the resources; packages first, because modules refer to them."""
    sections = {}
    fields = sorted(MachineConfig.model_fields.items(), key=lambda item: item[0] != "packages")
    for field, info in fields:
        if field not in _RESOURCES:
            name = info.alias or field
            is_list = get_origin(info.annotation) is list
            kind = get_args(info.annotation)[0] if is_list else info.annotation
            if kind in (bool, str):
                kind = Annotated[kind, Strict()]
            sections[name] = _Section(name, field, Validator(kind, _DISPENSABLE), is_list)
    return sections


@functools.cache
def _resource_validator(kind: type[ResourceConfig]) -> Validator:
    return Validator(kind, _DISPENSABLE)


@functools.cache
def _attributes_validator(kind: type[Attributes]) -> Validator:
    return Validator(kind)


def _package_paths(packages: Iterable[PackageConfig], home: Path) -> dict[str, PackagePath]:
    return {
        package.name: PackagePath(
            package.type,
            str(
                home
                / "packages"
                / "data"
                / package.type
                / f"{package.package.replace('/', '-')}-{package.version.replace('.', '_')}"
            ),
        )
        for package in packages
    }


def _salvaged_name(kind: type[ResourceConfig], item: Json) -> ResourceName | None:
    """The name of a resource that is broken otherwise, so that its node can say why."""
    if not isinstance(item, dict):
        return None
    spelled = kind.spelled_out(item)
    name = spelled.get("name", kind.model_fields["name"].default)
    try:
        api = read_api(spelled.get("api"))
    except ValueError:
        return None
    return ResourceName(api, name) if isinstance(name, str) and name else None
