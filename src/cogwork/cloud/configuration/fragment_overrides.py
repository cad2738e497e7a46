"""Overrides: changes that a configuration makes to a fragment that it uses.

An override has operators, each with values by their paths:

    {"$set": {"components.arm.attributes.speed": 50}, "$unset": {"components.arm.frame": 0}}

A path goes through objects by their keys, and through lists by the name or the index of an item.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, Final

Json = dict[str, Any]

_MAX_PATH: Final = 64
"""Steps of a path."""
_MAX_NUMBER: Final = 1e15
"""Of calculations, so that they stay exact and short."""
_LISTS: Final = frozenset(
    ("components", "services", "modules", "packages", "remotes", "processes", "jobs", "log")
)
"""Sections that are lists, and so are not created by setting something inside of them."""


class InvalidOverride(Exception):
    """An override that does not fit the fragment. The text says why."""


def apply_overrides(content: Json, overrides: Sequence[Any]) -> Json:
    """Return the content with the overrides applied in order. The content is not modified.

    The result may contain the values of the overrides themselves.
    """
    if not overrides:
        return content
    found = copy.deepcopy(content)
    for override in overrides:
        if not isinstance(override, dict):
            raise InvalidOverride(f"{str(override)[:100]} is not an object with an operator")
        for operator, values in override.items():
            apply = _OPERATORS.get(operator)
            if apply is None:
                raise InvalidOverride(
                    f'"{operator[:50]}" is not an operator; use one of {", ".join(_OPERATORS)}'
                )
            if not isinstance(values, dict):
                raise InvalidOverride(f"{operator} needs an object of paths and values")
            for path, value in values.items():
                apply(found, path, value)
    return found


def _set(root: Json, path: str, value: Any) -> None:
    holder, key = _find_holder(root, path, create=True)
    _put(holder, key, value, path)


def _unset(root: Json, path: str, _: Any) -> None:
    holder, key = _find_holder(root, path)
    _remove(holder, key, path)


def _rename(root: Json, path: str, target: Any) -> None:
    """Move a value to another path, whose last step replaces the last step of the old one."""
    if not isinstance(target, str):
        raise InvalidOverride(f"$rename of {path} needs a path")
    holder, key = _find_holder(root, path)
    value = _get(holder, key, path)
    _remove(holder, key, path)
    _set(root, target, value)


def _change(combine: Callable[[Any, Any], Any]) -> Callable[[Json, str, Any], None]:
    """Return an operator that calculates with the number at the path."""

    def apply(root: Json, path: str, value: Any) -> None:
        holder, key = _find_holder(root, path)
        old = _get(holder, key, path)
        if not _is_number(old) or not _is_number(value):
            raise InvalidOverride(f"{path} is not a number, or it is combined with something else")
        is_small = abs(old) < _MAX_NUMBER and abs(value) < _MAX_NUMBER
        if not is_small or not abs(result := combine(old, value)) < _MAX_NUMBER:
            raise InvalidOverride(f"{path} is calculated with numbers above {_MAX_NUMBER:g}")
        _put(holder, key, result, path)

    return apply


def _push(root: Json, path: str, value: Any) -> None:
    _list_at(root, path).append(value)


def _add_to_set(root: Json, path: str, value: Any) -> None:
    items = _list_at(root, path)
    if value not in items:
        items.append(value)


def _pull(root: Json, path: str, value: Any) -> None:
    items = _list_at(root, path)
    items[:] = [each for each in items if each != value]


_OPERATORS: Final[dict[str, Callable[[Json, str, Any], None]]] = {
    "$set": _set,
    "$unset": _unset,
    "$rename": _rename,
    "$inc": _change(lambda old, value: old + value),
    "$mul": _change(lambda old, value: old * value),
    "$min": _change(min),
    "$max": _change(max),
    "$push": _push,
    "$addToSet": _add_to_set,
    "$pull": _pull,
}


def _find_holder(root: Json, path: str, *, create: bool = False) -> tuple[Any, str]:
    """Return the object or the list that holds the last step of a path, and this step.

    Missing objects are created if asked for, but items of lists never are: a resource that the
    fragment does not have is a mistake.
    """
    *steps, last = path.split(".")
    if len(steps) >= _MAX_PATH or not all((*steps, last)):
        raise InvalidOverride(f'"{path[:200]}" is not a path such as components.arm.attributes')
    holder: Any = root
    for step in steps:
        if create and isinstance(holder, dict) and not (holder is root and step in _LISTS):
            holder = holder.setdefault(step, {})
        else:
            holder = _get(holder, step, path)
    return holder, last


def _get(holder: Any, key: str, path: str) -> Any:
    if isinstance(holder, dict) and key in holder:
        return holder[key]
    if isinstance(holder, list):
        return holder[_index_of(holder, key, path)]
    raise InvalidOverride(f'the fragment has no "{key}" of {path[:200]}')


def _put(holder: Any, key: str, value: Any, path: str) -> None:
    if isinstance(holder, dict):
        holder[key] = value
    elif isinstance(holder, list):
        holder[_index_of(holder, key, path)] = value
    else:
        raise InvalidOverride(f'"{key}" of {path[:200]} would be inside of a value')


def _remove(holder: Any, key: str, path: str) -> None:
    _get(holder, key, path)  # it must be there
    del holder[_index_of(holder, key, path) if isinstance(holder, list) else key]


def _index_of(items: list[Any], key: str, path: str) -> int:
    for index, item in enumerate(items):
        if isinstance(item, dict) and key in (item.get("name"), item.get("id")):
            return index
    if key.isascii() and key.isdecimal() and len(key) < 10 and int(key) < len(items):
        return int(key)
    raise InvalidOverride(f'the fragment has no "{key}" of {path[:200]}')


def _list_at(root: Json, path: str) -> list[Any]:
    holder, key = _find_holder(root, path)
    found = _get(holder, key, path)
    if not isinstance(found, list):
        raise InvalidOverride(f"{path[:200]} is not a list")
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
