"""Predict the effects of a changed configuration on a running machine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from cogwork.config.check.checker import CheckResult
from cogwork.config.schema.default_services import DEFAULT_SERVICES
from cogwork.config.schema.fields import Section
from cogwork.config.schema.machine import MachineConfig, ResourceConfig
from cogwork.config.schema.model_catalog import ModelCatalog
from cogwork.graph.dry_run import DryRun, dry_run
from cogwork.graph.edges import find_candidates, group_by_short_name
from cogwork.graph.name import Reference, ResourceName
from cogwork.graph.plan import Action, Step
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec

_EFFECTS: dict[str, str] = {
    "log": "takes effect immediately",
    "debug": "takes effect immediately",
    "disable_log_deduplication": "takes effect immediately",
    "revision": "only a label",
}
NO_LIBRARIES_MISSING: Mapping[ResourceName, str] = MappingProxyType({})
_RESOURCE_SECTIONS = ("components", "services")


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A change to a section other than the resources, or to resource settings that do not require a
    rebuild."""

    section: str
    change: str
    effect: str = ""


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    dry_run: DryRun
    sections: list[SectionChange]
    changed_keys: dict[ResourceName, str]
    """The changed keys of each resource."""

    @property
    def is_empty(self) -> bool:
        return not (self.sections or self.dry_run.closing or self.dry_run.building)


def diff(old: CheckResult, new: CheckResult, catalog: ModelCatalog) -> ConfigDiff:
    offers = _OfferLookup(catalog, modules=bool(old.config.modules or new.config.modules))
    before, after = _drop_foreign_dependencies(old), _drop_foreign_dependencies(new)
    run = dry_run(before, after, offers)
    details = _changed_keys_by_name(old.config, new.config)
    kept = [
        SectionChange(str(name), f"changed ({details[name]})", "without a rebuild")
        for name in run.untouched
        if name in details
    ]
    return ConfigDiff(run, [*_section_changes(old.config, new.config), *kept], details)


def find_blocked(
    checked: CheckResult,
    catalog: ModelCatalog,
    missing_libraries: Mapping[ResourceName, str] = NO_LIBRARIES_MISSING,
    *,
    optimistic: bool = True,
) -> list[Step]:
    """Return the resources of a configuration that would not run at present, with the reasons.

    It is not known which models a module provides. So every custom model counts as provided if all
    modules can start or, if `optimistic`, if at least one can. Remotes are assumed to have every
    resource that is not configured here. `missing_libraries` has the reasons why libraries of
    resources cannot be imported.
    """
    starting = _list_startable(checked)
    enough = any(starting) if optimistic else bool(starting) and all(starting)
    offers = _OfferLookup(catalog, modules=enough)
    pointers, missing = checked.resource_pointers, checked.missing_files
    specs = (
        replace(
            spec,
            fault=spec.fault
            or missing.get(pointers.get(spec.name, ()))
            or missing_libraries.get(spec.name),
        )
        for spec in _drop_foreign_dependencies(checked)
    )
    return dry_run((), specs, offers).blocked


def _list_startable(checked: CheckResult) -> list[bool]:
    """Return, for each module, whether it is enabled and its program is installed here."""
    return [
        bool(module.executable_path) and not module.disabled and at not in checked.missing_files
        for module, at in zip(checked.config.modules, checked.module_pointers, strict=True)
    ]


def describe_outcome(change: ConfigDiff | None, *, is_refused: bool) -> str:
    """Return a summary of the resources that a machine would build, change and close.

    `change` is None if the machine rejects the new configuration or its current one.
    """
    if is_refused:
        return "the machine would reject this configuration"
    if change is None:
        return "the machine rejects its present configuration, so all of it would be built"
    return as_text(change)


def as_text(change: ConfigDiff) -> str:
    run = change.dry_run
    if change.is_empty and not run.blocked:
        return "nothing would change"
    lines: list[str] = []
    for title, groups in (("close", run.closing), ("build", run.building)):
        for number, group in enumerate(groups, 1):
            suffix = f" (group {number} of {len(groups)})" if len(groups) > 1 else ""
            lines.append(f"{title}{suffix}")
            lines += [f"  {_format_step(step, title, change.changed_keys)}" for step in group]
    if run.blocked:
        lines.append("cannot run")
        lines += [f"  {step.name}: {step.why}" for step in run.blocked]
    if change.sections:
        lines.append("settings")
        lines += [
            f"  {item.section}: {item.change}{f'; {item.effect}' if item.effect else ''}"
            for item in change.sections
        ]
    lines.append(_summarize(run))
    return "\n".join(line for line in lines if line)


def as_json(change: ConfigDiff) -> dict[str, Any]:
    run = change.dry_run

    def step(item: Step) -> dict[str, str | None]:
        return {
            "name": str(item.name),
            "action": item.action.value,
            "why": item.why,
            "changed": change.changed_keys.get(item.name),
        }

    return {
        "close": [[step(item) for item in group] for group in run.closing],
        "build": [[step(item) for item in group] for group in run.building],
        "cannot_run": [step(item) for item in run.blocked],
        "untouched": [str(name) for name in run.untouched],
        "settings": [
            {"section": item.section, "what": item.change, "how": item.effect}
            for item in change.sections
        ],
    }


class _NullProvider:
    """A provider for dry runs, which never build anything."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        raise NotImplementedError

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        raise NotImplementedError


class _OfferLookup:
    """Finds the offer for the model of a spec.

    A module is assumed to provide an unknown custom model, and to rebuild its resources when their
    configuration changes.
    """

    def __init__(self, catalog: ModelCatalog, *, modules: bool) -> None:
        self._catalog = catalog
        self._has_modules = modules
        self._provider = _NullProvider()

    def __call__(self, spec: Spec) -> Offer | Unavailable:
        schema = self._catalog.find(spec.name.api, spec.model)
        if schema is None and (spec.model.is_builtin or not self._has_modules):
            return Unavailable(f'unknown model "{spec.model.short}" for {spec.name.api}')
        return Offer(self._provider, in_place=schema is not None and schema.reconfigures)


def _drop_foreign_dependencies(checked: CheckResult) -> Iterable[Spec]:
    """Drop dependencies that are not configured here, but are default services, or may be resources
    of a remote."""
    here = group_by_short_name(spec.name for spec in checked.specs)
    defaults = group_by_short_name(DEFAULT_SERVICES)
    any_remote = bool(checked.config.remotes)

    def is_foreign(need: Reference) -> bool:
        if any_remote and need.short not in here:
            return True
        return bool(find_candidates(need, defaults)) and not find_candidates(need, here)

    return [
        replace(spec, needs=tuple(need for need in spec.needs if not is_foreign(need)))
        if any(map(is_foreign, spec.needs))
        else spec
        for spec in checked.specs
    ]


_VERBS = {
    Action.BUILD: "build",
    Action.REBUILD: "rebuild",
    Action.RECONFIGURE: "reconfigure",
}


def _format_step(step: Step, title: str, details: dict[ResourceName, str]) -> str:
    verb = "close" if title == "close" else _VERBS[step.action]
    changed = details.get(step.name)
    # Add the missing subject to a reason such as "depends on …".
    why = f"it {step.why}" if step.why.startswith("depends on ") else step.why
    return f"{step.name}: {verb}, because {why}{f' ({changed})' if changed else ''}"


def _summarize(run: DryRun) -> str:
    actions = [step.action for group in run.building for step in group]
    removed = sum(1 for group in run.closing for s in group if s.action is Action.REMOVE)
    halted = sum(1 for group in run.closing for s in group if s.action is Action.HALT)
    counts = [
        (actions.count(Action.BUILD), "built"),
        (actions.count(Action.REBUILD), "rebuilt"),
        (actions.count(Action.RECONFIGURE), "reconfigured"),
        (removed, "removed"),
        (halted, "halted"),
        (len(run.untouched), "unchanged"),
    ]
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def _section_changes(old: MachineConfig, new: MachineConfig) -> Iterable[SectionChange]:
    for name, info in MachineConfig.model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if name in _RESOURCE_SECTIONS or before == after:
            continue
        section = info.alias or name
        how = _EFFECTS.get(name, "")
        if isinstance(before, list) and name != "log":
            yield from _list_changes(section, before, after, how)
        elif isinstance(before, Section) and isinstance(after, Section):
            yield SectionChange(section, f"changed ({_changed_keys(before, after)})", how)
        elif isinstance(after, bool):
            yield SectionChange(section, "on" if after else "off", how)
        else:
            what = "added" if not before else "removed" if not after else "changed"
            yield SectionChange(section, what, how)


def _list_changes(
    section: str, before: list[Any], after: list[Any], how: str
) -> Iterable[SectionChange]:
    old = {_key(item): item for item in before}
    new = {_key(item): item for item in after}
    for key in old:
        if key not in new:
            yield SectionChange(section, f'"{key}" removed', how)
    for key, item in new.items():
        if key not in old:
            yield SectionChange(section, f'"{key}" added', how)
        elif item != old[key]:
            yield SectionChange(section, f'"{key}" changed ({_changed_keys(old[key], item)})', how)


def _key(item: Any) -> str:
    return str(getattr(item, "id", None) or item.name)


def _changed_keys_by_name(old: MachineConfig, new: MachineConfig) -> dict[ResourceName, str]:
    before = {item.full_name: item for item in (*old.components, *old.services)}
    after: list[ResourceConfig] = [*new.components, *new.services]
    details = {}
    for item in after:
        was = before.get(item.full_name)
        if was is not None and was != item:
            details[item.full_name] = _changed_keys(was, item)
    return details


def _changed_keys(before: Section, after: Section) -> str:
    """Return the names of the changed keys, without values, which may be secret."""
    keys: list[str] = []
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if _is_same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            keys += [f"{name}.{key}" for key in sorted(_differing_keys(old, new))]
        else:
            keys.append(name)
    return ", ".join(keys)


def _differing_keys(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    return {
        key
        for key in old.keys() | new.keys()
        if key not in old or key not in new or not _is_same(old[key], new[key])
    }


def _is_same(old: object, new: object) -> bool:
    """Compare two values; unlike in Python, 1 and true differ."""
    return old == new and repr(old) == repr(new)
