"""Check a whole configuration: report every fault at once and keep the parts that are valid."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, get_args, get_origin

from pydantic import Strict

from cogwork.config.check.checked_packages import CheckedPackages
from cogwork.config.check.crosscheck import ParsedResource, cross_check
from cogwork.config.check.diagnostic_collector import DiagnosticCollector
from cogwork.config.check.diagnostics import Diagnostic, Effect, Quote, quote_json
from cogwork.config.check.key_shapes import name_keys
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.not_taken_over import not_taken_over
from cogwork.config.check.protection import refuse_incomplete
from cogwork.config.check.references import find_references, replace_texts
from cogwork.config.check.resource_check import (
    DISPENSABLE_FIELDS,
    RESOURCE_SECTIONS,
    ResourceCheck,
    build_specs,
)
from cogwork.config.check.unsupported import warn_associated_configs, warn_unsupported_sections
from cogwork.config.check.validator import Validator, unknown_key
from cogwork.config.schema import codes
from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.schema.existing_product.lookup import (
    find_builtin_instead,
    find_difference,
    section_differences,
)
from cogwork.config.schema.machine import MachineConfig, RemoteConfig
from cogwork.config.schema.module import ModuleConfig
from cogwork.config.schema.network import NetworkConfig
from cogwork.config.text.positions import Json, Pointer
from cogwork.graph.name import ResourceName
from cogwork.graph.spec import Spec

_CRITICAL_SECTIONS = frozenset({"cloud", "network", "auth"})


@dataclass(frozen=True, slots=True)
class CheckResult:
    config: MachineConfig
    specs: tuple[Spec, ...]
    diagnostics: tuple[Diagnostic, ...]
    resource_count: int = 0
    """The number of resources that the file lists, valid or not."""
    omitted_count: int = 0
    """The number of diagnostics that were dropped because the limit was reached."""
    all_keys_compared: bool = True
    """False if an unknown key was not compared with the known keys, because the limit of
    comparisons was reached. The key may be a misspelled secret."""
    resource_pointers: Mapping[ResourceName, Pointer] = field(default_factory=dict)
    missing_files: Mapping[Pointer, str] = field(default_factory=dict)
    """The message about a missing file, by the JSON pointer of the resource or module that requires
    it."""
    module_pointers: Sequence[Pointer] = ()
    """The JSON pointers of the modules, in the order of `config.modules`."""
    process_pointers: Sequence[Pointer] = ()
    """The JSON pointers of the processes, in the order of `config.processes`."""
    package_users: Mapping[Pointer, frozenset[str]] = field(default_factory=dict)
    """The names of the packages that each resource, module or process refers to, by JSON
    pointer."""
    present_packages: frozenset[str] = frozenset()
    """The names of the packages that are installed on this computer."""

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

    `quote` formats a value for a message, and `scrub` removes secrets from messages. Raise
    CheckCancelled once `is_cancelled` returns true.
    """
    return _Checker(context, DiagnosticCollector(context, quote, scrub, is_cancelled)).run(value)


class _Checker:
    def __init__(self, context: LoadContext, collector: DiagnosticCollector) -> None:
        self._context = context
        self._diagnostics = collector
        self._cloud: CloudConfig | None = None
        self._packages = CheckedPackages(context, collector)
        self._item_pointers: dict[str, list[Pointer]] = {}

    def run(self, value: Json) -> CheckResult:
        if not isinstance(value, dict):
            self._diagnostics.add(
                codes.WRONG_TYPE, "expected an object at the top level", (), Effect.REFUSED
            )
            return self._build_result(MachineConfig.model_construct(), (), 0)
        catalog, found = self._context.catalog, self._diagnostics
        value = name_keys(value, catalog, found.written_keys, found.record)
        self._report_unknown_sections(value)
        parts = {
            section.field: part
            for name, section in _section_specs().items()
            if (part := self._check_section(section, value.get(name))) is not None
        }
        refuse_incomplete(value, self._diagnostics)
        resources = ResourceCheck(catalog, self._packages, self._diagnostics).check(value)
        for section in RESOURCE_SECTIONS:
            parts[section] = [r.config for r in resources if r.config and r.pointer[0] == section]
        # Build the object without validation: each section has already been validated.
        config = MachineConfig.model_construct(**parts)
        cross_check(config, resources, self._item_pointers, self._diagnostics, catalog)
        warn_unsupported_sections(config, self._diagnostics)
        entries = sum(
            len(listed) for name in RESOURCE_SECTIONS if isinstance(listed := value.get(name), list)
        )
        return self._build_result(config, resources, entries)

    def _build_result(
        self, config: MachineConfig, resources: Sequence[ParsedResource], entries: int
    ) -> CheckResult:
        found = self._diagnostics
        in_file = found.written_keys.find_pointer
        return CheckResult(
            config,
            build_specs(resources, found.static_faults(), [each.name for each in config.remotes]),
            found.diagnostics,
            entries,
            found.omitted,
            found.all_keys_compared,
            {resource.name: in_file(resource.pointer) for resource in resources},
            {in_file(at): message for at, message in found.missing_files.items()},
            [in_file(at) for at in self._item_pointers.get("modules", ())],
            [in_file(at) for at in self._item_pointers.get("processes", ())],
            {in_file(at): names for at, names in self._packages.users.items()},
            self._packages.present,
        )

    def _report_unknown_sections(self, value: Mapping[str, Json]) -> None:
        known = _section_specs().keys() | RESOURCE_SECTIONS.keys()
        differences = section_differences("")
        for key, content in value.items():
            if key in known:
                continue
            difference = find_difference(differences, (key,))
            if difference is not None:
                self._diagnostics.record(not_taken_over(difference, content, (key,)))
            else:
                suggest = self._diagnostics.suggest_key
                self._diagnostics.record(unknown_key((key,), known, suggest))

    def _check_section(self, section: _SectionSpec, value: Json) -> Any:
        """Return the validated section without its invalid items, or None if it is unusable."""
        if value is None:
            return None
        if not section.is_list:
            effect = Effect.REFUSED if section.name in _CRITICAL_SECTIONS else Effect.IGNORED
            checked = self._diagnostics.validate(section.validator, value, (section.name,), effect)
            if isinstance(checked, CloudConfig):
                self._cloud = checked
            if isinstance(checked, NetworkConfig):
                return self._locate_files(checked)
            return checked
        usable = [
            (at, checked)
            for at, item in self._diagnostics.list_items(section.name, value)
            if (checked := self._check_item(section, item, at)) is not None
            # Disabled modules stay, so that their resources report why they do not run.
            and (isinstance(checked, ModuleConfig) or not getattr(checked, "disabled", False))
        ]
        kept = self._drop_duplicates(usable)
        self._item_pointers[section.name] = [at for at, _ in kept]
        items = [item for _, item in kept]
        if section.name == "packages":
            self._packages.locate(items, self._item_pointers[section.name], self._cloud)
        return items

    def _locate_files(self, network: NetworkConfig) -> NetworkConfig:
        paths = {
            mention.pointer: self._diagnostics.require_file(
                mention.text, mention.pointer, Effect.REFUSED
            )
            for mention in find_references(network, ("network",))
        }
        return replace_texts(network, ("network",), paths)

    def _check_item(self, section: _SectionSpec, item: Json, at: Pointer) -> Any:
        is_complete = True
        if section.name == "modules":
            item, _ = self._packages.fill_placeholders(item, at, ("executable_path", "env"))
        elif section.name == "processes":
            keys = ("name", "args", "cwd", "env")
            item, is_complete = self._packages.fill_placeholders(item, at, keys, Effect.IGNORED)
        checked = self._diagnostics.validate(section.validator, item, at, Effect.IGNORED)
        if isinstance(checked, ModuleConfig) and not checked.disabled:
            self._check_module(checked, at)
        elif isinstance(checked, RemoteConfig):
            warn_associated_configs(checked, at, self._diagnostics)
        # Drop an entry with an unresolved placeholder, because its command could do anything.
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
                f'module "{module.name}" has no "executable_path": for a registry '
                "module, only a cloud can fill it in",
                at,
                Effect.UNHEALTHY,
                hint=_advise_registry_module(module),
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
            self._packages.require_file(path, (*at, module.program_key))

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


def _advise_registry_module(module: ModuleConfig) -> str:
    builtin = find_builtin_instead(module.module_id)
    return (
        'download the module, and set "executable_path" to its program or archive; or join a cloud '
        "that has it"
        f"{f'; or use the built-in model {builtin} instead' if builtin else ''}"
    )


@dataclass(frozen=True, slots=True)
class _SectionSpec:
    name: str
    field: str
    validator: Validator
    is_list: bool


@functools.cache
def _section_specs() -> dict[str, _SectionSpec]:
    """Return all sections except the resources.

    The cloud and the packages come first, because modules use them.
    """
    sections = {}
    first = ("packages", "cloud")
    fields = sorted(
        MachineConfig.model_fields.items(),
        key=lambda item: -first.index(item[0]) - 1 if item[0] in first else 0,
    )
    for attribute, info in fields:
        if attribute not in RESOURCE_SECTIONS:
            name = info.alias or attribute
            is_list = get_origin(info.annotation) is list
            kind = get_args(info.annotation)[0] if is_list else info.annotation
            if kind in (bool, str):
                kind = Annotated[kind, Strict()]
            sections[name] = _SectionSpec(
                name,
                attribute,
                Validator(kind, DISPENSABLE_FIELDS, section_differences(name)),
                is_list,
            )
    return sections
