"""What saving a changed configuration would do to a running machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from cogwork.config.catalogue import Catalogue
from cogwork.config.check import Checked
from cogwork.config.fields import Section
from cogwork.config.schema import MachineConfig, ResourceConfig
from cogwork.graph.foresee import Foresight, foresee
from cogwork.graph.name import ResourceName
from cogwork.graph.plan import Action, Step
from cogwork.graph.provider import Dependencies, Offer, Unavailable
from cogwork.graph.spec import Spec

_HOW: dict[str, str] = {
    "log": "takes effect at once",
    "debug": "takes effect at once",
    "disable_log_deduplication": "takes effect at once",
    "revision": "only a label",
}
_RESOURCES = ("components", "services")


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A part of the file beside the resources, or of a resource beside what it is built from."""

    section: str
    what: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class ConfigDiff:
    foresight: Foresight
    sections: list[SectionChange]
    details: dict[ResourceName, str]
    """Which keys of a resource changed."""

    @property
    def is_empty(self) -> bool:
        return not (self.sections or self.foresight.closing or self.foresight.building)


def diff(old: Checked, new: Checked, catalogue: Catalogue) -> ConfigDiff:
    offers = _Offers(catalogue, modules=bool(old.config.modules or new.config.modules))
    before, after = _as_if_remotes_had_the_rest(old), _as_if_remotes_had_the_rest(new)
    foresight = foresee(before, after, offers)
    details = _details(old.config, new.config)
    kept = [
        SectionChange(str(name), f"changed ({details[name]})", "without being built anew")
        for name in foresight.untouched
        if name in details
    ]
    return ConfigDiff(foresight, [*_section_changes(old.config, new.config), *kept], details)


def stuck(checked: Checked, catalogue: Catalogue) -> list[Step]:
    """What of a configuration would not run, and why."""
    offers = _Offers(catalogue, modules=bool(checked.config.modules))
    return foresee((), _as_if_remotes_had_the_rest(checked), offers).stuck


def as_text(change: ConfigDiff) -> str:
    foresight = change.foresight
    if change.is_empty and not foresight.stuck:
        return "nothing would change"
    lines: list[str] = []
    for title, groups in (("close", foresight.closing), ("build", foresight.building)):
        for number, group in enumerate(groups, 1):
            suffix = f" (group {number} of {len(groups)})" if len(groups) > 1 else ""
            lines.append(f"{title}{suffix}")
            lines += [f"  {_line(step, title, change.details)}" for step in group]
    if foresight.stuck:
        lines.append("cannot run")
        lines += [f"  {step.name}: {step.why}" for step in foresight.stuck]
    if change.sections:
        lines.append("settings")
        lines += [
            f"  {item.section}: {item.what}{f'; {item.how}' if item.how else ''}"
            for item in change.sections
        ]
    lines.append(_summary(foresight))
    return "\n".join(line for line in lines if line)


def as_json(change: ConfigDiff) -> dict[str, Any]:
    foresight = change.foresight

    def step(item: Step) -> dict[str, str | None]:
        return {
            "name": str(item.name),
            "action": item.action.value,
            "why": item.why,
            "changed": change.details.get(item.name),
        }

    return {
        "close": [[step(item) for item in group] for group in foresight.closing],
        "build": [[step(item) for item in group] for group in foresight.building],
        "cannot_run": [step(item) for item in foresight.stuck],
        "untouched": [str(name) for name in foresight.untouched],
        "settings": [
            {"section": item.section, "what": item.what, "how": item.how}
            for item in change.sections
        ],
    }


class _Nobody:
    """A diff builds nothing."""

    async def build(self, spec: Spec, dependencies: Dependencies) -> object:
        raise NotImplementedError

    async def reconfigure(self, resource: object, spec: Spec, dependencies: Dependencies) -> None:
        raise NotImplementedError

    async def close(self, resource: object) -> None:
        raise NotImplementedError


class _Offers:
    """A model of somebody's own is taken to come from a module, which never changes in place."""

    def __init__(self, catalogue: Catalogue, *, modules: bool) -> None:
        self._catalogue = catalogue
        self._modules = modules
        self._nobody = _Nobody()

    def __call__(self, spec: Spec) -> Offer | Unavailable:
        shape = self._catalogue.find(spec.name.api, spec.model)
        if shape is None and (spec.model.is_builtin or not self._modules):
            return Unavailable(f"nobody provides model {spec.model.short} of {spec.name.api}")
        return Offer(self._nobody, in_place=shape is not None and shape.reconfigures)


def _as_if_remotes_had_the_rest(checked: Checked) -> Iterable[Spec]:
    """What is named and not configured may come with a remote; nobody knows before it is there."""
    if not checked.config.remotes:
        return checked.specs
    here = {spec.name.short for spec in checked.specs}
    return [
        replace(spec, needs=tuple(need for need in spec.needs if need.short in here))
        for spec in checked.specs
    ]


_VERBS = {
    Action.BUILD: "build",
    Action.REBUILD: "build anew",
    Action.RECONFIGURE: "change in place",
}


def _line(step: Step, title: str, details: dict[ResourceName, str]) -> str:
    verb = "close" if title == "close" else _VERBS[step.action]
    changed = details.get(step.name)
    # The reason of a node that cannot run is a sentence about the node, without naming it.
    why = f"it {step.why}" if step.why.startswith("depends on ") else step.why
    return f"{step.name}: {verb}, because {why}{f' ({changed})' if changed else ''}"


def _summary(foresight: Foresight) -> str:
    actions = [step.action for group in foresight.building for step in group]
    removed = sum(1 for group in foresight.closing for s in group if s.action is Action.REMOVE)
    halted = sum(1 for group in foresight.closing for s in group if s.action is Action.HALT)
    counts = [
        (actions.count(Action.BUILD), "built"),
        (actions.count(Action.REBUILD), "built anew"),
        (actions.count(Action.RECONFIGURE), "changed in place"),
        (removed, "removed"),
        (halted, "halted"),
        (len(foresight.untouched), "left alone"),
    ]
    return ", ".join(f"{count} {what}" for count, what in counts if count)


def _section_changes(old: MachineConfig, new: MachineConfig) -> Iterable[SectionChange]:
    for name, info in MachineConfig.model_fields.items():
        before, after = getattr(old, name), getattr(new, name)
        if name in _RESOURCES or before == after:
            continue
        section = info.alias or name
        how = _HOW.get(name, "")
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


def _details(old: MachineConfig, new: MachineConfig) -> dict[ResourceName, str]:
    before = {item.full_name: item for item in (*old.components, *old.services)}
    after: list[ResourceConfig] = [*new.components, *new.services]
    details = {}
    for item in after:
        was = before.get(item.full_name)
        if was is not None and was != item:
            details[item.full_name] = _changed_keys(was, item)
    return details


def _changed_keys(before: Section, after: Section) -> str:
    """The names only: values may be secret."""
    keys: list[str] = []
    for name in type(after).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if _same(old, new):
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            keys += [f"{name}.{key}" for key in sorted(_differing(old, new))]
        else:
            keys.append(name)
    return ", ".join(keys)


def _differing(old: dict[str, Any], new: dict[str, Any]) -> set[str]:
    return {
        key
        for key in old.keys() | new.keys()
        if key not in old or key not in new or not _same(old[key], new[key])
    }


def _same(old: object, new: object) -> bool:
    """Python takes 1 and true for equal, a person does not."""
    return old == new and repr(old) == repr(new)
