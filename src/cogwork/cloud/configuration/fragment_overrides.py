"""Overrides: changes to a fragment in one configuration.

An override is an object of operators, each with values by path:

    {"$set": {"components.arm.attributes.speed": 50}, "$unset": {"components.arm.frame": 0}}

The steps of a path are keys of objects, and names or indexes of list items.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from cogwork.cloud.configuration.merge_budget import (
    CHARACTERS_PER_STEP,
    MergeBudget,
    require_nesting,
)

Json = dict[str, Any]

_MAX_PATH: Final = 64
"""Maximum number of steps in a path."""
_MAX_NUMBER: Final = 1e15
"""Largest number in calculations, so that results stay exact and short."""
_LISTS: Final = frozenset(
    ("components", "services", "modules", "packages", "remotes", "processes", "jobs", "log")
)
"""Sections that are lists. An override does not create them."""
_USES: Final = ("fragments", "fragment_mods")
"""Sections that overrides cannot change: they are removed before overrides are applied."""
_NAMES: Final = ("name", "id")
"""Keys whose values identify the items of a list."""


class InvalidOverride(Exception):
    """An override that does not fit the fragment. The message has the reason."""


def apply_overrides(content: Json, overrides: Sequence[Any], budget: MergeBudget) -> Json:
    """Return a copy of the content with the overrides applied in order.

    The result may share values with the overrides. Raise InvalidOverride or MergeTooLarge.
    """
    found: Json = _copy(content, budget)
    apply = _Overrides(found, budget)
    for override in overrides:
        if not isinstance(override, dict):
            raise InvalidOverride(f"{str(override)[:100]} is not an object of operators")
        for operator, values in override.items():
            apply.apply(operator, values)
    _check_nesting(found, budget)
    return found


class _Overrides:
    """Overrides that change one fragment in place."""

    def __init__(self, root: Json, budget: MergeBudget) -> None:
        self._root = root
        self._budget = budget
        self._indexes: dict[int, dict[str, int]] = {}
        """The positions of list items by name and ID, for each list by its `id()`. `_removed` keeps
        removed lists alive, so that no other list gets the same `id()`."""
        self._removed: list[Any] = []
        self._operators: dict[str, Callable[[str, Any], None]] = {
            "$set": self._set,
            "$unset": self._unset,
            "$rename": self._rename,
            "$inc": self._calculate(lambda old, value: old + value),
            "$mul": self._calculate(lambda old, value: old * value),
            "$min": self._calculate(min),
            "$max": self._calculate(max),
            "$push": self._push,
            "$addToSet": self._add_to_set,
            "$pull": self._pull,
        }

    def apply(self, operator: str, values: Any) -> None:
        apply = self._operators.get(operator)
        if apply is None:
            raise InvalidOverride(
                f'"{operator[:50]}" is not an operator; use one of {", ".join(self._operators)}'
            )
        if not isinstance(values, dict):
            raise InvalidOverride(f"{operator} needs an object of paths and values")
        for path, value in values.items():
            apply(path, value)

    def _set(self, path: str, value: Any) -> None:
        holder, key = self._find_holder(path, create=True)
        self._put(holder, key, value, path)

    def _unset(self, path: str, _: Any) -> None:
        holder, key = self._find_holder(path)
        self._remove(holder, key, path)

    def _rename(self, path: str, target: Any) -> None:
        """Move a value to a new path."""
        if not isinstance(target, str):
            raise InvalidOverride(f"$rename of {path[:200]} needs the new path as its value")
        holder, key = self._find_holder(path)
        value = self._get(holder, key, path)
        self._remove(holder, key, path)
        self._set(target, value)

    def _calculate(self, combine: Callable[[Any, Any], Any]) -> Callable[[str, Any], None]:
        """Return an operator that changes the number at a path."""

        def apply(path: str, value: Any) -> None:
            holder, key = self._find_holder(path)
            old = self._get(holder, key, path)
            if not _is_number(old) or not _is_number(value):
                raise InvalidOverride(
                    f"the value at {path[:200]} and the value of the operator must both be numbers"
                )
            is_small = abs(old) < _MAX_NUMBER and abs(value) < _MAX_NUMBER
            if not is_small or not abs(result := combine(old, value)) < _MAX_NUMBER:
                raise InvalidOverride(
                    f"all numbers in the calculation of {path[:200]} must be below {_MAX_NUMBER:g}"
                )
            self._put(holder, key, result, path)

        return apply

    def _push(self, path: str, value: Any) -> None:
        items = self._list_at(path)
        self._indexes.pop(id(items), None)
        items.append(value)

    def _add_to_set(self, path: str, value: Any) -> None:
        items = self._list_at(path)
        self._count_comparisons(items, value)
        if value not in items:
            self._indexes.pop(id(items), None)
            items.append(value)

    def _pull(self, path: str, value: Any) -> None:
        items = self._list_at(path)
        self._count_comparisons(items, value)
        self._indexes.pop(id(items), None)
        self._removed += [each for each in items if each == value]
        items[:] = [each for each in items if each != value]

    def _count_comparisons(self, items: list[Any], value: Any) -> None:
        """Count the steps of the worst case: each item equals the value, and is compared to its
        end."""
        self._budget.add_steps(len(items) * _measure(value, self._budget))

    def _find_holder(self, path: str, *, create: bool = False) -> tuple[Any, str]:
        """Return the object or list to which the last step of a path applies, and that step.

        Missing objects are created on demand, but missing list items are mistakes, because an
        override cannot add a resource.
        """
        *steps, last = path.split(".")
        if len(steps) >= _MAX_PATH or not all((*steps, last)):
            raise InvalidOverride(f'"{path[:200]}" is not a path such as components.arm.attributes')
        if (*steps, last)[0] in _USES:
            raise InvalidOverride(
                f'"{path[:200]}" is not in the fragment itself; an override cannot change which '
                "fragments are used"
            )
        self._budget.add_steps(1 + len(steps))
        root = self._root
        holder: Any = root
        for step in steps:
            if create and isinstance(holder, dict) and not (holder is root and step in _LISTS):
                holder = holder.setdefault(step, {})
            else:
                holder = self._get(holder, step, path)
        return holder, last

    def _get(self, holder: Any, key: str, path: str) -> Any:
        if isinstance(holder, dict) and key in holder:
            return holder[key]
        if isinstance(holder, list):
            return holder[self._index_of(holder, key, path)]
        raise InvalidOverride(f'cannot find {path[:200]}: the fragment has no "{key[:100]}" there')

    def _put(self, holder: Any, key: str, value: Any, path: str) -> None:
        if isinstance(holder, dict):
            self._removed.append(holder.get(key))
            holder[key] = value
            if key in _NAMES:
                self._indexes.clear()  # if the object is a list item, its name has changed
        elif isinstance(holder, list):
            index = self._index_of(holder, key, path)
            self._removed.append(holder[index])
            holder[index] = value
            self._indexes.pop(id(holder), None)
        else:
            raise InvalidOverride(
                f'{path[:200]} cannot be set, because the value above "{key[:100]}" is neither an '
                "object nor a list"
            )

    def _remove(self, holder: Any, key: str, path: str) -> None:
        self._removed.append(self._get(holder, key, path))  # raises if the value does not exist
        if isinstance(holder, list):
            del holder[self._index_of(holder, key, path)]
            self._indexes.pop(id(holder), None)
        else:
            del holder[key]
            if key in _NAMES:
                self._indexes.clear()

    def _index_of(self, items: list[Any], key: str, path: str) -> int:
        """Return the position of the first item with this name or ID, or else with this index."""
        index = self._indexes.get(id(items))
        if index is None:
            self._budget.add_steps(len(items))
            index = self._indexes[id(items)] = _index_items(items)
        if key in index:
            return index[key]
        if key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(items):
            return int(key)
        raise InvalidOverride(f'cannot find {path[:200]}: the fragment has no "{key[:100]}" there')

    def _list_at(self, path: str) -> list[Any]:
        holder, key = self._find_holder(path)
        found = self._get(holder, key, path)
        if not isinstance(found, list):
            raise InvalidOverride(f"{path[:200]} is not a list")
        return found


def _index_items(items: list[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for index, item in enumerate(items):
        if isinstance(item, dict):
            for key in (item.get("name"), item.get("id")):
                if isinstance(key, str):
                    found.setdefault(key, index)
    return found


def _copy(value: Any, budget: MergeBudget) -> Any:
    budget.add_steps(1)
    if isinstance(value, list):
        return [_copy(each, budget) for each in value]
    if isinstance(value, dict):
        return {key: _copy(each, budget) for key, each in value.items()}
    return value


def _measure(value: Any, budget: MergeBudget) -> int:
    """Return the number of steps to compare a value with an equal value."""
    budget.add_steps(1)
    if isinstance(value, list):
        return 1 + sum(_measure(each, budget) for each in value)
    if isinstance(value, dict):
        return 1 + sum(_measure(each, budget) for each in value.values())
    return 1 + (len(value) // CHARACTERS_PER_STEP if isinstance(value, str) else 0)


def _check_nesting(content: Json, budget: MergeBudget) -> None:
    """Raise MergeTooLarge if the content is nested too deeply. Must not recurse."""
    inside: list[Any] = [content]
    level = 0
    while inside:
        level += 1
        require_nesting(level)
        budget.add_steps(len(inside))
        groups = (each.values() if isinstance(each, dict) else each for each in inside)
        inside = [each for group in groups for each in group if isinstance(each, dict | list)]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
