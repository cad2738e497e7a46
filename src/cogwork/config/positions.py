"""A JSON reader that keeps the place of every key and value."""

import json
import math
import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, NoReturn, TypeAlias

Json: TypeAlias = bool | int | float | str | list["Json"] | dict[str, "Json"] | None
Pointer: TypeAlias = tuple[str | int, ...]

MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 300


class Span(NamedTuple):
    """Offsets into the text, half open."""

    start: int
    end: int


class Position(NamedTuple):
    """Counted from 1; columns count characters."""

    line: int
    column: int


class DuplicateKey(NamedTuple):
    pointer: Pointer
    first: Span
    second: Span


class JsonFault(Exception):
    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint


# The start of the key (-1 without one), the start and end of the value, the places inside it.
# Plain tuples and offsets: one is made for every value, and only a few are ever asked for.
_Place: TypeAlias = tuple[int, int, int, "_Places | None"]
_Places: TypeAlias = dict[str | int, _Place]


@dataclass(frozen=True, slots=True)
class Document:
    text: str
    value: Json
    duplicates: tuple[DuplicateKey, ...]
    _root: _Place = field(repr=False)

    def value_span(self, pointer: Pointer) -> Span:
        """The span of the value, or of its nearest ancestor that exists."""
        place = self._root
        for step in pointer:
            inner = place[3].get(step) if place[3] else None
            if inner is None:
                break
            place = inner
        return Span(place[1], place[2])

    def key_span(self, pointer: Pointer) -> Span | None:
        """The span of the key with its quotes; None for list items, the root and missing keys."""
        place: _Place | None = self._root
        for step in pointer:
            place = place[3].get(step) if place and place[3] else None
        if place is None or place[0] < 0:
            return None
        return _string_span(self.text, place[0])


def read(text: str) -> Document:
    """Read strict JSON, plus comments and trailing commas; of equal keys the first one counts."""
    return _Reader(text).document()


def pointer_text(pointer: Pointer) -> str:
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in pointer)


def position_at(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    # No editor shows the mark, so it takes no column.
    mark = 1 if line_start == 0 and offset > 0 and text.startswith(_BYTE_ORDER_MARK) else 0
    return Position(text.count("\n", 0, offset) + 1, offset - line_start - mark + 1)


_BYTE_ORDER_MARK = "\ufeff"

# Every repetition is possessive or has one way only to match, so a failed match costs linear time.
_SPACE = r"[ \t\n\r]*+"
_COMMENT = r"/(?:/[^\n\r]*+|\*[^*]*+\*++(?:[^*/][^*]*+\*++)*/)"
# `(?:/x(?:/x)*|)` and not `(?:/x)*`: the engine passes over a literal faster than a repetition.
_GAP = rf"{_SPACE}(?:{_COMMENT}{_SPACE}(?:{_COMMENT}{_SPACE})*|)"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_STRING = rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*"'
_EXPONENT = r"[eE][+-]?[0-9]++"
_SCALAR = (
    rf"(?P<string>{_STRING})"
    rf"|(?P<integer>-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})(?![0-9.eE]))"
    rf"|(?P<real>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++(?:{_EXPONENT})?|{_EXPONENT}))"
    r"|(?P<word>true|false|null)"
)


def _value_in(closer: str) -> str:
    """A scalar with what follows it, or an opening bracket."""
    return rf"(?:(?:{_SCALAR}){_after_value(closer)}|(?P<open>[{{\[]){_GAP})"


def _after_value(closer: str) -> str:
    return rf"{_GAP}(?:,{_GAP}|(?={re.escape(closer)}))"


_GAP_RE = re.compile(_GAP)
_STRING_RE = re.compile(_STRING)
_SCALAR_RE = re.compile(_SCALAR)
_ROOT_RE = re.compile(rf"{_SCALAR}|(?P<open>[{{\[]){_GAP}")
_MEMBER_RE = re.compile(rf"(?P<key>{_STRING}){_GAP}:{_GAP}{_value_in('}')}")
_ITEM_RE = re.compile(_value_in("]"))
_AFTER_MEMBER_RE = re.compile(_after_value("}"))
_AFTER_ITEM_RE = re.compile(_after_value("]"))
_WORDS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


class _OpenObject:
    __slots__ = ("key", "key_start", "places", "start", "value")
    bracket, closer, noun, after_value = "{", "}", "object", _AFTER_MEMBER_RE

    def __init__(self, key: str | int, key_start: int, start: int) -> None:
        self.key = key
        self.key_start = key_start
        self.start = start
        self.value: dict[str, Json] = {}
        self.places: _Places = {}


class _OpenList:
    __slots__ = ("key", "key_start", "places", "start", "value")
    bracket, closer, noun, after_value = "[", "]", "list", _AFTER_ITEM_RE

    def __init__(self, key: str | int, key_start: int, start: int) -> None:
        self.key = key
        self.key_start = key_start
        self.start = start
        self.value: list[Json] = []
        self.places: _Places = {}


_Open: TypeAlias = _OpenObject | _OpenList


class _Reader:
    """Keeps the open brackets in a list: the depth of a file must not use up the call stack."""

    __slots__ = ("duplicates", "open", "root", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.open: list[_Open] = []
        self.duplicates: list[DuplicateKey] = []
        self.root: _Place = (-1, 0, 0, None)

    def document(self) -> Document:
        text = self.text
        _check_unicode(text)
        start = _skip(text, 1 if text.startswith(_BYTE_ORDER_MARK) else 0)
        match = _ROOT_RE.match(text, start)
        if match is None:
            _explain_root(text, start)
        if match.lastgroup == "open":
            value: Json = self._push("", -1, start)
            self._read_brackets(match.end())
        else:
            value = self._scalar(match.lastgroup, start, match.end())
            self.root = (-1, start, match.end(), None)
        rest = _skip(text, self.root[2])
        if rest < len(text):
            _explain_rest(text, rest)
        return Document(text, value, tuple(self.duplicates), self.root)

    def _read_brackets(self, pos: int) -> None:
        while self.open:
            top = self.open[-1]
            if isinstance(top, _OpenObject):
                pos = self._read_members(top, pos)
            else:
                pos = self._read_items(top, pos)

    def _read_members(self, top: _OpenObject, pos: int) -> int:
        """Read on to the end of the object, or into the next bracket inside it."""
        text, value, places = self.text, top.value, top.places
        while match := _MEMBER_RE.match(text, pos):
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
            value.setdefault(key, self._scalar(kind, start, end))
            places.setdefault(key, (key_start, start, end, None))
        if not text.startswith("}", pos):
            _explain_member(text, top, pos)
        return self._pop(pos + 1)

    def _read_items(self, top: _OpenList, pos: int) -> int:
        """Read on to the end of the list, or into the next bracket inside it."""
        text, value, places = self.text, top.value, top.places
        while match := _ITEM_RE.match(text, pos):
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            pos = match.end()
            if kind == "open":
                value.append(self._push(len(value), -1, start))
                return pos
            places[len(value)] = (-1, start, end, None)
            value.append(self._scalar(kind, start, end))
        if not text.startswith("]", pos):
            _explain_item(text, top, pos)
        return self._pop(pos + 1)

    def _push(self, key: str | int, key_start: int, start: int) -> Json:
        if len(self.open) == MAX_DEPTH:
            raise JsonFault(
                f"expected at most {MAX_DEPTH} brackets inside one another, but found one more",
                Span(start, start + 1),
                "make the structure flatter",
            )
        kind = _OpenObject if self.text[start] == "{" else _OpenList
        opened = kind(key, key_start, start)
        self.open.append(opened)
        return opened.value

    def _pop(self, end: int) -> int:
        closed = self.open.pop()
        place: _Place = (closed.key_start, closed.start, end, closed.places)
        if not self.open:
            self.root = place
            return end
        parent = self.open[-1]
        parent.places.setdefault(closed.key, place)
        match = parent.after_value.match(self.text, end)
        if match is None:
            _explain_after_value(self.text, parent, closed.key, end)
        return match.end()

    def _scalar(self, kind: str | None, start: int, end: int) -> Json:
        raw = self.text[start:end]
        if kind == "string":
            return _unescape(self.text, start, end) if "\\" in raw else raw[1:-1]
        if kind == "integer":
            return int(raw)
        if kind == "word":
            return _WORDS[raw]
        return _real(raw, start)

    def _note_duplicate(self, key: str, second: Span) -> None:
        first = _string_span(self.text, self.open[-1].places[key][0])
        trail = [opened.key for opened in self.open[1:]]
        self.duplicates.append(DuplicateKey((*trail, key), first, second))


def _skip(text: str, pos: int) -> int:
    """The end of the white space and comments at `pos`."""
    match = _GAP_RE.match(text, pos)
    assert match is not None  # the pattern matches the empty text
    return match.end()


def _string_span(text: str, start: int) -> Span:
    match = _STRING_RE.match(text, start)
    assert match is not None  # the reader has passed it before
    return Span(*match.span())


def _real(raw: str, start: int) -> float:
    value = float(raw)
    if math.isinf(value):
        raise JsonFault(
            f"expected a number up to 1.8e308, but found {_clip(raw)}",
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
        raise JsonFault(
            f"expected a whole character, but found {lone[0]}, one half of a surrogate pair",
            Span(*lone.span()),
            "write both halves, or the character itself",
        )
    return value


def _check_unicode(text: str) -> None:
    # No UTF-8 file can hold one, and a value with one could be neither sent nor stored.
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise JsonFault(
            f"expected a whole character, but found {_printable(text[error.start])},"
            " one half of a surrogate pair",
            Span(error.start, error.start + 1),
            "save the file as UTF-8",
        ) from None


# What follows runs only after a match has failed; it goes over the same place in small steps to
# say what is wrong there.


def _explain_root(text: str, pos: int) -> NoReturn:
    _check_comment(text, pos)
    if pos == len(text):
        what = "nothing but white space and comments" if text.strip() else "an empty text"
        raise JsonFault(
            f"expected a JSON value, but found {what}", Span(pos, pos), "write at least {}"
        )
    _check_value(text, pos, "a JSON value")
    raise AssertionError("a value that can be read has nothing to explain")


def _explain_rest(text: str, pos: int) -> NoReturn:
    _check_comment(text, pos)
    closes = text[pos] in "]}"
    raise JsonFault(
        f"expected the end of the text after the value, but found {_found(text, pos)}",
        _found_span(text, pos),
        "remove this bracket: nothing is open here" if closes else "remove what follows the value",
    )


def _explain_member(text: str, top: _OpenObject, pos: int) -> NoReturn:
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    if text[pos] != '"':
        _explain_key(text, pos)
    key_end = _check_string(text, pos)
    key = _clip(text[pos:key_end])
    colon = _skip(text, key_end)
    _check_comment(text, colon)
    if not text.startswith(":", colon):
        raise JsonFault(
            f"expected a colon after the key {key}, but found {_found(text, colon)}",
            Span(key_end, key_end),
            f"write {key}: and then the value",
        )
    end = _check_value(text, _skip(text, colon + 1), f"a value for {key}")
    _explain_after_value(text, top, text[pos + 1 : key_end - 1], end)


def _explain_item(text: str, top: _OpenList, pos: int) -> NoReturn:
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    end = _check_value(text, pos, "a value or ]")
    _explain_after_value(text, top, len(top.value), end)


def _explain_key(text: str, pos: int) -> NoReturn:
    found = _found(text, pos)
    hint = "start the next key with a double quote"
    if text[pos] == "'":
        hint = "write keys in double quotes"
    elif text[pos] == ",":
        hint = "remove this comma"
    elif _BARE_RE.match(text, pos):
        hint = f'put the key in double quotes: "{found}"'
    raise JsonFault(
        f"expected a key in double quotes or }}, but found {found}", _found_span(text, pos), hint
    )


def _explain_after_value(text: str, top: _Open, key: str | int, end: int) -> NoReturn:
    pos = _skip(text, end)
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    where = f"item {key + 1} of the list" if isinstance(key, int) else f'the value of "{key}"'
    raise JsonFault(
        f"expected a comma or {top.closer} after {_clip(where)}, but found {_found(text, pos)}",
        Span(end, end),
        "a list has no keys: write it with { and }" if text[pos] == ":" else "add a comma here",
    )


def _check_closed(text: str, top: _Open, pos: int) -> None:
    if pos < len(text) and text[pos] not in "]}":
        return
    line, column = position_at(text, top.start)
    found = "the text ends"
    if pos < len(text):
        wrong = position_at(text, pos)
        found = f"found {text[pos]} at line {wrong.line}, column {wrong.column}"
    raise JsonFault(
        f"expected {top.closer} to close the {top.noun} opened at line {line}, column {column},"
        f" but {found}",
        Span(top.start, top.start + 1),
        f"add the {top.closer} that belongs to this {top.bracket}",
    )


def _check_comment(text: str, pos: int) -> None:
    if text.startswith("/*", pos):
        raise JsonFault(
            "expected */ to close this comment, but the text ends", Span(pos, pos + 2), "add */"
        )
    if text.startswith(("/", "#"), pos):
        raise JsonFault(
            f"expected JSON or a comment, but found {text[pos]}",
            Span(pos, pos + 1),
            "start a comment with //",
        )


# Up to the first character that does not belong: a whole escape, a bad one, a control character.
_GOOD_STRING_RE = re.compile(_STRING[:-1])
_BAD_ESCAPE_RE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|[^\x00-\x1f])?")
_CONTROL_ESCAPES: Final = {"\t": r"\t", "\b": r"\b", "\f": r"\f"}


def _check_string(text: str, start: int) -> int:
    match = _GOOD_STRING_RE.match(text, start)
    assert match is not None  # the caller has seen the opening quote
    end = match.end()
    if text.startswith('"', end):
        return end + 1
    if end == len(text) or text[end] in "\n\r":
        raise JsonFault(
            f"expected a closing quote, but found {_found(text, end)}",
            Span(start, end),
            r'close the string with "; a line break inside a string is written \n',
        )
    if text[end] == "\\":
        _explain_escape(text, end)
    escape = _CONTROL_ESCAPES.get(text[end], f"\\u{ord(text[end]):04x}")
    raise JsonFault(
        f"expected the string to go on, but found the control character {_found(text, end)}",
        Span(end, end + 1),
        f"write it as {escape}",
    )


def _explain_escape(text: str, pos: int) -> NoReturn:
    bad = _BAD_ESCAPE_RE.match(text, pos)
    assert bad is not None  # the caller has seen the backslash
    if bad[0].startswith("\\u"):
        expected, hint = r"four hexadecimal digits after \u", r"write it like \u00e9"
    else:
        expected, hint = r'one of "\/bfnrtu after a backslash', r"write a backslash itself as \\"
    raise JsonFault(f"expected {expected}, but found {bad[0]}", Span(*bad.span()), hint)


_BARE_RE = re.compile(r"[\w$.+-]++")
_NUMBER_LIKE_RE = re.compile(r"[+-]?\.?[0-9]")
_LEADING_ZERO_RE = re.compile(r"(-?)0+([0-9]++.*)")
_WORD_HINTS: Final = {
    "nan": "JSON has no such number: write null or leave it out",
    "infinity": "JSON has no such number: write null or a large one",
    "inf": "JSON has no such number: write null or a large one",
    "none": "write null",
    "nil": "write null",
    "undefined": "write null or leave it out",
    "true": "write true in small letters",
    "false": "write false in small letters",
    "null": "write null in small letters",
}


def _check_value(text: str, pos: int, expected: str) -> int:
    """The end of the scalar at `pos`; a fault when there is none."""
    _check_comment(text, pos)
    if text.startswith('"', pos):
        return _check_string(text, pos)
    bare = _BARE_RE.match(text, pos)
    if bare and _SCALAR_RE.fullmatch(bare[0]):
        return bare.end()
    if bare and _NUMBER_LIKE_RE.match(bare[0]):
        _explain_number(bare[0], Span(*bare.span()))
    raise JsonFault(
        f"expected {expected}, but found {_found(text, pos)}",
        Span(*bare.span()) if bare else _found_span(text, pos),
        _value_hint(bare[0] if bare else text[pos : pos + 1]),
    )


def _value_hint(found: str) -> str:
    if found == "'":
        return "write strings in double quotes"
    if found == ",":
        return "remove this comma, or write a value before it"
    if _BARE_RE.match(found):
        return _WORD_HINTS.get(found.lstrip("+-").lower(), "put a string in double quotes")
    return "write a string, a number, true, false, null, a list or an object"


def _explain_number(raw: str, span: Span) -> NoReturn:
    digits = raw.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and digits[0] != "0":
        expected = f"a whole number of at most {MAX_DIGITS} digits"
        found, hint = f"one of {len(digits)}", "write it as a string"
    else:
        expected, found = "a number", _clip(raw)
        hint = "write it like 12, -0.5 or 1e3, or put it in double quotes"
        if zero := _LEADING_ZERO_RE.fullmatch(raw):
            expected, hint = "a number without leading zeros", f"write {_clip(zero[1] + zero[2])}"
    raise JsonFault(f"expected {expected}, but found {found}", span, hint)


_FOUND_RE = re.compile(r"""["'][^"'\\\x00-\x1f]{0,40}+["']?|[\w$.+-]++|.""", re.DOTALL)
_NAMES: Final = {
    ",": "a comma",
    ":": "a colon",
    "\n": "the end of the line",
    "\r": "the end of the line",
}


def _found_span(text: str, pos: int) -> Span:
    match = _FOUND_RE.match(text, pos)
    return Span(*match.span()) if match else Span(pos, pos)


def _found(text: str, pos: int) -> str:
    start, end = _found_span(text, pos)
    if start == end:
        return "the end of the text"
    found = text[start:end]
    return _NAMES.get(found) or _clip(found)


def _clip(text: str) -> str:
    return "".join(map(_printable, text if len(text) <= 48 else text[:45] + "..."))


def _printable(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"
