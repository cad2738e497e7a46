"""From text to a checked configuration: substitute, read, check, and say where faults are.

The same way at start and on every change, for a file and for what a cloud pushes.
"""

from __future__ import annotations

import functools
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from cogwork.config import codes
from cogwork.config.check import Checked, check
from cogwork.config.diagnose import Diagnostic, Effect, Place, Related, quote_plainly, said
from cogwork.config.positions import (
    Document,
    Json,
    JsonFault,
    Pointer,
    Position,
    Span,
    read,
)
from cogwork.config.schema import MachineConfig
from cogwork.config.secrets import (
    is_secret,
    names_secret,
    without_environment,
    without_secrets,
)
from cogwork.config.substitute import Substituted, substitute
from cogwork.config.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a text, with its line as it may be shown."""

    position: Position
    length: int
    line: str
    """What is near the place, if the line is very long."""
    skipped: int = 0
    """How much of the line is left out before that."""


@dataclass(frozen=True, slots=True)
class Located:
    """A diagnostic, and the spots of its place and of those related to it."""

    diagnostic: Diagnostic
    spot: Spot | None = None
    related: tuple[Spot | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    text: str
    """As it was written, before substitution."""
    checked: Checked
    faults: tuple[Located, ...]
    """In the order of the text."""

    @property
    def refused(self) -> bool:
        return self.checked.refused

    @property
    def has_errors(self) -> bool:
        return any(f.diagnostic.code.severity is codes.Severity.ERROR for f in self.faults)


def load(text: str, surroundings: Surroundings) -> Loaded:
    substituted = substitute(text, surroundings.environment)
    shown = _Shown(substituted, surroundings)
    try:
        document = read(substituted.text)
    except JsonFault as fault:
        return _not_json(shown, fault)
    written = _Written(shown, document)
    checked = check(document.value, surroundings, written.quote, shown.scrub)
    shown.others.extend(written.mistyped_secrets(checked.diagnostics))
    unset = [shown.unset(index) for index in range(len(substituted.unset))]
    doubles = [written.duplicate(index) for index in range(len(document.duplicates))]
    faults = [*unset, *doubles, *(written.locate(found) for found in checked.diagnostics)]
    return Loaded(text, checked, _in_order(faults))


def load_value(value: Json, surroundings: Surroundings) -> Loaded:
    """A configuration that never was text, as a cloud sends it: faults have pointers only."""
    scrub = without_environment(json.dumps(value), surroundings.environment)

    def quote(pointer: Pointer, value: Json) -> str | None:
        return None if is_secret(pointer) else _quote_scrubbed(pointer, value, scrub)

    checked = check(value, surroundings, quote, scrub)
    faults = [Located(found, None, (None,) * len(found.related)) for found in checked.diagnostics]
    return Loaded("", checked, tuple(faults))


def refused(diagnostic: Diagnostic, text: str = "", spot: Spot | None = None) -> Loaded:
    checked = Checked(MachineConfig(), (), (diagnostic,))
    return Loaded(text, checked, (Located(diagnostic, spot),))


def _not_json(shown: _Shown, fault: JsonFault) -> Loaded:
    span = shown.substituted.origin(fault.span)
    message, hint = shown.without_other_keys(fault.message), fault.hint
    if shown.is_delicate_at(span):
        message = _FOUND.sub(", but found something else", message)
        hint = None if hint and _QUOTING_HINT.search(hint) else hint
    diagnostic = Diagnostic(codes.NOT_JSON, message, Place(()), Effect.REFUSED, hint)
    checked = Checked(MachineConfig(), (), (diagnostic,))
    unset = [shown.unset(index) for index in range(len(shown.substituted.unset))]
    faults = _in_order([*unset, Located(diagnostic, shown.spot(span))])
    return Loaded(shown.substituted.original, checked, faults)


_FOUND = re.compile(r", but found (?!the end of |a comma$|a colon$|[]{}[](?:$| at )).*", re.DOTALL)
_QUOTING_HINT = re.compile(r"double quotes: |^write [-0-9.\"]")
_NAMED = re.compile(
    r' (?:after the key|after the value of|for) "(?P<key>.*?)(?:"|\.\.\.)(?=, but |$)', re.DOTALL
)
_TO_THE_NEXT = re.compile(r"(?:\s|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+[^\n]*")


def _in_order(faults: list[Located]) -> tuple[Located, ...]:
    return tuple(sorted(faults, key=lambda f: f.spot.position if f.spot else Position(0, 0)))


class _Shown:
    """The text as it was written, without what may not be shown."""

    def __init__(self, substituted: Substituted, surroundings: Surroundings) -> None:
        self.substituted = substituted
        self.scrub = without_environment(substituted.original, surroundings.environment)
        self.others: list[Span] = []
        """What else may not be shown, known once the text is read."""

    @functools.cached_property
    def _text(self) -> str:
        return without_secrets(self.substituted.original, self.others)

    @functools.cached_property
    def _lines(self) -> list[int]:
        """Where each line starts: to count them anew for every fault would take seconds."""
        return [0, *(match.end() for match in re.finditer("\n", self._text))]

    def is_delicate_at(self, span: Span) -> bool:
        """Whether a secret or a variable is where a fault is, or next to it."""
        original = self.substituted.original
        start = original.rfind("\n", 0, span.start) + 1
        after = _TO_THE_NEXT.match(original, span.end)
        end = after.end() if after else span.end
        written = original[start:end]
        return "$" in written or written != self._text[start:end]

    def without_other_keys(self, message: str) -> str:
        """Without a key that is not in the text, as one from the environment."""
        original = self.substituted.original
        return _NAMED.sub(lambda named: named[0] if named["key"] in original else "", message)

    def spot(self, span: Span) -> Spot:
        text, lines = self._text, self._lines
        number = bisect_right(lines, span.start)
        # No editor shows the mark, so it is in no column and no line.
        first = lines[number - 1] + (number == 1 and text.startswith("\ufeff"))
        start = max(first, span.start)
        end = lines[number] - 1 if number < len(lines) else len(text)
        length = max(1, min(span.end, end) - start)
        near = max(first, start - _NEAR)
        line = text[near : min(end, start + _NEAR)]
        return Spot(Position(number, start - first + 1), length, line.rstrip("\r"), near - first)

    def unset(self, index: int) -> Located:
        name, span = self.substituted.unset[index]
        diagnostic = Diagnostic(
            codes.UNSET_VARIABLE,
            f"the environment variable {name} is not set; empty text takes its place",
            Place(()),
            Effect.IGNORED,
            f"set it, or write ${{{name}:-default}}",
        )
        return Located(diagnostic, self.spot(span))


_NEAR = 200


class _Written:
    """Finds the places of a document in the text before substitution."""

    def __init__(self, shown: _Shown, document: Document) -> None:
        self._shown = shown
        self._document = document

    def quote(self, pointer: Pointer, value: Json) -> str | None:
        """As it was written, so that a value from the environment is not shown."""
        if is_secret(pointer):
            return None
        span = self._origin(self._document.value_span(pointer))
        written = self._shown.substituted.original[span.start : span.end]
        # A bracket is where a field would be that an older spelling stands for.
        if len(written) > 60 or "\n" in written or written.startswith(("{", "[")):
            return _quote_scrubbed(pointer, value, self._shown.scrub)
        return written

    def locate(self, found: Diagnostic) -> Located:
        return Located(
            found,
            self._spot(found.place),
            tuple(self._spot(related.place) for related in found.related),
        )

    def duplicate(self, index: int) -> Located:
        double = self._document.duplicates[index]
        place = Place(double.pointer, at_key=True)
        diagnostic = Diagnostic(
            codes.DUPLICATE_KEY,
            said(f'the key "{double.pointer[-1]}" is here already', self._shown.scrub),
            place,
            Effect.IGNORED,
            None,
            (Related("the first one, which counts", place),),
        )
        first, second = (
            self._shown.spot(self._origin(span)) for span in (double.first, double.second)
        )
        return Located(diagnostic, second, (first,))

    def mistyped_secrets(self, found: Iterable[Diagnostic]) -> Iterator[Span]:
        """The values of unknown keys that were perhaps meant to be those of secrets."""
        for diagnostic in found:
            place, hint = diagnostic.place, diagnostic.hint
            if place.at_key and hint is not None and names_secret(hint):
                yield self._origin(self._document.value_span(place.pointer))

    def _spot(self, place: Place) -> Spot:
        key = self._document.key_span(place.pointer) if place.at_key else None
        return self._shown.spot(self._origin(key or self._document.value_span(place.pointer)))

    def _origin(self, span: Span) -> Span:
        return self._shown.substituted.origin(span)


def _quote_scrubbed(pointer: Pointer, value: Json, scrub: Callable[[str], str]) -> str | None:
    return quote_plainly(pointer, scrub(value) if isinstance(value, str) else value)
