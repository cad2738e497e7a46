"""Edit a JSON text and keep everything else: comments, order, indentation and variables.

Every edit names its place by a pointer into the text before all edits. An edit inside a value that
another edit removes or replaces has no effect. An entry is removed with its comma, and with the
comment after it if both fill the rest of its line. Comments on lines of their own stay.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cogwork.config.text.json_container_edit import ContainerEdit
from cogwork.config.text.json_entries import list_entries
from cogwork.config.text.json_layout import JsonLayout
from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json, Pointer, format_pointer
from cogwork.config.text.replacements import Replacement, replace_spans
from cogwork.config.text.substitution import hide_variables
from cogwork.core.errors import CogworkError


class ImpossibleEdit(CogworkError):
    """The text has no place for the edit. The message names the place, but no values."""


@dataclass(frozen=True, slots=True)
class SetValue:
    """Replace a value, or add a member to the end of an object."""

    pointer: Pointer
    value: Json


@dataclass(frozen=True, slots=True)
class InsertItem:
    """Insert an item before the item of a list that the pointer names; its length means the end."""

    pointer: Pointer
    value: Json


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a member, with all its duplicates, or an item."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class RemoveDuplicates:
    """Remove the duplicates of a member, and keep the first, which is the one that is used."""

    pointer: Pointer


@dataclass(frozen=True, slots=True)
class Rename:
    """Replace the key of a member, and remove the duplicates of the member."""

    pointer: Pointer
    key: str


Edit = SetValue | InsertItem | Remove | RemoveDuplicates | Rename


def edit_json(text: str, edits: Iterable[Edit]) -> str:
    """Return the edited text. Raise ImpossibleEdit, and JsonSyntaxError if the text is invalid."""
    return replace_spans(text, find_replacements(text, edits))


def find_replacements(text: str, edits: Iterable[Edit]) -> list[Replacement]:
    """Return the replacements that make the edits, sorted and without overlaps."""
    return _Editor(hide_variables(text)).run(tuple(edits))


class _Editor:
    def __init__(self, text: str) -> None:
        self._text = text
        self._document = read_json(text)
        self._layout = JsonLayout(text)

    def run(self, edits: Sequence[Edit]) -> list[Replacement]:
        for edit in edits:
            self._require_place(edit)
        covering = {edit.pointer for edit in edits if self._replaces_value(edit)}
        groups: dict[Pointer, list[Edit]] = {}
        found: list[Replacement] = []
        for edit in edits:
            pointer = edit.pointer
            if any(pointer[:length] in covering for length in range(len(pointer))):
                continue
            if pointer:
                groups.setdefault(pointer[:-1], []).append(edit)
            elif isinstance(edit, SetValue):
                new = self._layout.format(edit.value, "", over_lines=self._layout.has_lines)
                found.append(Replacement(self._document.value_span(()), new))
        for parent, group in groups.items():
            found += self._edit_container(parent, group)
        return sorted(found, key=lambda each: each.span)

    def _replaces_value(self, edit: Edit) -> bool:
        if isinstance(edit, SetValue):
            return self._exists(edit.pointer)
        return isinstance(edit, Remove)

    def _require_place(self, edit: Edit) -> None:
        if not edit.pointer:
            if not isinstance(edit, SetValue):
                raise ImpossibleEdit("the whole text can only be replaced")
            return
        parent = self._find(edit.pointer[:-1])
        last = edit.pointer[-1]
        if isinstance(edit, SetValue):
            is_possible = isinstance(parent, dict) or self._exists(edit.pointer)
        elif isinstance(edit, InsertItem):
            is_possible = (
                isinstance(parent, list) and isinstance(last, int) and 0 <= last <= len(parent)
            )
        else:
            is_possible = self._exists(edit.pointer)
        if not is_possible:
            raise ImpossibleEdit(f"the text has no {format_pointer(edit.pointer)}")

    def _exists(self, pointer: Pointer) -> bool:
        return self._find(pointer) is not _MISSING

    def _find(self, pointer: Pointer) -> object:
        value: object = self._document.value
        for step in pointer:
            value = _child_of(value, step)
        return value

    def _edit_container(self, parent: Pointer, edits: Sequence[Edit]) -> Iterator[Replacement]:
        span = self._document.value_span(parent)
        entries = list_entries(self._text, span)
        container = ContainerEdit(self._text, self._layout, span, entries)
        # A key that is removed is free for another member.
        for edit in sorted(edits, key=lambda edit: not isinstance(edit, Remove)):
            key = edit.pointer[-1]
            if isinstance(edit, Remove):
                container.remove(key)
            elif isinstance(edit, RemoveDuplicates):
                container.remove_duplicates(key)
            elif isinstance(edit, InsertItem):
                container.insert(int(key), edit.value)
            elif isinstance(edit, SetValue):
                container.set(key, edit.value)
            elif not container.rename(str(key), edit.key):
                raise ImpossibleEdit(
                    f"{format_pointer(edit.pointer)} cannot be renamed to {json.dumps(edit.key)}: "
                    "this key exists, too"
                )
        return container.replacements()


_MISSING = object()


def _child_of(value: object, step: str | int) -> object:
    if isinstance(value, dict):
        return value.get(step, _MISSING)
    if isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
        return value[step]
    return _MISSING
