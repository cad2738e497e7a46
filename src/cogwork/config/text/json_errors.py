"""Explain why a text is not valid JSON.

This code runs only after a pattern of the reader has failed to match. It scans the same place
again, in smaller steps.
"""

import re
from typing import Final, NoReturn

from cogwork.config.text.json_grammar import (
    MAX_DIGITS,
    SCALAR_RE,
    STRING,
    OpenBracket,
    OpenList,
    OpenObject,
    skip_whitespace,
)
from cogwork.config.text.positions import Span, position_at


class JsonSyntaxError(Exception):
    def __init__(self, message: str, span: Span, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.hint = hint

    @property
    def expected(self) -> str:
        """The part of the message about the expected input, which does not quote the text."""
        return self.message.partition(", but ")[0]


def explain_root(text: str, pos: int) -> NoReturn:
    _check_comment(text, pos)
    if pos == len(text):
        what = "only whitespace and comments" if text.strip() else "an empty text"
        raise JsonSyntaxError(
            f"expected a JSON value, but found {what}", Span(pos, pos), "write at least {}"
        )
    _check_value(text, pos, "a JSON value")
    raise AssertionError("internal error: the reader refused a valid JSON value")


def explain_rest(text: str, pos: int) -> NoReturn:
    _check_comment(text, pos)
    closes = text[pos] in "]}"
    raise JsonSyntaxError(
        f"expected the end of the text after the value, but found {_describe_found(text, pos)}",
        _found_span(text, pos),
        "remove this bracket: it closes nothing" if closes else "remove everything after the value",
    )


def explain_member(text: str, top: OpenObject, pos: int) -> NoReturn:
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    if text[pos] != '"':
        _explain_key(text, pos)
    key_end = _check_string(text, pos)
    key = clip(text[pos:key_end])
    colon = skip_whitespace(text, key_end)
    _check_comment(text, colon)
    if not text.startswith(":", colon):
        raise JsonSyntaxError(
            f"expected a colon after the key {key}, but found {_describe_found(text, colon)}",
            Span(key_end, key_end),
            _QUOTE_MISSING
            if _is_followed_by_word(text, key_end)
            else f"write {key}: followed by the value",
        )
    end = _check_value(text, skip_whitespace(text, colon + 1), f"a value for {key}")
    explain_after_value(text, top, text[pos + 1 : key_end - 1], end)


def explain_item(text: str, top: OpenList, pos: int) -> NoReturn:
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    end = _check_value(text, pos, "a value or ]")
    explain_after_value(text, top, len(top.value), end)


def _explain_key(text: str, pos: int) -> NoReturn:
    found = _describe_found(text, pos)
    hint = "start the next key with a double quote"
    if text[pos] == "'":
        hint = "write keys in double quotes"
    elif text[pos] == ",":
        hint = "remove this comma"
    elif text[pos] == "{":
        hint = "close the object before this one with }"
    elif text[pos] in "“”„«»":
        hint = 'these are typographic quotes: write "'
    elif _BARE_RE.match(text, pos):
        hint = f'put the key in double quotes: "{found}"'
    raise JsonSyntaxError(
        f"expected a key in double quotes or }}, but found {found}", _found_span(text, pos), hint
    )


def explain_after_value(text: str, top: OpenBracket, key: str | int, end: int) -> NoReturn:
    pos = skip_whitespace(text, end)
    _check_comment(text, pos)
    _check_closed(text, top, pos)
    where = f"item {key + 1} of the list" if isinstance(key, int) else f'the value of "{key}"'
    raise JsonSyntaxError(
        f"expected a comma or {top.closer} after {clip(where)}, but found "
        f"{_describe_found(text, pos)}",
        Span(end, end),
        _after_value_hint(text, end, pos),
    )


_QUOTE_MISSING = "is a quote missing before this?"


def _is_followed_by_word(text: str, end: int) -> bool:
    """Whether a word directly follows a string, which happens if a quote is missing earlier."""
    return text[end - 1] == '"' and text[end : end + 1].isalnum()


def _after_value_hint(text: str, end: int, pos: int) -> str:
    if text[pos] == ":":
        return "a list has no keys: use { and } for an object"
    return _QUOTE_MISSING if _is_followed_by_word(text, end) else "add a comma here"


def _check_closed(text: str, top: OpenBracket, pos: int) -> None:
    if pos < len(text) and text[pos] not in "]}":
        return
    line, column = position_at(text, top.start)
    found = "the text ends"
    if pos < len(text):
        wrong = position_at(text, pos)
        found = f"found {text[pos]} at line {wrong.line}, column {wrong.column}"
    raise JsonSyntaxError(
        f"expected {top.closer} to close the {top.noun} opened at line {line}, column {column},"
        f" but {found}",
        Span(top.start, top.start + 1),
        f"add the {top.closer} that closes this {top.bracket}",
    )


def _check_comment(text: str, pos: int) -> None:
    if text.startswith("/*", pos):
        raise JsonSyntaxError(
            "expected */ to close this comment, but the text ends", Span(pos, pos + 2), "add */"
        )
    if text.startswith(("/", "#"), pos):
        raise JsonSyntaxError(
            f"expected JSON or a comment, but found {text[pos]}",
            Span(pos, pos + 1),
            "start a comment with //",
        )


# Matches up to the first invalid character: a bad escape, a control character or the end.
_GOOD_STRING_RE = re.compile(STRING[:-1])
_BAD_ESCAPE_RE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3}|[^\x00-\x1f])?")
_CONTROL_ESCAPES: Final = {"\t": r"\t", "\b": r"\b", "\f": r"\f"}


def _check_string(text: str, start: int) -> int:
    match = _GOOD_STRING_RE.match(text, start)
    assert match is not None  # the caller has checked the opening quote
    end = match.end()
    if text.startswith('"', end):
        return end + 1
    if end == len(text) or text[end] in "\n\r":
        raise JsonSyntaxError(
            f"expected a closing quote, but found {_describe_found(text, end)}",
            Span(start, end),
            r'close the string with "; write a line break inside a string as \n',
        )
    if text[end] == "\\":
        _explain_escape(text, end)
    escape = _CONTROL_ESCAPES.get(text[end], f"\\u{ord(text[end]):04x}")
    raise JsonSyntaxError(
        f"expected the string to continue, but found the control character "
        f"{_describe_found(text, end)}",
        Span(end, end + 1),
        f"write it as {escape}",
    )


def _explain_escape(text: str, pos: int) -> NoReturn:
    bad = _BAD_ESCAPE_RE.match(text, pos)
    assert bad is not None  # the caller has checked the backslash
    if bad[0].startswith("\\u"):
        expected = r"four hexadecimal digits after \u"
        hint = r"write a literal backslash as \\, or a character as in \u00e9"
    else:
        expected, hint = r'one of "\/bfnrtu after a backslash', r"write a literal backslash as \\"
    raise JsonSyntaxError(f"expected {expected}, but found {bad[0]}", Span(*bad.span()), hint)


_BARE_RE = re.compile(r"[\w$.+-]++")
_NUMBER_LIKE_RE = re.compile(r"[+-]?\.?[0-9]")
_LEADING_ZERO_RE = re.compile(r"(-?)0+([0-9]++.*)")
_WORD_HINTS: Final = {
    "nan": "JSON has no NaN: write null or omit it",
    "infinity": "JSON has no infinity: write null or a large number",
    "inf": "JSON has no infinity: write null or a large number",
    "none": "write null",
    "nil": "write null",
    "undefined": "write null or omit it",
    "true": "write true in lowercase",
    "false": "write false in lowercase",
    "null": "write null in lowercase",
}


def _check_value(text: str, pos: int, expected: str) -> int:
    """Return the end of the scalar at `pos`. Raise JsonSyntaxError if there is none."""
    _check_comment(text, pos)
    if text.startswith('"', pos):
        return _check_string(text, pos)
    bare = _BARE_RE.match(text, pos)
    if bare and SCALAR_RE.fullmatch(bare[0]):
        return bare.end()
    if bare and _NUMBER_LIKE_RE.match(bare[0]):
        _explain_number(bare[0], Span(*bare.span()))
    raise JsonSyntaxError(
        f"expected {expected}, but found {_describe_found(text, pos)}",
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
        expected = f"an integer of at most {MAX_DIGITS} digits"
        found, hint = f"{len(digits)} digits", "write it as a string"
    else:
        expected, found = "a number", clip(raw)
        hint = "write it like 12, -0.5 or 1e3, or put it in double quotes"
        if zero := _LEADING_ZERO_RE.fullmatch(raw):
            expected, hint = "a number without leading zeros", f"write {clip(zero[1] + zero[2])}"
    raise JsonSyntaxError(f"expected {expected}, but found {found}", span, hint)


_FOUND_RE = re.compile(r"""["'][^"'\\\x00-\x1f]{0,40}+["']?|[\w$.+-]++|.""", re.DOTALL)
_CHARACTER_NAMES: Final = {
    ",": "a comma",
    ":": "a colon",
    "\n": "the end of the line",
    "\r": "the end of the line",
}


def _found_span(text: str, pos: int) -> Span:
    match = _FOUND_RE.match(text, pos)
    return Span(*match.span()) if match else Span(pos, pos)


def _describe_found(text: str, pos: int) -> str:
    start, end = _found_span(text, pos)
    if start == end:
        return "the end of the text"
    found = text[start:end]
    return _CHARACTER_NAMES.get(found) or clip(found)


def clip(text: str) -> str:
    return "".join(map(escape_unprintable, text if len(text) <= 48 else text[:45] + "..."))


def escape_unprintable(character: str) -> str:
    return character if character.isprintable() else f"U+{ord(character):04X}"
