"""Check the components and services of a configuration, and build their specs."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence

from cogwork.config.check.checked_packages import CheckedPackages
from cogwork.config.check.crosscheck import ParsedResource
from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import ConfigLocation, Diagnostic, Effect
from cogwork.config.check.fix import Fix, FixKind
from cogwork.config.check.references import (
    find_references,
    find_references_in_invalid,
    replace_texts,
)
from cogwork.config.check.unsupported import warn_associated_configs
from cogwork.config.check.validator import Validator
from cogwork.config.schema import codes
from cogwork.config.schema.default_services import DEFAULT_SERVICES
from cogwork.config.schema.existing_product.lookup import (
    attribute_differences,
    section_differences,
)
from cogwork.config.schema.fields import (
    Attributes,
    Dependency,
    ExistingFile,
    IgnoredValue,
    parse_api,
)
from cogwork.config.schema.machine import ComponentConfig, ResourceConfig, ServiceConfig
from cogwork.config.schema.model_catalog import ModelCatalog, ModelSchema
from cogwork.config.text.positions import Json, Pointer
from cogwork.core.errors import InvalidName
from cogwork.graph.name import REMOTE_SEPARATOR, Api, ModelName, Reference, ResourceName
from cogwork.graph.spec import Spec

RESOURCE_SECTIONS: dict[str, type[ResourceConfig]] = {
    "components": ComponentConfig,
    "services": ServiceConfig,
}
DISPENSABLE_FIELDS = frozenset({"log_configuration", "log_level"})
"""Fields that are ignored if they are invalid; the rest of the resource or module is used."""
_NO_MODEL = ModelName("", "", "")
_DISABLED = 'it is disabled in the configuration; remove "disabled" to run it'


class ResourceCheck:
    def __init__(
        self, catalog: ModelCatalog, packages: CheckedPackages, diagnostics: DiagnosticCollector
    ) -> None:
        self._catalog = catalog
        self._packages = packages
        self._diagnostics = diagnostics

    def check(self, value: Mapping[str, Json]) -> list[ParsedResource]:
        """Return the resources of a configuration, without duplicates."""
        # The same name can occur in both lists if a resource is in the wrong one.
        kept: dict[ResourceName, ParsedResource] = {}
        for section, kind in RESOURCE_SECTIONS.items():
            for at, item in self._diagnostics.list_items(section, value.get(section)):
                resource = self._check_resource(kind, item, at)
                if resource is None:
                    continue
                first = kept.setdefault(resource.name, resource)
                if first is not resource:
                    self._diagnostics.add_duplicate(
                        resource.name.name, (*at, "name"), (*first.pointer, "name")
                    )
        return list(kept.values())

    def _check_resource(
        self, kind: type[ResourceConfig], item: Json, at: Pointer
    ) -> ParsedResource | None:
        item, _ = self._packages.fill_placeholders(item, at, ("attributes",))
        config: ResourceConfig | None = self._diagnostics.validate(
            _resource_validator(kind), item, at, Effect.UNHEALTHY
        )
        if config is None:
            name = _recover_name(kind, item)
            return ParsedResource(at, name, None) if name is not None else None
        resource = ParsedResource(at, config.full_name, config)
        schema = self._catalog.find(config.api, config.model)
        if schema is None:
            resource.settings = config.model_copy(update={"log_configuration": None})
        else:
            resource.settings = self._check_attributes(resource, schema, config)
        for index, text in enumerate(config.depends_on):
            self._add_dependency(resource.needs, text, None, (*at, "depends_on", index))
        warn_associated_configs(config, at, self._diagnostics)
        return resource

    def _check_attributes(
        self, resource: ParsedResource, schema: ModelSchema, config: ResourceConfig
    ) -> Attributes | None:
        at = (*resource.pointer, "attributes")
        attributes: Attributes | None = self._diagnostics.validate(
            _attributes_validator(schema.attributes, schema.api, schema.model),
            config.attributes,
            at,
            Effect.UNHEALTHY,
        )
        found = (
            find_references(attributes, at)
            if attributes is not None
            else find_references_in_invalid(schema.attributes, config.attributes, at)
        )
        paths: dict[Pointer, str] = {}
        for mention in found:
            if isinstance(mention.marker, ExistingFile):
                path = self._packages.require_file(
                    mention.text, mention.pointer, or_folder=mention.marker.or_folder
                )
                if path != mention.text:
                    paths[mention.pointer] = path
            else:
                kind = resource.needs if isinstance(mention.marker, Dependency) else resource.wants
                self._add_dependency(kind, mention.text, mention.marker.api, mention.pointer)
        if attributes is not None:
            for ignored in attributes.ignored_values(config.attributes):
                self._diagnostics.record(_describe_ignored(ignored, (*at, *ignored.path)))
        return replace_texts(attributes, at, paths) if paths else attributes

    def _add_dependency(
        self, kind: dict[Reference, Pointer], text: str, api: str | None, at: Pointer
    ) -> None:
        try:
            reference = Reference.parse(text)
        except InvalidName as error:
            self._diagnostics.add(codes.BAD_NAME, str(error), at, Effect.UNHEALTHY)
            return
        if api is not None and reference.api is None:
            reference = Reference(reference.short, Api.parse(api))
        kind.setdefault(reference, at)


def _describe_ignored(ignored: IgnoredValue, at: Pointer) -> Diagnostic:
    fix = None
    if ignored.is_removable:
        fix = Fix(FixKind.REMOVE, at)
    elif ignored.replacement is not None:
        fix = Fix(FixKind.REPLACE, at, json.dumps(ignored.replacement))
    location = ConfigLocation(at)
    return Diagnostic(
        codes.IGNORED_VALUE, ignored.message, location, Effect.IGNORED, ignored.hint, fix=fix
    )


def build_specs(
    resources: Sequence[ParsedResource], faults: Mapping[Pointer, str], remotes: Sequence[str] = ()
) -> tuple[Spec, ...]:
    """Return the specs of the graph.

    `faults` has the reasons why resources cannot run, by their JSON pointers. `remotes` are the
    names of the configured remotes.
    """
    here = {name.short for name in (*DEFAULT_SERVICES, *(each.name for each in resources))}

    def add_remote(reference: Reference) -> Reference:
        # With several remotes, the name must say which one: otherwise, it would depend on the
        # connections which machine a resource moves.
        is_plain = REMOTE_SEPARATOR not in reference.short
        if len(remotes) == 1 and is_plain and reference.short not in here:
            return Reference(f"{remotes[0]}{REMOTE_SEPARATOR}{reference.short}", reference.api)
        return reference

    return tuple(
        Spec(
            resource.name,
            resource.config.model if resource.config else _NO_MODEL,
            resource.settings,
            tuple(map(add_remote, resource.needs)),
            tuple(map(add_remote, resource.wants)),
            _DISABLED if _is_disabled(resource) else faults.get(resource.pointer),
            json.dumps(resource.config.attributes, sort_keys=True) if resource.config else "",
        )
        for resource in resources
    )


def _is_disabled(resource: ParsedResource) -> bool:
    return resource.config is not None and resource.config.disabled


@functools.cache
def _resource_validator(kind: type[ResourceConfig]) -> Validator:
    return Validator(kind, DISPENSABLE_FIELDS, section_differences(f"{kind.kind}s"))


@functools.cache
def _attributes_validator(kind: type[Attributes], api: Api, model: ModelName) -> Validator:
    return Validator(kind, differences=attribute_differences(api, model))


def _recover_name(kind: type[ResourceConfig], item: Json) -> ResourceName | None:
    """Return the name of an invalid resource, so that its node can report the fault."""
    if not isinstance(item, dict):
        return None
    converted = kind.convert_legacy_fields(item)
    name = converted.get("name", kind.model_fields["name"].default)
    try:
        api = parse_api(converted.get("api"))
    except ValueError:
        return None
    return ResourceName(api, name) if isinstance(name, str) and name else None
