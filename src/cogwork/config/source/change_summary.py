"""A one-line summary of the changes between two texts of a configuration, without values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json
from cogwork.config.text.text_diff import summarize_lines
from cogwork.core.sentences import join_names

_MAX_TEXT_LENGTH = 1 << 20
"""Maximum number of characters of a text that is parsed. A longer text would take too long."""
_MAX_NAMES = 5
_MAX_NAME_LENGTH = 40


class _Change(NamedTuple):
    verb: str
    name: str


def summarize_change(before: str, after: str) -> str:
    """Return the names of the sections and items that were added, changed and removed.

    If a text cannot be parsed without substituting its variables, return the number of changed
    lines.
    """
    if max(len(before), len(after)) > _MAX_TEXT_LENGTH:
        return summarize_lines(before, after)
    try:
        old, new = read_json(before).value, read_json(after).value
    except JsonSyntaxError:
        return summarize_lines(before, after)
    changes = list(_compare_members(_as_object(old), _as_object(new)))
    if not changes:
        return "formatting only"
    parts = []
    for verb in ("added", "changed", "removed"):
        names = [change.name for change in changes if change.verb == verb]
        if names:
            parts.append(f"{verb} {join_names(names, _MAX_NAMES)}")
    return "; ".join(parts)


def _compare_members(old: dict[str, Json], new: dict[str, Json]) -> Iterator[_Change]:
    """Yield the changes of sections, and of named items within the sections."""
    for key in {**old, **new}:
        before, after = _index_items(old.get(key, [])), _index_items(new.get(key, []))
        if before is not None and after is not None:
            yield from _compare(before, after)
        else:
            yield from _compare(
                {key: old[key]} if key in old else {}, {key: new[key]} if key in new else {}
            )


def _compare(old: dict[str, Json], new: dict[str, Json]) -> Iterator[_Change]:
    for name in {**old, **new}:
        if name not in old:
            yield _Change("added", name[:_MAX_NAME_LENGTH])
        elif name not in new:
            yield _Change("removed", name[:_MAX_NAME_LENGTH])
        elif not _is_same(old[name], new[name]):
            yield _Change("changed", name[:_MAX_NAME_LENGTH])


def _index_items(value: Json) -> dict[str, Json] | None:
    """Return the items of a list by name; None unless every item has a unique name."""
    if not isinstance(value, list):
        return None
    items: dict[str, Json] = {}
    for item in value:
        name = item.get("name") if isinstance(item, dict) else None
        if not isinstance(name, str) or name in items:
            return None
        items[name] = item
    return items


def _as_object(value: Json) -> dict[str, Json]:
    return value if isinstance(value, dict) else {}


def _is_same(old: Json, new: Json) -> bool:
    """Compare two values; unlike in Python, 1 and true differ."""
    return old == new and repr(old) == repr(new)
