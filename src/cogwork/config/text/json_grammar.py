"""Regular expressions for JSON with comments and trailing commas, and types for the reader's
stack."""

import re
from typing import Final, TypeAlias

from cogwork.config.text.positions import Json, Span

MAX_DEPTH: Final = 100
MAX_DIGITS: Final = 300

# The start of the key (-1 without a key), the start and end of the value, and the members of the
# value. A plain tuple, because one is created for every value and only a few are ever looked up.
ValueOffsets: TypeAlias = tuple[int, int, int, "MemberOffsets | None"]
MemberOffsets: TypeAlias = dict[str | int, ValueOffsets]

# Every repetition is possessive or unambiguous, so that a failed match takes linear time.
_SPACE = r"[ \t\n\r]*+"
COMMENT: Final = r"/(?:/[^\n\r]*+|\*[^*]*+\*++(?:[^*/][^*]*+\*++)*/)"
# `(?:/x(?:/x)*|)` rather than `(?:/x)*`: the engine skips a literal faster than a repetition.
_GAP = rf"{_SPACE}(?:{COMMENT}{_SPACE}(?:{COMMENT}{_SPACE})*|)"
_PLAIN = r'[^"\\\x00-\x1f]*+'
STRING: Final = rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{{4}}){_PLAIN})*"'
_EXPONENT = r"[eE][+-]?[0-9]++"
_SCALAR = (
    rf"(?P<string>{STRING})"
    rf"|(?P<integer>-?(?:0|[1-9][0-9]{{0,{MAX_DIGITS - 1}}})(?![0-9.eE]))"
    rf"|(?P<real>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++(?:{_EXPONENT})?|{_EXPONENT}))"
    r"|(?P<word>true|false|null)"
)


def _value_pattern(closer: str) -> str:
    """Return a pattern for a scalar and its separator, or an opening bracket."""
    return rf"(?:(?:{_SCALAR}){_after_value_pattern(closer)}|(?P<open>[{{\[]){_GAP})"


def _after_value_pattern(closer: str) -> str:
    return rf"{_GAP}(?:,{_GAP}|(?={re.escape(closer)}))"


_GAP_RE = re.compile(_GAP)
_STRING_RE = re.compile(STRING)
SCALAR_RE = re.compile(_SCALAR)
ROOT_RE = re.compile(rf"{_SCALAR}|(?P<open>[{{\[]){_GAP}")
MEMBER_RE = re.compile(rf"(?P<key>{STRING}){_GAP}:{_GAP}{_value_pattern('}')}")
ITEM_RE = re.compile(_value_pattern("]"))
_AFTER_MEMBER_RE = re.compile(_after_value_pattern("}"))
_AFTER_ITEM_RE = re.compile(_after_value_pattern("]"))
LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}


class OpenObject:
    __slots__ = ("key", "key_start", "places", "start", "value")
    bracket, closer, noun, after_value = "{", "}", "object", _AFTER_MEMBER_RE

    def __init__(self, key: str | int, key_start: int, start: int) -> None:
        self.key = key
        self.key_start = key_start
        self.start = start
        self.value: dict[str, Json] = {}
        self.places: MemberOffsets = {}


class OpenList:
    __slots__ = ("key", "key_start", "places", "start", "value")
    bracket, closer, noun, after_value = "[", "]", "list", _AFTER_ITEM_RE

    def __init__(self, key: str | int, key_start: int, start: int) -> None:
        self.key = key
        self.key_start = key_start
        self.start = start
        self.value: list[Json] = []
        self.places: MemberOffsets = {}


OpenBracket: TypeAlias = OpenObject | OpenList


def skip_whitespace(text: str, pos: int) -> int:
    """Return the end of the whitespace and comments at `pos`."""
    match = _GAP_RE.match(text, pos)
    assert match is not None  # the pattern also matches an empty text
    return match.end()


def string_span(text: str, start: int) -> Span:
    """Return the span of the string literal that starts at `start` of a valid text."""
    match = _STRING_RE.match(text, start)
    assert match is not None  # the text is valid
    return Span(*match.span())
