"""Merges fragments into a configuration. This module has no side effects.

A configuration names fragments in `fragments`, each by its ID or as an object:

    {"id": "…", "version": "3", "prefix": "left", "variables": {"path": "/dev/video0"}}

In a fragment, `{"$variable": {"name": "path", "default_value": "…"}}` stands for the value of a
variable. The overrides in `fragment_mods` change the content of a fragment for this use of it
(`fragment_overrides.py`). A prefix is added to the names of the fragment's resources, so that one
configuration can use the fragment twice. A fragment may use other fragments.

A mistake is local: the item with the mistake is left out and reported, and all others are merged.
"""

from __future__ import annotations

import enum
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cogwork.cloud.configuration.config_text import parse_config
from cogwork.cloud.configuration.fragment_overrides import InvalidOverride, apply_overrides
from cogwork.cloud.configuration.fragment_use import (
    MAX_TEXT,
    MAX_USES,
    Find,
    FragmentUnavailable,
    FragmentUse,
    parse_use,
)
from cogwork.cloud.configuration.merge_budget import (
    CHARACTERS_PER_STEP,
    MergeBudget,
    MergeTooLarge,
    require_nesting,
)
from cogwork.cloud.configuration.merged_config import MergedConfig, name_of

Json = dict[str, Any]

MAX_DEPTH: Final = 10
"""Maximum depth of fragments inside fragments."""
MAX_OVERRIDES: Final = 1000
"""Maximum number of entries of `fragment_mods` in one configuration or fragment."""
MAX_PREFIX: Final = 60
"""Length in characters. A prefix is part of many names, so it must be short."""
_MAX_LISTED: Final = 5
"""Maximum number of mistakes of one kind to list for one fragment."""

_FRAGMENTS: Final = "fragments"
_OVERRIDES: Final = "fragment_mods"
_VARIABLE: Final = "$variable"
_RESOURCE_SECTIONS: Final = ("components", "services", "remotes")


class MistakeType(enum.Enum):
    NO_ACCESS = enum.auto()
    """The fragment does not exist, or is not shared with the organization."""
    TOO_DEEP = enum.auto()
    INVALID = enum.auto()
    CYCLE = enum.auto()
    VARIABLE = enum.auto()
    OVERRIDE = enum.auto()
    NAME_IN_USE = enum.auto()
    TOO_LARGE = enum.auto()


class Mistake(NamedTuple):
    type: MistakeType
    fragment_id: str
    """The ID of the fragment with the mistake; empty if no single fragment has it."""
    text: str

    def __str__(self) -> str:
        return f"fragment {self.fragment_id}: {self.text}" if self.fragment_id else self.text


class Merged(NamedTuple):
    config: Json
    mistakes: list[Mistake]


def merge_fragments(config: Json, find: Find, budget: MergeBudget | None = None) -> Merged:
    """Merge the fragments of a configuration into a copy of it.

    Several configurations may share one budget.
    """
    merger = _Merger(find, budget or MergeBudget())
    merged = merger.merge(config, ())
    return Merged(merged, merger.list_mistakes())


class _MissingVariable(Exception):
    pass


class _Merger:
    def __init__(self, find: Find, budget: MergeBudget) -> None:
        self._find = find
        self._uses = 0
        self._budget = budget
        self._mistakes: list[Mistake] = []
        self._counts: Counter[tuple[MistakeType, str]] = Counter()

    def merge(self, config: Json, path: tuple[str, ...]) -> Json:
        """Merge the fragments of a configuration. `path` has the IDs of outer fragments."""
        inside = path[-1] if path else ""
        merged = MergedConfig(
            {key: each for key, each in config.items() if key not in (_FRAGMENTS, _OVERRIDES)}
        )
        uses = self._parse_uses(config, inside)
        overrides = self._parse_overrides(config, inside)
        used = {use.id for use in uses}
        for unused in (each for each in overrides if each not in used):
            text = "fragment_mods names it, but fragments does not; add it there"
            self._add(MistakeType.OVERRIDE, unused, text)
        for use in uses:
            content = self._expand(use, path)
            if content is not None:
                content = self._override(content, use, overrides.get(use.id, []))
                content = self._add_prefix(content, use)
            if content is not None:
                for section, name in merged.add(content):
                    self._add(MistakeType.NAME_IN_USE, use.id, _explain_clash(section, name))
        return merged.config

    def list_mistakes(self) -> list[Mistake]:
        """Return the first mistakes of each kind in each fragment, and how many more there are."""
        more = [
            Mistake(kind, fragment, f"and {count - _MAX_LISTED} more mistakes of this kind")
            for (kind, fragment), count in self._counts.items()
            if count > _MAX_LISTED
        ]
        return [*self._mistakes, *more]

    def _expand(self, use: FragmentUse, path: tuple[str, ...]) -> Json | None:
        """Return a copy of a fragment with its variables and inner fragments filled in.

        Return None if the fragment cannot be used.
        """
        self._uses += 1
        try:
            if use.id in path:
                self._add(MistakeType.CYCLE, use.id, "it contains itself; remove one of the uses")
            elif len(path) >= MAX_DEPTH:
                text = f"it is more than {MAX_DEPTH} fragments deep; use it further up"
                self._add(MistakeType.TOO_DEEP, use.id, text)
            elif self._uses > MAX_USES:
                text = (
                    f"it is left out, because the configuration uses more than {MAX_USES} "
                    "fragments, with those inside of others; use fewer"
                )
                self._add(MistakeType.TOO_LARGE, use.id, text)
            else:
                return self.merge(self._fill_variables(self._read(use), use), (*path, use.id))
        except FragmentUnavailable as error:
            self._add(MistakeType.NO_ACCESS, use.id, str(error))
        except MergeTooLarge as error:
            self._add_over_budget(use, error)
        return None

    def _read(self, use: FragmentUse) -> Json:
        text = self._find(use)
        self._budget.add_steps(len(text) // CHARACTERS_PER_STEP)
        return parse_config(text)

    def _fill_variables(self, content: Json, use: FragmentUse) -> Json:
        """Fill in the variables. If a variable has no value, leave out the list item that contains
        it, or the section if it is not a list."""
        found: Json = {}
        for key, section in content.items():
            self._budget.add_value(key)
            if isinstance(section, list):
                filled = (self._fill_item(key, each, use, 3) for each in section)
                found[key] = [each for (each,) in filter(None, filled)]
            elif (value := self._fill_item(key, section, use, 2)) is not None:
                found[key] = value[0]
        return found

    def _fill_item(
        self, section: str, item: Any, use: FragmentUse, level: int
    ) -> tuple[Any] | None:
        try:
            return (self._fill(item, use.variables, level),)
        except _MissingVariable as missing:
            name = name_of(item)
            what = _describe_item(section, name) if name is not None else section[:MAX_TEXT]
            text = (
                f'{what} is left out, because the variable "{str(missing)[:MAX_TEXT]}" has no '
                "value; give it one in the variables of the fragment"
            )
            self._add(MistakeType.VARIABLE, use.id, text)
            return None

    def _fill(self, value: Any, variables: Mapping[str, Any], level: int) -> Any:
        """Fill in the variables of a value. `level` is its depth; the fragment itself has depth
        1."""
        variable = value.get(_VARIABLE) if isinstance(value, dict) and len(value) == 1 else None
        if isinstance(variable, dict) and isinstance(variable.get("name"), str):
            if variable["name"] in variables:
                return self._copy(variables[variable["name"]], level)
            if "default_value" in variable:
                return self._copy(variable["default_value"], level)
            raise _MissingVariable(variable["name"])
        self._budget.add_value(value)
        if not isinstance(value, dict | list):
            return value
        require_nesting(level)
        if isinstance(value, list):
            return [self._fill(each, variables, level + 1) for each in value]
        self._budget.add_size(sum(map(len, value)))
        return {key: self._fill(each, variables, level + 1) for key, each in value.items()}

    def _copy(self, value: Any, level: int) -> Any:
        """Copy a value without filling in variables."""
        self._budget.add_value(value)
        if not isinstance(value, dict | list):
            return value
        require_nesting(level)
        if isinstance(value, list):
            return [self._copy(each, level + 1) for each in value]
        self._budget.add_size(sum(map(len, value)))
        return {key: self._copy(each, level + 1) for key, each in value.items()}

    def _override(self, content: Json, use: FragmentUse, overrides: list[Json]) -> Json:
        """Apply all overrides of a use of a fragment, or none of them if one is invalid."""
        try:
            self._budget.add_steps(len(overrides))
            mods = [
                mod
                for each in overrides
                if each.get("prefix", use.prefix) == use.prefix
                for mod in each["mods"]
            ]
            return apply_overrides(content, self._copy(mods, 1), self._budget) if mods else content
        except MergeTooLarge as error:
            text = f"no override is applied, because the fragments {error}; use fewer overrides"
            self._add(MistakeType.TOO_LARGE, use.id, text)
        except InvalidOverride as error:
            text = f"no override is applied, because of one of them: {error}"
            self._add(MistakeType.OVERRIDE, use.id, text)
        return content

    def _add_prefix(self, content: Json, use: FragmentUse) -> Json | None:
        """Add the prefix to the names of the fragment's resources, and to references to them.

        Attributes refer to resources by name, so every value that equals a resource name gets the
        prefix.
        """
        if not use.prefix:
            return content
        sections = {
            section: content[section]
            for section in _RESOURCE_SECTIONS
            if isinstance(content.get(section), list)
        }
        names = {name_of(each) for items in sections.values() for each in items} - {None}
        try:
            prefixed = {
                section: [self._prefix_item(each, use.prefix, names) for each in items]
                for section, items in sections.items()
            }
        except MergeTooLarge as error:
            self._add_over_budget(use, error)
            return None
        return {**content, **prefixed}

    def _prefix_item(self, item: Any, prefix: str, names: set[str | None]) -> Any:
        """Add the prefix to the names in all fields except the type and the model."""
        if not isinstance(item, dict):
            return item
        kept = ("api", "model", "type", "namespace")
        return {
            key: each if key in kept else self._prefix_names(each, prefix, names)
            for key, each in item.items()
        }

    def _prefix_names(self, value: Any, prefix: str, names: set[str | None]) -> Any:
        self._budget.add_steps(1)
        if isinstance(value, str):
            if value not in names:
                return value
            self._budget.add_size(len(prefix) + 1)
            return f"{prefix}-{value}"
        if isinstance(value, list):
            return [self._prefix_names(each, prefix, names) for each in value]
        if isinstance(value, dict):
            return {key: self._prefix_names(each, prefix, names) for key, each in value.items()}
        return value

    def _parse_uses(self, config: Json, inside: str) -> list[FragmentUse]:
        items = config.get(_FRAGMENTS, [])
        if not isinstance(items, list):
            self._add(MistakeType.INVALID, inside, '"fragments" is not a list')
            return []
        if len(items) > MAX_USES:
            text = (
                f"fragments has {len(items)} entries, of which {MAX_USES} are used; remove the "
                "others"
            )
            self._add(MistakeType.TOO_LARGE, inside, text)
        found = []
        for item in items[:MAX_USES]:
            if (use := parse_use(item)) is None:
                shown = str(item)[:MAX_TEXT] if isinstance(item, str | int | float) else "one"
                text = f"fragments has an invalid entry: {shown}; write the ID of a fragment"
                self._add(MistakeType.INVALID, inside, text)
            elif len(use.prefix) > MAX_PREFIX:
                text = f"its prefix has {len(use.prefix)} characters; use at most {MAX_PREFIX}"
                self._add(MistakeType.INVALID, use.id, text)
            else:
                found.append(use)
        return found

    def _parse_overrides(self, config: Json, inside: str) -> dict[str, list[Json]]:
        """Return the overrides by the IDs of their fragments."""
        items = config.get(_OVERRIDES, [])
        found: dict[str, list[Json]] = defaultdict(list)
        if not isinstance(items, list):
            self._add(MistakeType.INVALID, inside, '"fragment_mods" is not a list')
        elif len(items) > MAX_OVERRIDES:
            text = (
                f"fragment_mods has {len(items)} entries, and none is applied; use at most "
                f"{MAX_OVERRIDES}, for instance with several mods in each"
            )
            self._add(MistakeType.TOO_LARGE, inside, text)
        elif not all(map(_is_override, items)):
            text = "fragment_mods is invalid; it has objects with a fragment_id and a list of mods"
            self._add(MistakeType.INVALID, inside, text)
        else:
            for each in items:
                found[each["fragment_id"]].append(each)
        return found

    def _add_over_budget(self, use: FragmentUse, error: MergeTooLarge) -> None:
        text = f"it is left out, because with it, the fragments {error}; use less of them"
        self._add(MistakeType.TOO_LARGE, use.id, text)

    def _add(self, kind: MistakeType, fragment_id: str, text: str) -> None:
        place = kind, fragment_id[:MAX_TEXT]
        self._counts[place] += 1
        if self._counts[place] <= _MAX_LISTED:
            self._mistakes.append(Mistake(*place, text))


def _explain_clash(section: str, name: str) -> str:
    return (
        f"{_describe_item(section, name)} is left out, because the configuration or another "
        "fragment has something else of this name; rename one, or use a prefix"
    )


def _describe_item(section: str, name: str) -> str:
    return f'"{name[:MAX_TEXT]}" in {section[:MAX_TEXT]}'


def _is_override(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("fragment_id"), str)
        and isinstance(item.get("mods"), list)
    )
