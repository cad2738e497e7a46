"""Substitute environment variables in the text of a configuration file before it is parsed."""

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cogwork.config.text.positions import Span


class UnsetVariable(NamedTuple):
    """A variable without a value or a default, and its span in the original text."""

    name: str
    span: Span


class NonScalarVariable(NamedTuple):
    """A variable outside of a string whose value is not exactly one JSON scalar."""

    name: str
    span: Span


class _Replacement(NamedTuple):
    """A replaced range: its offsets in the result and in the original text."""

    start: int
    end: int
    origin_start: int
    origin_end: int


@dataclass(frozen=True, slots=True)
class SubstitutedText:
    original: str
    text: str
    unset: tuple[UnsetVariable, ...]
    _replacements: tuple[_Replacement, ...] = field(repr=False)
    not_scalar: tuple[NonScalarVariable, ...] = ()
    """Variables that may have changed the structure of the text. If there are any, the text must
    not be parsed."""

    def original_span(self, span: Span) -> Span:
        """Return the span in the original text, extended to every `${…}` that it touches."""
        start, end = self._original_start(span.start), self._original_end(span.end)
        # Sort the two ends: they may be swapped if an empty span is beside a variable with an empty
        # value.
        return Span(min(start, end), max(start, end))

    def _original_start(self, offset: int) -> int:
        index = bisect_right(self._replacements, offset, key=lambda piece: piece.end)
        passed = self._replacements[index - 1] if index else _Replacement(0, 0, 0, 0)
        start = offset - passed.end + passed.origin_end
        return (
            min(start, self._replacements[index].origin_start)
            if index < len(self._replacements)
            else start
        )

    def _original_end(self, offset: int) -> int:
        index = bisect_left(self._replacements, offset, key=lambda piece: piece.start)
        passed = self._replacements[index - 1] if index else _Replacement(0, 0, 0, 0)
        return max(offset - passed.end, 0) + passed.origin_end


def substitute(text: str, environment: Mapping[str, str]) -> SubstitutedText:
    """Replace `$VAR`, `${VAR}`, `${VAR:-default}` and similar forms as a shell does; `$$` becomes
    `$`."""
    if "$" not in text:
        return SubstitutedText(text, text, (), ())
    parts: list[str] = []
    pieces: list[_Replacement] = []
    unset: list[UnsetVariable] = []
    not_scalar: list[NonScalarVariable] = []
    done = length = 0
    for variable in _find_references(text):
        value = variable.resolve(environment)
        if value is None:
            unset.append(UnsetVariable(variable.name, variable.span))
            value = ""
        elif (
            not variable.in_string
            and variable.is_from_environment(environment)
            and not _is_scalar(value)
        ):
            not_scalar.append(NonScalarVariable(variable.name, variable.span))
        parts += text[done : variable.span.start], value
        length += variable.span.start - done
        pieces.append(_Replacement(length, length + len(value), *variable.span))
        length += len(value)
        done = variable.span.end
    parts.append(text[done:])
    return SubstitutedText(text, "".join(parts), tuple(unset), tuple(pieces), tuple(not_scalar))


def hide_variables(text: str) -> str:
    """Replace variables outside of strings by strings of the same length, so that the text can be
    parsed without an environment, and every offset stays the same."""
    if "$" not in text:
        return text
    parts: list[str] = []
    done = 0
    for variable in _find_references(text):
        if not variable.in_string:
            start, end = variable.span
            parts += text[done:start], f'"{"_" * (end - start - 2)}"'
            done = end
    return "".join((*parts, text[done:]))


class _VariableReference(NamedTuple):
    span: Span
    name: str  # empty for the escape `$$`
    operator: str
    word: str
    in_string: bool

    def resolve(self, environment: Mapping[str, str]) -> str | None:
        """Return the replacement; None if the variable has neither a value nor a default."""
        if not self.name:
            return "$"
        value = environment.get(self.name)
        if self.operator.endswith("+"):
            return self.word if self._is_set(environment) else ""
        if self.operator and not self._is_set(environment):
            return self.word
        # Escape the value, so that a quote or a line break cannot end its string and add keys to
        # the file. A default is part of the file and needs no escaping.
        return _escape(value) if self.in_string and value else value

    def is_from_environment(self, environment: Mapping[str, str]) -> bool:
        """Whether the replacement comes from the environment rather than from the file."""
        if not self.name or self.operator.endswith("+"):
            return False
        return not self.operator or self._is_set(environment)

    def _is_set(self, environment: Mapping[str, str]) -> bool:
        value = environment.get(self.name)
        return bool(value) if self.operator.startswith(":") else value is not None


def _is_scalar(value: str) -> bool:
    """Whether the value is exactly one JSON number, string literal, true, false or null."""
    if not value.lstrip()[:1] or value.lstrip()[0] in "[{":
        return False
    try:
        json.loads(value, parse_int=str, parse_float=str, parse_constant=_reject)
    except ValueError:
        return False
    return True


def _reject(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _escape(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)[1:-1]


_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_BARE = rf"\$(?:\$|(?P<bare>{_NAME}))"
_BRACED = rf"\$\{{(?P<braced>{_NAME})(?:(?P<operator>:?[-=+])(?P<word>[^}}]*+))?\}}"
_TOKEN_RE = re.compile(
    # Skip strings without variables and the text between them, which is most of a file.
    r'(?:"[^"\\$\n\r]*+"[^"$/]*+)+'
    r"|//[^\n\r]*+"
    r"|/\*[^*]*+(?:\*++(?!/)[^*]*+)*(?:\*++/)?"
    r'|(?P<string>"[^"\\\n\r]*+(?:\\[^\n\r][^"\\\n\r]*+)*"?)'
    rf"|(?P<variable>{_BARE}|{_BRACED})"
    # Skip the text after an unclosed `${`: scanning it again for each `${` would be quadratic.
    r"|\$\{[^}]*+"
)
# Do not substitute a variable after a backslash: the backslash would undo the escaping of the
# value, so that a quote in the value could end the string.
_IN_STRING_RE = re.compile(rf"\\.|(?P<variable>{_BARE}|{_BRACED})|\$\{{[^}}]*+\}}")
_KEY_END_RE = re.compile(r"[ \t\r\n]*+:")
_IN_STRING_TAIL_RE = re.compile(rf"\\.|(?P<variable>{_BARE})")


def _find_references(text: str) -> Iterator[_VariableReference]:
    for token in _TOKEN_RE.finditer(text):
        if token.lastgroup == "string":
            yield from _find_references_in_string(text, *token.span())
        elif token.lastgroup == "variable":
            yield _to_reference(token, in_string=False)


def _find_references_in_string(text: str, start: int, end: int) -> Iterator[_VariableReference]:
    if text.find("$", start, end) < 0:
        return
    # Keys such as `$schema` are not variables.
    is_key = _KEY_END_RE.match(text, end) is not None
    last_brace = text.rfind("}", start, end)
    tail = start if last_brace < 0 else last_brace + 1
    for match in _IN_STRING_RE.finditer(text, start, tail):
        named_key = is_key and match["bare"]
        if match["variable"] and not named_key and not _ends_in_backslash(match["word"] or ""):
            yield _to_reference(match, in_string=True)
    for match in _IN_STRING_TAIL_RE.finditer(text, tail, end):
        if match["variable"] and not (is_key and match["bare"]):
            yield _to_reference(match, in_string=True)


def _ends_in_backslash(word: str) -> bool:
    """Whether the word ends in an unescaped backslash, which would escape the closing quote."""
    return (len(word) - len(word.rstrip("\\"))) % 2 == 1


def _to_reference(match: re.Match[str], in_string: bool) -> _VariableReference:
    groups = match.groupdict(default="")
    return _VariableReference(
        Span(*match.span()),
        groups["bare"] or groups.get("braced", ""),
        groups.get("operator", ""),
        groups.get("word", ""),
        in_string,
    )
