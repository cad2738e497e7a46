"""A JSON reader that records the location of every key and value."""

import json
import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.config.text.json_errors import (
    JsonSyntaxError,
    clip,
    escape_unprintable,
    explain_after_value,
    explain_item,
    explain_member,
    explain_rest,
    explain_root,
)
from cogwork.config.text.json_grammar import (
    ITEM_RE,
    LITERALS,
    MAX_DEPTH,
    MEMBER_RE,
    ROOT_RE,
    OpenBracket,
    OpenList,
    OpenObject,
    ValueOffsets,
    skip_whitespace,
    string_span,
)
from cogwork.config.text.positions import BYTE_ORDER_MARK, Json, Pointer, Span


class DuplicateKey(NamedTuple):
    pointer: Pointer
    first: Span
    second: Span


@dataclass(frozen=True, slots=True)
class Document:
    text: str
    value: Json
    duplicates: tuple[DuplicateKey, ...]
    _root: ValueOffsets = field(repr=False)

    def value_span(self, pointer: Pointer) -> Span:
        """Return the span of the value, or of its nearest existing ancestor."""
        offsets = self._root
        for step in pointer:
            inner = offsets[3].get(step) if offsets[3] else None
            if inner is None:
                break
            offsets = inner
        return Span(offsets[1], offsets[2])

    def key_span(self, pointer: Pointer) -> Span | None:
        """Return the span of the quoted key; None for list items, the root and missing keys."""
        offsets: ValueOffsets | None = self._root
        for step in pointer:
            offsets = offsets[3].get(step) if offsets and offsets[3] else None
        if offsets is None or offsets[0] < 0:
            return None
        return string_span(self.text, offsets[0])


def read_json(text: str) -> Document:
    """Read strict JSON, plus comments and trailing commas. Of duplicate keys, the first is used."""
    return _Reader(text).read()


class _Reader:
    """An iterative parser with an explicit stack, so that deep nesting cannot overflow Python's."""

    __slots__ = ("duplicates", "open", "root", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[OpenBracket] = []
        self.duplicates: list[DuplicateKey] = []
        self.root: ValueOffsets = (-1, 0, 0, None)

    def read(self) -> Document:
        text = self.text
        _check_unicode(text)
        start = skip_whitespace(text, 1 if text.startswith(BYTE_ORDER_MARK) else 0)
        match = ROOT_RE.match(text, start)
        if match is None:
            explain_root(text, start)
        if match.lastgroup == "open":
            value: Json = self._push("", -1, start)
            self._read_brackets(match.end())
        else:
            value = self._parse_scalar(match.lastgroup, start, match.end())
            self.root = (-1, start, match.end(), None)
        rest = skip_whitespace(text, self.root[2])
        if rest < len(text):
            explain_rest(text, rest)
        return Document(text, value, tuple(self.duplicates), self.root)

    def _read_brackets(self, pos: int) -> None:
        while self.open:
            top = self.open[-1]
            if isinstance(top, OpenObject):
                pos = self._read_members(top, pos)
            else:
                pos = self._read_items(top, pos)

    def _read_members(self, top: OpenObject, pos: int) -> int:
        """Read to the end of the object, or to the next opening bracket inside it."""
        text, value, places = self.text, top.value, top.places
        while match := MEMBER_RE.match(text, pos):
            key_start, key_end = match.span("key")
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            pos = match.end()
            key = text[key_start + 1 : key_end - 1]
            if "\\" in key:
                key = _unescape(text, key_start, key_end)
            if key in value:
                self._note_duplicate(key, Span(key_start, key_end))
            if kind == "open":
                value.setdefault(key, self._push(key, key_start, start))
                return pos
            value.setdefault(key, self._parse_scalar(kind, start, end))
            places.setdefault(key, (key_start, start, end, None))
        if not text.startswith("}", pos):
            explain_member(text, top, pos)
        return self._pop(pos + 1)

    def _read_items(self, top: OpenList, pos: int) -> int:
        """Read to the end of the list, or to the next opening bracket inside it."""
        text, value, places = self.text, top.value, top.places
        while match := ITEM_RE.match(text, pos):
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            pos = match.end()
            if kind == "open":
                value.append(self._push(len(value), -1, start))
                return pos
            places[len(value)] = (-1, start, end, None)
            value.append(self._parse_scalar(kind, start, end))
        if not text.startswith("]", pos):
            explain_item(text, top, pos)
        return self._pop(pos + 1)

    def _push(self, key: str | int, key_start: int, start: int) -> Json:
        if len(self.open) == MAX_DEPTH:
            raise JsonSyntaxError(
                f"expected at most {MAX_DEPTH} nested brackets, but found one more",
                Span(start, start + 1),
                "reduce the nesting",
            )
        kind = OpenObject if self.text[start] == "{" else OpenList
        opened = kind(key, key_start, start)
        self.open.append(opened)
        return opened.value

    def _pop(self, end: int) -> int:
        closed = self.open.pop()
        offsets: ValueOffsets = (closed.key_start, closed.start, end, closed.places)
        if not self.open:
            self.root = offsets
            return end
        parent = self.open[-1]
        parent.places.setdefault(closed.key, offsets)
        match = parent.after_value.match(self.text, end)
        if match is None:
            explain_after_value(self.text, parent, closed.key, end)
        return match.end()

    def _parse_scalar(self, kind: str | None, start: int, end: int) -> Json:
        raw = self.text[start:end]
        if kind == "string":
            return _unescape(self.text, start, end) if "\\" in raw else raw[1:-1]
        if kind == "integer":
            return int(raw)
        if kind == "word":
            return LITERALS[raw]
        return _parse_float(raw, start)

    def _note_duplicate(self, key: str, second: Span) -> None:
        first = string_span(self.text, self.open[-1].places[key][0])
        trail = [opened.key for opened in self.open[1:]]
        self.duplicates.append(DuplicateKey((*trail, key), first, second))


def _parse_float(raw: str, start: int) -> float:
    value = float(raw)
    if math.isinf(value):
        raise JsonSyntaxError(
            f"expected a number up to 1.8e308, but found {clip(raw)}",
            Span(start, start + len(raw)),
            "write a smaller number",
        )
    return value


_SURROGATE_RE = re.compile(r"[\ud800-\udfff]")
_HIGH, _LOW = r"u[dD][89abAB][0-9a-fA-F]{2}", r"u[dD][c-fC-F][0-9a-fA-F]{2}"
_ESCAPE_RE = re.compile(rf"\\(?:{_HIGH}\\{_LOW}|(?P<lone>{_HIGH}|{_LOW})|.)")


def _unescape(text: str, start: int, end: int) -> str:
    value: str = json.loads(text[start:end])
    if _SURROGATE_RE.search(value):
        lone = next(found for found in _ESCAPE_RE.finditer(text, start, end) if found["lone"])
        raise JsonSyntaxError(
            f"expected a whole character, but found {lone[0]}, half of a surrogate pair",
            Span(*lone.span()),
            "write both halves of the pair, or the character itself",
        )
    return value


def _check_unicode(text: str) -> None:
    # Refuse lone surrogates: UTF-8 cannot encode them, so they could be neither sent nor stored.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise JsonSyntaxError(
            f"expected a whole character, but found {escape_unprintable(text[error.start])},"
            " half of a surrogate pair",
            Span(error.start, error.start + 1),
            "save the file as UTF-8",
        ) from None
