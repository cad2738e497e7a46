"""Edit the entries of one object or list in a JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from cogwork.config.text.json_entries import Entry
from cogwork.config.text.json_layout import Deletion, JsonLayout
from cogwork.config.text.positions import Json, Span
from cogwork.config.text.replacements import Replacement


class ContainerEdit:
    """Collects the edits of an object or a list, and returns the replacements that make them."""

    def __init__(self, text: str, layout: JsonLayout, span: Span, entries: Sequence[Entry]) -> None:
        self._text = text
        self._layout = layout
        self._span = span
        self._entries = entries
        self._removed: set[int] = set()
        self._new_keys: dict[int, str] = {}
        self._new_values: dict[int, Json] = {}
        self._inserted: dict[int, list[tuple[str | None, Json]]] = {}
        """The keys and values of new entries, by the number of the entry before which they are
        inserted."""

    def remove(self, key: str | int) -> None:
        self._removed.update(self._find(key))

    def remove_duplicates(self, key: str | int) -> None:
        self._removed.update(self._find(key)[1:])

    def insert(self, index: int, value: Json) -> None:
        self._inserted.setdefault(index, []).append((None, value))

    def set(self, key: str | int, value: Json) -> None:
        if found := self._find(key):
            self._new_values[found[0]] = value
        else:
            self._inserted.setdefault(len(self._entries), []).append((str(key), value))

    def rename(self, key: str, new: str) -> bool:
        """Return False if the object already has the new key."""
        first = self._find(key)[0]
        self.remove_duplicates(key)
        if any(
            self._new_keys.get(number, entry.key) == new
            for number, entry in enumerate(self._entries)
            if number not in (first, *self._removed)
        ):
            return False
        self._new_keys[first] = new
        return True

    def replacements(self) -> Iterator[Replacement]:
        kept = [n for n in range(len(self._entries)) if n not in self._removed]
        if not kept and not self._has_other_comments():
            yield Replacement(self._span, self._format_emptied())
            return
        for number in kept:
            yield from self._replace_parts(number)
        yield from self._place_insertions(kept)
        yield from self._delete(kept)

    def _find(self, key: str | int) -> list[int]:
        return [number for number, entry in enumerate(self._entries) if entry.key == key]

    def _replace_parts(self, number: int) -> Iterator[Replacement]:
        entry = self._entries[number]
        if number in self._new_keys and entry.key_span is not None:
            yield Replacement(entry.key_span, _format_key(self._new_keys[number]))
        if number in self._new_values:
            over_lines = self._layout.begins_line(entry.start)
            indent = self._layout.indent_at(entry.start)
            value = self._layout.format(self._new_values[number], indent, over_lines=over_lines)
            yield Replacement(entry.value_span, value)

    def _place_insertions(self, kept: Sequence[int]) -> Iterator[Replacement]:
        """Insert the new entries, and the comma that the entry before them may need."""
        last = max(self._inserted, default=-1)
        is_open_ended = kept and last > kept[-1]
        if kept and is_open_ended and self._entries[kept[-1]].comma is None:
            end = self._entries[kept[-1]].end
            yield Replacement(Span(end, end), ",")
        for slot, new in sorted(self._inserted.items()):
            anchor = max((number for number in kept if number < slot), default=None)
            following = min((number for number in kept if number >= slot), default=None)
            if anchor is not None:
                ends_without_comma = (
                    slot == last and following is None and not self._has_trailing_comma()
                )
                yield self._insert_after(anchor, new, ends_without_comma=ends_without_comma)
            elif following is not None:
                yield self._insert_before(following, new)
            else:
                yield self._insert_first(new, ends_without_comma=slot == last)

    def _insert_after(
        self, anchor: int, new: Sequence[tuple[str | None, Json]], *, ends_without_comma: bool
    ) -> Replacement:
        entry, layout = self._entries[anchor], self._layout
        end = entry.end if entry.comma is None else entry.comma + 1
        place = layout.skip_comments_of_line(end)
        over_lines = layout.begins_line(entry.start) or "//" in self._text[end:place]
        indent = layout.indent_at(entry.start)
        gap = layout.line_break + indent if over_lines else " "
        parts = [gap + self._format_entry(each, indent, over_lines=over_lines) for each in new]
        return Replacement(Span(place, place), ",".join(parts) + ("," * (not ends_without_comma)))

    def _insert_before(self, following: int, new: Sequence[tuple[str | None, Json]]) -> Replacement:
        start = self._entries[following].start
        over_lines = self._layout.begins_line(start)
        indent = self._layout.indent_at(start)
        gap = self._layout.line_break + indent if over_lines else " "
        parts = [self._format_entry(each, indent, over_lines=over_lines) for each in new]
        return Replacement(Span(start, start), "".join(f"{part},{gap}" for part in parts))

    def _insert_first(
        self, new: Sequence[tuple[str | None, Json]], *, ends_without_comma: bool
    ) -> Replacement:
        place = self._layout.skip_comments_of_line(self._span.start + 1)
        indent = self._layout.indent_at(self._span.start) + self._layout.unit
        gap = self._layout.line_break + indent
        parts = [gap + self._format_entry(each, indent, over_lines=True) for each in new]
        return Replacement(Span(place, place), ",".join(parts) + ("," * (not ends_without_comma)))

    def _format_emptied(self) -> str:
        """Return the whole container if none of its entries and comments is kept."""
        opening, closing = self._text[self._span.start], self._text[self._span.end - 1]
        new = [each for _, some in sorted(self._inserted.items()) for each in some]
        outer = self._layout.indent_at(self._span.start)
        if not new:
            return opening + closing
        if not self._layout.has_lines:
            listed = [self._format_entry(each, "", over_lines=False) for each in new]
            return f"{opening}{', '.join(listed)}{closing}"
        inner = outer + self._layout.unit
        lines = [self._format_entry(each, inner, over_lines=True) for each in new]
        gap = self._layout.line_break
        return f"{opening}{gap}{inner}{f',{gap}{inner}'.join(lines)}{gap}{outer}{closing}"

    def _format_entry(
        self, entry: tuple[str | None, Json], indent: str, *, over_lines: bool
    ) -> str:
        key, value = entry
        text = self._layout.format(value, indent, over_lines=over_lines)
        return text if key is None else f"{_format_key(key)}: {text}"

    def _has_trailing_comma(self) -> bool:
        return bool(self._entries) and self._entries[-1].comma is not None

    def _delete(self, kept: Sequence[int]) -> Iterator[Replacement]:
        pieces = [piece for number in self._removed for piece in self._find_pieces(number)]
        ends_kept = bool(kept) and max(self._inserted, default=-1) <= kept[-1]
        if ends_kept and not self._has_trailing_comma():
            comma = self._entries[kept[-1]].comma
            if comma is not None:
                pieces.append(Deletion(comma, comma + 1, is_before_entry=False))
        for deletion in self._merge(sorted(pieces)):
            yield Replacement(self._layout.tidy(deletion), "")

    def _find_pieces(self, number: int) -> Iterator[Deletion]:
        """Yield the entry, its comma and the comment after it on the same line."""
        entry = self._entries[number]
        end = entry.end
        if entry.comma is not None:
            if "\n" in self._text[end : entry.comma]:
                # A comment before the comma may be about the next entry.
                yield Deletion(entry.comma, entry.comma + 1, is_before_entry=True)
            else:
                end = entry.comma + 1
        if self._layout.begins_line(entry.start):
            end = self._layout.skip_comments_of_line(end)
        yield Deletion(entry.start, end, is_before_entry=entry.comma is not None)

    def _merge(self, pieces: Sequence[Deletion]) -> list[Deletion]:
        merged: list[Deletion] = []
        for piece in pieces:
            if merged and not self._text[merged[-1].end : piece.start].strip():
                merged[-1] = Deletion(merged[-1].start, piece.end, piece.is_before_entry)
            else:
                merged.append(piece)
        return merged

    def _has_other_comments(self) -> bool:
        """Whether comments would remain in the container after all of its entries are removed."""
        rest, done = [], self._span.start + 1
        pieces = (piece for number in self._removed for piece in self._find_pieces(number))
        for piece in sorted(pieces):
            rest.append(self._text[done : piece.start])
            done = piece.end
        return bool("".join((*rest, self._text[done : self._span.end - 1])).strip())


def _format_key(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)
