"""From text to a checked configuration: substitute, read, check, and say where faults are.

The same way at start and on every change, for a file and for what a cloud pushes.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogwork.config import codes
from cogwork.config.check import Checked, check
from cogwork.config.diagnose import Diagnostic, Effect, Place, Related, quote_plainly
from cogwork.config.positions import (
    Document,
    Json,
    JsonFault,
    Pointer,
    Position,
    Span,
    position_at,
    read,
)
from cogwork.config.schema import MachineConfig
from cogwork.config.secrets import is_secret, masked
from cogwork.config.substitute import Substituted, substitute
from cogwork.config.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Spot:
    """A place in a text, with its line as it may be shown."""

    position: Position
    length: int
    line: str


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
    try:
        document = read(substituted.text)
    except JsonFault as fault:
        return _not_json(substituted, fault)
    written = _Written(substituted, document)
    checked = check(document.value, surroundings, written.quote)
    unset = [written.unset(index) for index in range(len(substituted.unset))]
    doubles = [written.duplicate(index) for index in range(len(document.duplicates))]
    faults = [*unset, *doubles, *(written.locate(found) for found in checked.diagnostics)]
    faults.sort(key=lambda fault: fault.spot.position if fault.spot else Position(0, 0))
    return Loaded(text, checked, tuple(faults))


def load_value(value: Json, surroundings: Surroundings) -> Loaded:
    """A configuration that never was text, as a cloud sends it: faults have pointers only."""
    checked = check(value, surroundings, _quote_unless_secret)
    return Loaded("", checked, tuple(Located(found) for found in checked.diagnostics))


def refused(diagnostic: Diagnostic, text: str = "", spot: Spot | None = None) -> Loaded:
    checked = Checked(MachineConfig(), (), (diagnostic,))
    return Loaded(text, checked, (Located(diagnostic, spot),))


def _not_json(substituted: Substituted, fault: JsonFault) -> Loaded:
    diagnostic = Diagnostic(codes.NOT_JSON, fault.message, Place(()), Effect.REFUSED, fault.hint)
    spot = _spot(substituted.original, substituted.origin(fault.span), all_secret=False)
    return refused(diagnostic, substituted.original, spot)


class _Written:
    """What was written: finds the places of a document in the text before substitution."""

    def __init__(self, substituted: Substituted, document: Document) -> None:
        self._substituted = substituted
        self._document = document

    def quote(self, pointer: Pointer, value: Json) -> str | None:
        """As it was written, so that a value from the environment is not shown."""
        if is_secret(pointer):
            return None
        span = self._substituted.origin(self._document.value_span(pointer))
        written = self._substituted.original[span.start : span.end]
        if len(written) > 60 or "\n" in written:
            return quote_plainly(pointer, value)
        return written

    def locate(self, found: Diagnostic) -> Located:
        return Located(
            found,
            self._spot(found.place),
            tuple(self._spot(related.place) for related in found.related),
        )

    def unset(self, index: int) -> Located:
        name, span = self._substituted.unset[index]
        diagnostic = Diagnostic(
            codes.UNSET_VARIABLE,
            f"the environment variable {name} is not set; empty text takes its place",
            Place(()),
            Effect.IGNORED,
            f"set it, or write ${{{name}:-default}}",
        )
        return Located(diagnostic, _spot(self._substituted.original, span, all_secret=False))

    def duplicate(self, index: int) -> Located:
        double = self._document.duplicates[index]
        place = Place(double.pointer, at_key=True)
        diagnostic = Diagnostic(
            codes.DUPLICATE_KEY,
            f'the key "{double.pointer[-1]}" is here already',
            place,
            Effect.IGNORED,
            None,
            (Related("the first one, which counts", place),),
        )
        first, second = (
            _spot(self._substituted.original, self._substituted.origin(span), all_secret=False)
            for span in (double.first, double.second)
        )
        return Located(diagnostic, second, (first,))

    def _spot(self, place: Place) -> Spot:
        pointer = place.pointer
        span = self._document.key_span(pointer) if place.at_key else None
        span = span or self._document.value_span(pointer)
        all_secret = pointer[:1] in (("auth",), ("cloud",))
        return _spot(
            self._substituted.original, self._substituted.origin(span), all_secret=all_secret
        )


def _quote_unless_secret(pointer: Pointer, value: Json) -> str | None:
    return None if is_secret(pointer) else quote_plainly(pointer, value)


def _spot(text: str, span: Span, *, all_secret: bool) -> Spot:
    start = text.rfind("\n", 0, span.start) + 1
    end = text.find("\n", span.start)
    end = len(text) if end < 0 else end
    line = text[start:end].rstrip("\r")
    length = max(1, min(span.end, start + len(line)) - span.start)
    return Spot(position_at(text, span.start), length, masked(line, all_values=all_secret))
