"""Merges fragments into a configuration. Pure: it takes values and returns values.

A configuration names fragments in `fragments`, each by its ID or as an object:

    {"id": "…", "version": "3", "prefix": "left", "variables": {"path": "/dev/video0"}}

In a fragment, `{"$variable": {"name": "path", "default_value": "…"}}` stands for the value of a
variable. `fragment_mods` of the configuration change what a fragment says for this use of it
(`fragment_overrides.py`). A prefix is put before the names of the fragment's resources, so that it
can be used twice. A fragment may use other fragments.

A mistake is local: what it concerns is left out and explained, and everything else is merged.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from cogwork.cloud.configuration.fragment_overrides import InvalidOverride, apply_overrides

Json = dict[str, Any]

MAX_DEPTH: Final = 10
"""Fragments inside of fragments."""
MAX_USES: Final = 200
"""Fragments in one configuration, with those inside of others."""
MAX_VALUES: Final = 200_000
"""Values that fragments add to one configuration. Variables could multiply them without end."""
_CHARACTERS_PER_VALUE: Final = 64
"""Long texts count as several values."""

_FRAGMENTS: Final = "fragments"
_OVERRIDES: Final = "fragment_mods"
_VARIABLE: Final = "$variable"
_RESOURCE_SECTIONS: Final = ("components", "services", "remotes")


class MistakeType(enum.Enum):
    NO_ACCESS = enum.auto()
    """There is no such fragment, or it is not shared with the organization."""
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
    """Empty if the mistake is not in a certain fragment."""
    text: str

    def __str__(self) -> str:
        return f"fragment {self.fragment_id}: {self.text}" if self.fragment_id else self.text


class FragmentUse(NamedTuple):
    """How a configuration uses a fragment."""

    id: str
    version: str = ""
    """A revision or a tag; empty for the newest revision."""
    prefix: str = ""
    variables: Mapping[str, Any] = {}


class FragmentUnavailable(Exception):
    """A fragment that cannot be used. The text says why."""


Find = Callable[[FragmentUse], Json]
"""Returns the configuration of a fragment. Raises FragmentUnavailable."""


class Merged(NamedTuple):
    config: Json
    mistakes: list[Mistake]


def merge_fragments(config: Json, find: Find) -> Merged:
    """Return the configuration with its fragments merged into it. Nothing is modified."""
    merger = _Merger(find)
    return Merged(merger.merge(config, ()), merger.mistakes)


class _MissingVariable(Exception):
    pass


class _TooLarge(Exception):
    pass


class _Merger:
    def __init__(self, find: Find) -> None:
        self._find = find
        self._uses = 0
        self._values = 0
        self.mistakes: list[Mistake] = []

    def merge(self, config: Json, path: tuple[str, ...]) -> Json:
        """`path` has the IDs of the fragments that lead to this configuration."""
        inside = path[-1] if path else ""
        own = {key: each for key, each in config.items() if key not in (_FRAGMENTS, _OVERRIDES)}
        overrides = self._parse_overrides(config, inside)
        uses = self._parse_uses(config, inside)
        for override in overrides:
            if override["fragment_id"] not in {use.id for use in uses}:
                text = "fragment_mods names it, but fragments does not; add it there"
                self._add(MistakeType.OVERRIDE, override["fragment_id"], text)
        for use in uses:
            if (content := self._expand(use, path)) is None:
                continue
            content = self._override(content, use, overrides)
            self._combine(own, _add_prefix(content, use.prefix), use.id)
        return own

    def _expand(self, use: FragmentUse, path: tuple[str, ...]) -> Json | None:
        """Return a fragment with its variables and its own fragments; None if it is unusable."""
        self._uses += 1
        try:
            if use.id in path:
                self._add(MistakeType.CYCLE, use.id, "it contains itself; remove one of the uses")
            elif len(path) >= MAX_DEPTH:
                text = f"it is more than {MAX_DEPTH} fragments deep; use it further up"
                self._add(MistakeType.TOO_DEEP, use.id, text)
            elif self._uses > MAX_USES:
                text = f"the configuration uses more than {MAX_USES} fragments; use fewer"
                self._add(MistakeType.TOO_LARGE, use.id, text)
            else:
                content = self._fill_variables(self._find(use), use)
                return self.merge(content, (*path, use.id))
        except FragmentUnavailable as error:
            self._add(MistakeType.NO_ACCESS, use.id, str(error))
        except _TooLarge:
            text = f"with it, the fragments have more than {MAX_VALUES} values; use less of them"
            self._add(MistakeType.TOO_LARGE, use.id, text)
        return None

    def _fill_variables(self, content: Json, use: FragmentUse) -> Json:
        """Leave out the items, or else the sections, of which a variable has no value."""
        found: Json = {}
        for key, section in content.items():
            if isinstance(section, list):
                filled = (self._fill_item(key, each, use) for each in section)
                found[key] = [each for (each,) in filter(None, filled)]
            elif (value := self._fill_item(key, section, use)) is not None:
                found[key] = value[0]
        return found

    def _fill_item(self, section: str, item: Any, use: FragmentUse) -> tuple[Any] | None:
        try:
            return (self._fill(item, use.variables),)
        except _MissingVariable as missing:
            name = item.get("name") or item.get("id") if isinstance(item, dict) else None
            what = f'"{name}" in {section}' if isinstance(name, str) else section
            text = (
                f'{what} is left out, because the variable "{missing}" has no value; give it one '
                "in the variables of the fragment"
            )
            self._add(MistakeType.VARIABLE, use.id, text)
            return None

    def _fill(self, value: Any, variables: Mapping[str, Any]) -> Any:
        self._count(value)
        if isinstance(value, list):
            return [self._fill(each, variables) for each in value]
        if not isinstance(value, dict):
            return value
        variable = value.get(_VARIABLE) if len(value) == 1 else None
        if not isinstance(variable, dict) or not isinstance(variable.get("name"), str):
            return {key: self._fill(each, variables) for key, each in value.items()}
        if variable["name"] in variables:
            return self._copy(variables[variable["name"]])
        if "default_value" in variable:
            return self._copy(variable["default_value"])
        raise _MissingVariable(variable["name"])

    def _copy(self, value: Any) -> Any:
        """Copy a value, in which variables have no meaning, and count it."""
        self._count(value)
        if isinstance(value, list):
            return [self._copy(each) for each in value]
        if isinstance(value, dict):
            return {key: self._copy(each) for key, each in value.items()}
        return value

    def _count(self, value: Any) -> None:
        length = len(value) if isinstance(value, str) else 0
        self._values += 1 + length // _CHARACTERS_PER_VALUE
        if self._values > MAX_VALUES:
            raise _TooLarge

    def _override(self, content: Json, use: FragmentUse, overrides: list[Json]) -> Json:
        """Apply all overrides of a use of a fragment, or none of them."""
        mods = [
            mod
            for each in overrides
            if each["fragment_id"] == use.id and each.get("prefix", use.prefix) == use.prefix
            for mod in each["mods"]
        ]
        try:
            return apply_overrides(content, self._copy(mods))
        except _TooLarge:
            text = f"its overrides are too large; all fragments may have {MAX_VALUES} values"
            self._add(MistakeType.TOO_LARGE, use.id, text)
            return content
        except InvalidOverride as error:
            text = f"no override is applied, because of one of them: {error}"
            self._add(MistakeType.OVERRIDE, use.id, text)
            return content

    def _combine(self, own: Json, content: Json, fragment_id: str) -> None:
        """Add a fragment to a configuration, which has precedence."""
        for key, section in content.items():
            mine = own.get(key)
            if mine is None:
                own[key] = section
            elif isinstance(mine, list) and isinstance(section, list):
                own[key] = mine + self._new_items(key, mine, section, fragment_id)

    def _new_items(
        self, section: str, mine: list[Any], items: list[Any], fragment_id: str
    ) -> list[Any]:
        by_name = {name: each for each in mine if (name := _name_of(each)) is not None}
        found = []
        for item in items:
            name = _name_of(item)
            if name is None or name not in by_name:
                found.append(item)
            elif item != by_name[name]:
                text = (
                    f'"{name}" in {section} is left out, because the configuration or another '
                    "fragment has something else of this name; rename one, or use a prefix"
                )
                self._add(MistakeType.NAME_IN_USE, fragment_id, text)
        return found

    def _parse_uses(self, config: Json, inside: str) -> list[FragmentUse]:
        items = config.get(_FRAGMENTS, [])
        if not isinstance(items, list):
            self._add(MistakeType.INVALID, inside, '"fragments" is not a list')
            return []
        found = []
        for item in items:
            if (use := parse_use(item)) is not None:
                found.append(use)
            else:
                text = f"fragments has an invalid entry: {str(item)[:200]}; write the ID of one"
                self._add(MistakeType.INVALID, inside, text)
        return found

    def _parse_overrides(self, config: Json, inside: str) -> list[Json]:
        items = config.get(_OVERRIDES, [])
        if isinstance(items, list) and all(map(_is_override, items)):
            return items
        text = "fragment_mods is invalid; it has objects with a fragment_id and a list of mods"
        self._add(MistakeType.INVALID, inside, text)
        return []

    def _add(self, kind: MistakeType, fragment_id: str, text: str) -> None:
        self.mistakes.append(Mistake(kind, fragment_id, text))


def parse_use(item: Any) -> FragmentUse | None:
    """Return how an entry of `fragments` uses a fragment; None if it is invalid."""
    if isinstance(item, str):
        return FragmentUse(item) if item else None
    if not isinstance(item, dict):
        return None
    fragment_id, variables = item.get("id"), item.get("variables", {})
    version, prefix = item.get("version", ""), item.get("prefix", "")
    texts = (fragment_id, version, prefix)
    if not all(isinstance(each, str) for each in texts) or not isinstance(variables, dict):
        return None
    return FragmentUse(*texts, variables) if fragment_id else None  # type: ignore[arg-type]


def _is_override(item: Any) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("fragment_id"), str)
        and isinstance(item.get("mods"), list)
    )


def _name_of(item: Any) -> str | None:
    name = item.get("name") or item.get("id") if isinstance(item, dict) else None
    return name if isinstance(name, str) else None


def _add_prefix(content: Json, prefix: str) -> Json:
    """Return the fragment with a prefix before the names of its resources, and where they are used.

    Attributes refer to resources by their names, so every value that is the name of a resource of
    the fragment gets the prefix.
    """
    if not prefix:
        return content
    names = {
        name
        for section in _RESOURCE_SECTIONS
        for each in _list_of(content, section)
        if (name := _name_of(each)) is not None
    }
    found = dict(content)
    for section in _RESOURCE_SECTIONS:
        if isinstance(content.get(section), list):
            found[section] = [_prefix_item(each, prefix, names) for each in content[section]]
    return found


def _list_of(content: Json, section: str) -> list[Any]:
    found = content.get(section)
    return found if isinstance(found, list) else []


def _prefix_item(item: Any, prefix: str, names: set[str]) -> Any:
    """Rename everything but the fields that say what the resource is."""
    if not isinstance(item, dict):
        return item
    kept = ("api", "model", "type", "namespace")
    return {
        key: each if key in kept else _prefix_names(each, prefix, names)
        for key, each in item.items()
    }


def _prefix_names(value: Any, prefix: str, names: set[str]) -> Any:
    if isinstance(value, str):
        return f"{prefix}-{value}" if value in names else value
    if isinstance(value, list):
        return [_prefix_names(each, prefix, names) for each in value]
    if isinstance(value, dict):
        return {key: _prefix_names(each, prefix, names) for key, each in value.items()}
    return value
