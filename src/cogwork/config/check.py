"""Check a whole configuration: report every fault at once and keep the parts that are valid."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from pydantic import Strict

from cogwork.config import codes
from cogwork.config.cloud import CloudConfig
from cogwork.config.crosscheck import ParsedResource, cross_check
from cogwork.config.diagnostic_collector import DiagnosticCollector
from cogwork.config.diagnostics import (
    Diagnostic,
    Effect,
    Quote,
    quote_json,
)
from cogwork.config.fields import Attributes, ExistingFile, Needs, parse_api
from cogwork.config.load_context import LoadContext
from cogwork.config.model_catalog import ModelSchema
from cogwork.config.module import ModuleConfig
from cogwork.config.packages import (
    find_expected_paths,
    is_inside,
    locate_packages,
    warn_missing_packages,
)
from cogwork.config.placeholders import PackagePath, fill_placeholders
from cogwork.config.positions import Json, Pointer
from cogwork.config.protection import refuse_incomplete
from cogwork.config.references import find_references, find_references_in_invalid
from cogwork.config.schema import (
    ComponentConfig,
    MachineConfig,
    PackageConfig,
    ResourceConfig,
    ServiceConfig,
)
from cogwork.config.unsupported import warn_associated_configs, warn_unsupported_sections
from cogwork.config.validator import Validator
from cogwork.core.errors import InvalidName
from cogwork.graph.name import Api, ModelName, Reference, ResourceName
from cogwork.graph.spec import Spec

_CRITICAL_SECTIONS = frozenset({"cloud", "network", "auth"})
_DISPENSABLE_FIELDS = frozenset({"log_configuration", "log_level"})
_RESOURCE_SECTIONS: dict[str, type[ResourceConfig]] = {
    "components": ComponentConfig,
    "services": ServiceConfig,
}
_NO_MODEL = ModelName("", "", "")
_DISABLED = 'it is disabled in the configuration; remove "disabled" to run it'


@dataclass(frozen=True, slots=True)
class CheckResult:
    config: MachineConfig
    specs: tuple[Spec, ...]
    diagnostics: tuple[Diagnostic, ...]
    resource_count: int = 0
    """Number of resources that the file lists, valid or not."""
    omitted_count: int = 0
    """Number of diagnostics beyond those that are kept."""
    all_keys_compared: bool = True
    """False if an unknown key may be a misspelled secret that no diagnostic reports."""
    resource_pointers: Mapping[ResourceName, Pointer] = field(default_factory=dict)
    missing_files: Mapping[Pointer, str] = field(default_factory=dict)
    """Why resources and modules cannot run at present: the missing file, by their pointer."""
    module_pointers: Sequence[Pointer] = ()
    """The pointers of the modules, in the order of `config.modules`."""
    process_pointers: Sequence[Pointer] = ()
    """The pointers of the processes, in the order of `config.processes`."""
    package_users: Mapping[Pointer, frozenset[str]] = field(default_factory=dict)
    """The names of the packages to which a resource, module or process refers, by its pointer."""
    present_packages: frozenset[str] = frozenset()
    """The names of the packages that are on this computer."""

    @property
    def is_refused(self) -> bool:
        return any(found.effect is Effect.REFUSED for found in self.diagnostics)


def check(
    value: Json,
    context: LoadContext,
    quote: Quote = quote_json,
    scrub: Callable[[str], str] = str,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> CheckResult:
    """Check a parsed configuration.

    `quote` formats a value for a message, and `scrub` removes secrets from messages. Raises
    CheckCancelled once `is_cancelled` returns true.
    """
    return _Checker(context, DiagnosticCollector(context, quote, scrub, is_cancelled)).run(value)


class _Checker:
    def __init__(self, context: LoadContext, collector: DiagnosticCollector) -> None:
        self._context = context
        self._diagnostics = collector
        self._cloud: CloudConfig | None = None
        self._package_paths: dict[str, PackagePath] = {}
        self._present_packages: frozenset[str] = frozenset()
        self._expected_paths: frozenset[str] = frozenset()
        """Directories of packages that the machine will get."""
        self._package_users: dict[Pointer, set[str]] = {}
        self._item_pointers: dict[str, list[Pointer]] = {}

    def run(self, value: Json) -> CheckResult:
        if not isinstance(value, dict):
            self._diagnostics.add(
                codes.WRONG_TYPE, "expected an object at the top level", (), Effect.REFUSED
            )
            return self._build_result(MachineConfig.model_construct(), (), 0)
        self._report_unknown_sections(value)
        parts = {
            section.field: part
            for name, section in _section_specs().items()
            if (part := self._check_section(section, value.get(name))) is not None
        }
        refuse_incomplete(value, self._diagnostics)
        resources = self._check_resources(value)
        for section in _RESOURCE_SECTIONS:
            parts[section] = [r.config for r in resources if r.config and r.pointer[0] == section]
        # Each part has already been validated separately.
        config = MachineConfig.model_construct(**parts)
        cross_check(
            config, resources, self._item_pointers, self._diagnostics, self._context.catalog
        )
        warn_unsupported_sections(config, self._diagnostics)
        entries = sum(
            len(listed)
            for name in _RESOURCE_SECTIONS
            if isinstance(listed := value.get(name), list)
        )
        return self._build_result(config, resources, entries)

    def _build_result(
        self, config: MachineConfig, resources: Sequence[ParsedResource], entries: int
    ) -> CheckResult:
        found = self._diagnostics
        return CheckResult(
            config,
            self._build_specs(resources),
            found.diagnostics,
            entries,
            found.omitted,
            found.all_keys_compared,
            {resource.name: resource.pointer for resource in resources},
            found.missing_files,
            self._item_pointers.get("modules", ()),
            self._item_pointers.get("processes", ()),
            {at: frozenset(names) for at, names in self._package_users.items() if names},
            self._present_packages,
        )

    def _report_unknown_sections(self, value: Mapping[str, Json]) -> None:
        known = _section_specs().keys() | _RESOURCE_SECTIONS.keys()
        for key in value:
            if key not in known:
                self._diagnostics.add(
                    codes.UNKNOWN_KEY,
                    f'unknown key "{key}"',
                    (key,),
                    Effect.IGNORED,
                    at_key=True,
                    hint=self._diagnostics.suggest_key(key, known),
                )

    def _check_section(self, section: _SectionSpec, value: Json) -> Any:
        """Return the validated section without its invalid items, or None if it is unusable."""
        if value is None:
            return None
        if not section.is_list:
            effect = Effect.REFUSED if section.name in _CRITICAL_SECTIONS else Effect.IGNORED
            checked = self._diagnostics.validate(section.validator, value, (section.name,), effect)
            if isinstance(checked, CloudConfig):
                self._cloud = checked
            return checked
        usable = [
            (at, checked)
            for at, item in self._list_items(section.name, value)
            if (checked := self._check_item(section, item, at)) is not None
        ]
        kept = self._drop_duplicates(usable)
        self._item_pointers[section.name] = [at for at, _ in kept]
        items = [item for _, item in kept]
        if section.name == "packages":
            self._locate_packages(items, self._item_pointers[section.name])
        return items

    def _locate_packages(self, packages: list[PackageConfig], pointers: list[Pointer]) -> None:
        paths = self._package_paths = locate_packages(packages, self._context.home)
        present = self._present_packages = frozenset(
            name for name, each in paths.items() if self._diagnostics.has_directory(each.path)
        )
        warn_missing_packages(packages, pointers, paths, present, self._cloud, self._diagnostics)
        self._expected_paths = find_expected_paths(packages, paths, present, self._cloud)

    def _check_item(self, section: _SectionSpec, item: Json, at: Pointer) -> Any:
        is_complete = True
        if section.name == "modules":
            item, _ = self._fill_placeholders(item, at, ("executable_path", "env"))
        elif section.name == "processes":
            keys = ("name", "args", "cwd", "env")
            item, is_complete = self._fill_placeholders(item, at, keys, Effect.IGNORED)
        checked = self._diagnostics.validate(section.validator, item, at, Effect.IGNORED)
        if isinstance(checked, ModuleConfig):
            self._check_module(checked, at)
        # A command with an unresolved placeholder could do anything.
        return checked if is_complete else None

    def _check_module(self, module: ModuleConfig, at: Pointer) -> None:
        self._check_executable(module, at)
        if module.tcp_mode:
            self._diagnostics.add(
                codes.OPEN_MODULE,
                f'every local process can call module "{module.name}"',
                (*at, "tcp_mode"),
                Effect.IGNORED,
                hint='remove "tcp_mode" unless the module cannot use a Unix socket',
            )

    def _check_executable(self, module: ModuleConfig, at: Pointer) -> None:
        path = module.executable_path
        if not path:
            self._diagnostics.add(
                codes.NO_REGISTRY,
                f'module "{module.name}" has no "executable_path": only a cloud knows where a '
                "module of the registry is",
                at,
                Effect.UNHEALTHY,
                hint='set "executable_path" to its program or archive, or join a cloud that has it',
            )
        elif not path.startswith(("/", "~", "${")):
            self._diagnostics.add(
                codes.BAD_VALUE,
                f'"{path}" is not an absolute path',
                (*at, module.program_key),
                Effect.UNHEALTHY,
                hint='write the whole path, such as "/opt/acme/run.sh"',
            )
        else:
            self._require_file(path, (*at, module.program_key))

    def _list_items(self, name: str, value: Json) -> list[tuple[Pointer, Json]]:
        if value is None:
            return []
        if not isinstance(value, list):
            self._diagnostics.add(
                codes.WRONG_TYPE, f'"{name}" must be a list', (name,), Effect.IGNORED
            )
            return []
        return [((name, index), item) for index, item in enumerate(value)]

    def _drop_duplicates(self, items: list[tuple[Pointer, Any]]) -> list[tuple[Pointer, Any]]:
        seen: dict[str, Pointer] = {}
        kept = []
        for at, item in items:
            key = "id" if hasattr(item, "id") else "name"
            name = getattr(item, key, None)
            if name in seen:
                self._diagnostics.add_duplicate(name, (*at, key), (*seen[name], key))
                continue
            if name is not None:
                seen[name] = at
            kept.append((at, item))
        return kept

    def _check_resources(self, value: Mapping[str, Json]) -> list[ParsedResource]:
        # The same name can occur in both lists if a resource is in the wrong one.
        kept: dict[ResourceName, ParsedResource] = {}
        for section, kind in _RESOURCE_SECTIONS.items():
            for at, item in self._list_items(section, value.get(section)):
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
        item, _ = self._fill_placeholders(item, at, ("attributes",))
        config: ResourceConfig | None = self._diagnostics.validate(
            _resource_validator(kind), item, at, Effect.UNHEALTHY
        )
        if config is None:
            name = _recover_name(kind, item)
            return ParsedResource(at, name, None) if name is not None else None
        resource = ParsedResource(at, config.full_name, config)
        schema = self._context.catalog.find(config.api, config.model)
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
            _attributes_validator(schema.attributes), config.attributes, at, Effect.UNHEALTHY
        )
        found = (
            find_references(attributes, at)
            if attributes is not None
            else find_references_in_invalid(schema.attributes, config.attributes, at)
        )
        for mention in found:
            if isinstance(mention.marker, ExistingFile):
                self._require_file(mention.text, mention.pointer)
            else:
                kind = resource.needs if isinstance(mention.marker, Needs) else resource.wants
                self._add_dependency(kind, mention.text, mention.marker.api, mention.pointer)
        return attributes

    def _require_file(self, path: str, at: Pointer) -> None:
        if not is_inside(path, self._expected_paths):
            self._diagnostics.require_file(path, at, Effect.UNHEALTHY)

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

    def _fill_placeholders(
        self,
        item: Json,
        at: Pointer,
        keys: tuple[str, ...],
        effect: Effect = Effect.UNHEALTHY,
    ) -> tuple[Json, bool]:
        """Return the item with the placeholders under `keys` filled in, and whether all could be.

        `effect`: that of one that cannot be filled in.
        """
        is_complete = True
        if not isinstance(item, dict):
            return item, is_complete
        for key in keys:
            if key not in item:
                continue
            value, faults = fill_placeholders(
                item[key],
                self._package_paths,
                self._context.environment,
                self._package_users.setdefault(at, set()).add,
            )
            if value is not item[key]:
                item = {**item, key: value}
            for fault in faults:
                is_complete = False
                self._diagnostics.add(
                    codes.BAD_PLACEHOLDER, fault.message, (*at, key, *fault.pointer), effect
                )
        return item, is_complete

    def _build_specs(self, resources: Iterable[ParsedResource]) -> tuple[Spec, ...]:
        faults = self._diagnostics.static_faults()
        return tuple(
            Spec(
                resource.name,
                resource.config.model if resource.config else _NO_MODEL,
                resource.settings,
                tuple(resource.needs),
                tuple(resource.wants),
                _DISABLED if _is_disabled(resource) else faults.get(resource.pointer),
                json.dumps(resource.config.attributes, sort_keys=True) if resource.config else "",
            )
            for resource in resources
        )


def _is_disabled(resource: ParsedResource) -> bool:
    return resource.config is not None and resource.config.disabled


@dataclass(frozen=True, slots=True)
class _SectionSpec:
    name: str
    field: str
    validator: Validator
    is_list: bool


@functools.cache
def _section_specs() -> dict[str, _SectionSpec]:
    """Return every section except the resources: the cloud, its packages, which modules use, and
    the others."""
    sections = {}
    first = ("packages", "cloud")
    fields = sorted(
        MachineConfig.model_fields.items(),
        key=lambda item: -first.index(item[0]) - 1 if item[0] in first else 0,
    )
    for attribute, info in fields:
        if attribute not in _RESOURCE_SECTIONS:
            name = info.alias or attribute
            is_list = get_origin(info.annotation) is list
            kind = get_args(info.annotation)[0] if is_list else info.annotation
            if kind in (bool, str):
                kind = Annotated[kind, Strict()]
            sections[name] = _SectionSpec(
                name, attribute, Validator(kind, _DISPENSABLE_FIELDS), is_list
            )
    return sections


@functools.cache
def _resource_validator(kind: type[ResourceConfig]) -> Validator:
    return Validator(kind, _DISPENSABLE_FIELDS)


@functools.cache
def _attributes_validator(kind: type[Attributes]) -> Validator:
    return Validator(kind)


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
