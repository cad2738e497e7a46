"""From text to a checked configuration: substitute, read, check, and say where faults are.

The same way at start and on every change, for a file and for what a cloud pushes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from cogwork.config import codes
from cogwork.config.check import Checked, check
from cogwork.config.diagnose import Diagnostic, Effect, Place, Related, quote_plainly, said
from cogwork.config.file import Unreadable
from cogwork.config.json_faults import JsonFault
from cogwork.config.json_reader import Document, DuplicateKey, read
from cogwork.config.log_rules import secret_values
from cogwork.config.positions import Json, Pointer, Position, Span
from cogwork.config.schema import MachineConfig
from cogwork.config.secrets import is_secret, names_secret, without_environment
from cogwork.config.shown import Shown, Spot
from cogwork.config.substitute import Unset, substitute
from cogwork.config.surroundings import Surroundings


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
    secrets: frozenset[str] = frozenset()
    """The values that no output may show."""

    @property
    def refused(self) -> bool:
        return self.checked.refused

    @property
    def has_errors(self) -> bool:
        return any(f.diagnostic.code.severity is codes.Severity.ERROR for f in self.faults)


def load(text: str, surroundings: Surroundings) -> Loaded:
    substituted = substitute(text, surroundings.environment)
    shown = Shown(substituted, surroundings)
    try:
        document = read(substituted.text)
    except JsonFault as fault:
        not_json = _not_json(shown, fault)
        unset = [_unset(shown, unset) for unset in substituted.unset]
        return _refused(text, not_json.diagnostic, [*unset, not_json])
    written = _Written(shown, document)
    checked = check(document.value, surroundings, written.quote, shown.scrub)
    shown.hide(written.mistyped_secrets(checked.diagnostics))
    faults = [
        *(_unset(shown, unset) for unset in substituted.unset),
        *(written.duplicate(double) for double in document.duplicates),
        *(written.locate(found) for found in checked.diagnostics),
    ]
    secrets = secret_values(document.value, surroundings.environment)
    return Loaded(text, checked, _in_order(faults), secrets)


def load_value(value: Json, surroundings: Surroundings) -> Loaded:
    """A configuration that never was text, as a cloud sends it: faults have pointers only."""
    scrub = without_environment(json.dumps(value), surroundings.environment)

    def quote(pointer: Pointer, value: Json) -> str | None:
        return None if is_secret(pointer) else _quote_scrubbed(pointer, value, scrub)

    checked = check(value, surroundings, quote, scrub)
    faults = [Located(found, None, (None,) * len(found.related)) for found in checked.diagnostics]
    secrets = secret_values(value, surroundings.environment)
    return Loaded("", checked, tuple(faults), secrets)


def load_nothing(error: Unreadable) -> Loaded:
    """What there is to say of a file that could not be read."""
    diagnostic = Diagnostic(codes.UNREADABLE, str(error), Place(()), Effect.REFUSED)
    return _refused("", diagnostic, [Located(diagnostic)])


def _refused(text: str, diagnostic: Diagnostic, faults: list[Located]) -> Loaded:
    return Loaded(
        text, Checked(MachineConfig.model_construct(), (), (diagnostic,)), _in_order(faults)
    )


def _in_order(faults: list[Located]) -> tuple[Located, ...]:
    return tuple(sorted(faults, key=lambda f: f.spot.position if f.spot else Position(0, 0)))


def _not_json(shown: Shown, fault: JsonFault) -> Located:
    span = shown.origin(fault.span)
    message, hint = shown.words_of(fault, span)
    diagnostic = Diagnostic(codes.NOT_JSON, message, Place(()), Effect.REFUSED, hint)
    return Located(diagnostic, shown.spot(span))


def _unset(shown: Shown, unset: Unset) -> Located:
    diagnostic = Diagnostic(
        codes.UNSET_VARIABLE,
        f"the environment variable {unset.name} is not set; empty text takes its place",
        Place(()),
        Effect.IGNORED,
        f"set it, or write ${{{unset.name}:-default}}",
    )
    return Located(diagnostic, shown.spot(unset.span))


class _Written:
    """Finds the places of a document in the text before substitution."""

    def __init__(self, shown: Shown, document: Document) -> None:
        self._shown = shown
        self._document = document

    def quote(self, pointer: Pointer, value: Json) -> str | None:
        """As it was written, so that a value from the environment is not shown."""
        if is_secret(pointer):
            return None
        span = self._span(pointer)
        written = self._shown.original[span.start : span.end]
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

    def duplicate(self, double: DuplicateKey) -> Located:
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
            self._shown.spot(self._shown.origin(span)) for span in (double.first, double.second)
        )
        return Located(diagnostic, second, (first,))

    def mistyped_secrets(self, found: Iterable[Diagnostic]) -> Iterator[Span]:
        """The values of unknown keys that were perhaps meant to be those of secrets."""
        for diagnostic in found:
            place, hint = diagnostic.place, diagnostic.hint
            if place.at_key and hint is not None and names_secret(hint):
                yield self._span(place.pointer)

    def _spot(self, place: Place) -> Spot:
        key = self._document.key_span(place.pointer) if place.at_key else None
        span = self._shown.origin(key) if key is not None else self._span(place.pointer)
        return self._shown.spot(span)

    def _span(self, pointer: Pointer) -> Span:
        return self._shown.origin(self._document.value_span(pointer))


def _quote_scrubbed(pointer: Pointer, value: Json, scrub: Callable[[str], str]) -> str | None:
    return quote_plainly(pointer, scrub(value) if isinstance(value, str) else value)
