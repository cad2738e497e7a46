"""Environment variables in the text of a config file, before it is parsed."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.config.positions import Span


class Unset(NamedTuple):
    """A variable that is not set and has no default; its span in the original text."""

    name: str
    span: Span


class _Piece(NamedTuple):
    """Replaced text: where it is in the result, and where it was in the original."""

    start: int
    end: int
    origin_start: int
    origin_end: int


@dataclass(frozen=True, slots=True)
class Substituted:
    original: str
    text: str
    unset: tuple[Unset, ...]
    _pieces: tuple[_Piece, ...] = field(repr=False)

    def origin(self, span: Span) -> Span:
        """The span in the original; it takes in the whole of every `${…}` that it touches."""
        start, end = self._origin_start(span.start), self._origin_end(span.end)
        # An empty span beside a variable that became empty text: the variable lies between.
        return Span(min(start, end), max(start, end))

    def _origin_start(self, offset: int) -> int:
        index = bisect_right(self._pieces, offset, key=lambda piece: piece.end)
        passed = self._pieces[index - 1] if index else _Piece(0, 0, 0, 0)
        start = offset - passed.end + passed.origin_end
        return min(start, self._pieces[index].origin_start) if index < len(self._pieces) else start

    def _origin_end(self, offset: int) -> int:
        index = bisect_left(self._pieces, offset, key=lambda piece: piece.start)
        passed = self._pieces[index - 1] if index else _Piece(0, 0, 0, 0)
        return max(offset - passed.end, 0) + passed.origin_end


def substitute(text: str, environment: Mapping[str, str]) -> Substituted:
    """Replace `$VAR`, `${VAR}`, `${VAR:-default}` and their kin as a shell does; `$$` is a `$`."""
    if "$" not in text:
        return Substituted(text, text, (), ())
    parts: list[str] = []
    pieces: list[_Piece] = []
    unset: list[Unset] = []
    done = length = 0
    for form in _forms(text):
        value = form.value(environment)
        if value is None:
            unset.append(Unset(form.name, form.span))
            value = ""
        parts += text[done : form.span.start], value
        length += form.span.start - done
        pieces.append(_Piece(length, length + len(value), *form.span))
        length += len(value)
        done = form.span.end
    parts.append(text[done:])
    return Substituted(text, "".join(parts), tuple(unset), tuple(pieces))


class _Form(NamedTuple):
    span: Span
    name: str  # empty for `$$`
    operator: str
    word: str
    in_string: bool

    def value(self, environment: Mapping[str, str]) -> str | None:
        """The text to put in, None for a variable that is not set and has no default."""
        if not self.name:
            return "$"
        value = environment.get(self.name)
        counts_as_set = bool(value) if self.operator.startswith(":") else value is not None
        if self.operator.endswith("+"):
            return self.word if counts_as_set else ""
        if self.operator and not counts_as_set:
            return self.word
        # Whoever sets a variable must not be able to add keys to the file: escaped, a quote or a
        # line break in the value stays inside its string. A default is part of the file already.
        return _escape(value) if self.in_string and value else value


def _escape(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_BARE = rf"\$(?:\$|(?P<bare>{_NAME}))"
_BRACED = rf"\$\{{(?P<braced>{_NAME})(?:(?P<operator>:?[-=+])(?P<word>[^}}]*+))?\}}"
_TOKEN_RE = re.compile(
    # Most of a file: strings without a variable and what lies between them, in one go.
    r'(?:"[^"\\$\n\r]*+"[^"$/]*+)+'
    r"|//[^\n\r]*+"
    r"|/\*[^*]*+(?:\*++(?!/)[^*]*+)*(?:\*++/)?"
    r'|(?P<string>"[^"\\\n\r]*+(?:\\[^\n\r][^"\\\n\r]*+)*"?)'
    rf"|(?P<form>{_BARE}|{_BRACED})"
    # To the end when nothing closes it: a look for the brace at every `${` would be quadratic.
    r"|\$\{[^}]*+"
)
# A backslash takes the next character with it: a `$` after one is no form, or the escaped value
# would close the string.
_IN_STRING_RE = re.compile(rf"\\.|(?P<form>{_BARE}|{_BRACED})|\$\{{[^}}]*+\}}")
_KEY_END_RE = re.compile(r"[ \t\r\n]*+:")
_IN_STRING_TAIL_RE = re.compile(rf"\\.|(?P<form>{_BARE})")


def _forms(text: str) -> Iterator[_Form]:
    for token in _TOKEN_RE.finditer(text):
        if token.lastgroup == "string":
            yield from _forms_in_string(text, *token.span())
        elif token.lastgroup == "form":
            yield _form(token, in_string=False)


def _forms_in_string(text: str, start: int, end: int) -> Iterator[_Form]:
    if text.find("$", start, end) < 0:
        return
    # `$schema` and its like are keys of their own, not variables.
    is_key = _KEY_END_RE.match(text, end) is not None
    last_brace = text.rfind("}", start, end)
    tail = start if last_brace < 0 else last_brace + 1
    for match in _IN_STRING_RE.finditer(text, start, tail):
        named_key = is_key and match["bare"]
        if match["form"] and not named_key and not _ends_in_backslash(match["word"] or ""):
            yield _form(match, in_string=True)
    for match in _IN_STRING_TAIL_RE.finditer(text, tail, end):
        if match["form"] and not (is_key and match["bare"]):
            yield _form(match, in_string=True)


def _ends_in_backslash(word: str) -> bool:
    """Whether the last backslash is one that escapes: put in, it would escape the closing quote."""
    return (len(word) - len(word.rstrip("\\"))) % 2 == 1


def _form(match: re.Match[str], in_string: bool) -> _Form:
    groups = match.groupdict(default="")
    return _Form(
        Span(*match.span()),
        groups["bare"] or groups.get("braced", ""),
        groups.get("operator", ""),
        groups.get("word", ""),
        in_string,
    )
