"""Load a configuration: substitute variables, parse, check, and locate the faults.

This code loads every configuration, at startup and later, from files and from the cloud.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cogwork.config.check.checker import CheckResult, check
from cogwork.config.check.diagnostic_limits import MAX_DIAGNOSTICS, keep_worst
from cogwork.config.check.diagnostics import (
    ConfigLocation,
    Diagnostic,
    Effect,
    RelatedInfo,
    quote_json,
    sanitize_message,
)
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.log_rules import find_secret_values
from cogwork.config.check.redacted_text import RedactedText, SourceExcerpt
from cogwork.config.schema import codes
from cogwork.config.schema.machine import MachineConfig
from cogwork.config.text.file import Unreadable
from cogwork.config.text.json_errors import JsonSyntaxError
from cogwork.config.text.json_reader import Document, DuplicateKey, read_json
from cogwork.config.text.positions import Json, Pointer, Position, Span
from cogwork.config.text.secret_variables import secret_placeholder_names, secret_variable_names
from cogwork.config.text.secrets import environment_scrubber, is_secret, mentions_secret_key
from cogwork.config.text.substitution import (
    NonScalarVariable,
    SubstitutedText,
    UnsetVariable,
    substitute,
)


@dataclass(frozen=True, slots=True)
class LocatedDiagnostic:
    """A diagnostic with excerpts of its location and of the related locations."""

    diagnostic: Diagnostic
    excerpt: SourceExcerpt | None = None
    related_excerpts: tuple[SourceExcerpt | None, ...] = ()


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    text: str
    """The original text, before substitution."""
    result: CheckResult
    diagnostics: tuple[LocatedDiagnostic, ...]
    """The diagnostics in the order of the text."""
    secrets: frozenset[str] = frozenset()
    """The values that no output may show."""
    secret_variables: frozenset[str] = frozenset()
    """The names of the environment variables that secrets use."""
    directory: Path | None = None
    """The directory of the configuration file; None for a configuration from a cloud."""

    @property
    def is_refused(self) -> bool:
        return self.result.is_refused

    @property
    def has_errors(self) -> bool:
        return any(f.diagnostic.code.severity is codes.Severity.ERROR for f in self.diagnostics)


def load(
    text: str, context: LoadContext, is_cancelled: Callable[[], bool] = lambda: False
) -> LoadedConfig:
    """Load a configuration text. Raise CheckCancelled once `is_cancelled` returns true."""
    substituted = substitute(text, context.environment)
    redacted = RedactedText(substituted, context)
    if substituted.not_scalar:
        refused = [
            _locate_non_scalar(redacted, each) for each in substituted.not_scalar[:MAX_DIAGNOSTICS]
        ]
        return _refuse_unparsed(redacted, substituted, refused)
    try:
        document = read_json(substituted.text)
    except JsonSyntaxError as fault:
        return _refuse_unparsed(redacted, substituted, [_locate_syntax_error(redacted, fault)])
    source_map = _SourceMap(redacted, document)
    checked = check(document.value, context, source_map.quote, redacted.scrub, is_cancelled)
    redacted.hide(source_map.find_mistyped_secrets(checked.diagnostics))
    unset = substituted.unset[:MAX_DIAGNOSTICS]
    duplicates = document.duplicates[:MAX_DIAGNOSTICS]
    omitted = checked.omitted_count + len(substituted.unset) + len(document.duplicates)
    omitted -= len(unset) + len(duplicates)
    if checked.omitted_count or not checked.all_keys_compared:
        redacted.hide_lines()
    faults = [
        *(_locate_unset(redacted, each) for each in unset),
        *(source_map.locate_duplicate(duplicate) for duplicate in duplicates),
        *(source_map.locate(found) for found in checked.diagnostics),
    ]
    secrets = find_secret_values(document.value, context.environment)
    variables = secret_variable_names(document, text, substituted.original_span)
    found = _limit_diagnostics(faults, omitted)
    return LoadedConfig(text, checked, found, secrets, variables, context.directory)


def load_value(
    value: Json, context: LoadContext, is_cancelled: Callable[[], bool] = lambda: False
) -> LoadedConfig:
    """Load a configuration that is not text, such as one from the cloud.

    Its diagnostics have JSON pointers, but no lines and columns.
    """
    scrub = environment_scrubber(json.dumps(value), context.environment)

    def quote(pointer: Pointer, value: Json) -> str | None:
        return None if is_secret(pointer) else _quote_scrubbed(pointer, value, scrub)

    checked = check(value, context, quote, scrub, is_cancelled)
    faults = [
        LocatedDiagnostic(found, None, (None,) * len(found.related))
        for found in checked.diagnostics
    ]
    secrets = find_secret_values(value, context.environment)
    faults_kept = _limit_diagnostics(faults, checked.omitted_count)
    return LoadedConfig("", checked, faults_kept, secrets, secret_placeholder_names(value))


def load_unreadable(error: Unreadable) -> LoadedConfig:
    """Return a refused configuration for a file that could not be read."""
    diagnostic = Diagnostic(codes.UNREADABLE, str(error), ConfigLocation(()), Effect.REFUSED)
    return _build_refused("", diagnostic, (LocatedDiagnostic(diagnostic),))


def _refuse_unparsed(
    redacted: RedactedText, substituted: SubstitutedText, refused: list[LocatedDiagnostic]
) -> LoadedConfig:
    """Return a refused configuration for a text that could not be parsed."""
    unset = [_locate_unset(redacted, each) for each in substituted.unset[:MAX_DIAGNOSTICS]]
    shown_of = len(unset) + min(len(substituted.not_scalar), MAX_DIAGNOSTICS)
    omitted = len(substituted.unset) + len(substituted.not_scalar) - shown_of
    faults = _limit_diagnostics([*unset, *refused], omitted)
    return _build_refused(substituted.original, refused[0].diagnostic, faults)


def _build_refused(
    text: str, diagnostic: Diagnostic, faults: tuple[LocatedDiagnostic, ...]
) -> LoadedConfig:
    return LoadedConfig(
        text, CheckResult(MachineConfig.model_construct(), (), (diagnostic,)), faults
    )


def _limit_diagnostics(
    faults: list[LocatedDiagnostic], omitted: int
) -> tuple[LocatedDiagnostic, ...]:
    """Return the most severe faults in the order of the text, and a notice about the rest."""
    kept = keep_worst(faults, lambda fault: fault.diagnostic.rank)
    omitted += len(faults) - len(kept)
    kept.sort(key=lambda fault: fault.excerpt.position if fault.excerpt else Position(0, 0))
    return (*kept, _omitted_notice(omitted)) if omitted else tuple(kept)


def _omitted_notice(omitted: int) -> LocatedDiagnostic:
    return LocatedDiagnostic(
        Diagnostic(
            codes.MORE_FAULTS,
            f"{omitted:,} more faults are not shown; fix the ones above first",
            ConfigLocation(()),
            Effect.IGNORED,
        )
    )


def _locate_syntax_error(redacted: RedactedText, fault: JsonSyntaxError) -> LocatedDiagnostic:
    span = redacted.original_span(fault.span)
    message, hint = redacted.describe_error(fault, span)
    diagnostic = Diagnostic(codes.NOT_JSON, message, ConfigLocation(()), Effect.REFUSED, hint)
    return LocatedDiagnostic(diagnostic, redacted.excerpt(span))


def _locate_non_scalar(redacted: RedactedText, found: NonScalarVariable) -> LocatedDiagnostic:
    diagnostic = Diagnostic(
        codes.NOT_SCALAR,
        f"the environment variable {found.name} is used outside of a string, but its value is not "
        "a JSON number, string literal, true, false or null",
        ConfigLocation(()),
        Effect.REFUSED,
        f'change its value, or put it in quotes: "${{{found.name}}}"',
    )
    return LocatedDiagnostic(diagnostic, redacted.excerpt(found.span))


def _locate_unset(redacted: RedactedText, unset: UnsetVariable) -> LocatedDiagnostic:
    diagnostic = Diagnostic(
        codes.UNSET_VARIABLE,
        f"the environment variable {unset.name} is not set; using empty text",
        ConfigLocation(()),
        Effect.IGNORED,
        f"set it, or write ${{{unset.name}:-default}}",
    )
    return LocatedDiagnostic(diagnostic, redacted.excerpt(unset.span))


class _SourceMap:
    """Maps locations in a document to the text before substitution."""

    def __init__(self, redacted: RedactedText, document: Document) -> None:
        self._text = redacted
        self._document = document

    def quote(self, pointer: Pointer, value: Json) -> str | None:
        """Quote the original text, so that values from the environment are not shown."""
        if is_secret(pointer):
            return None
        span = self._original_span(pointer)
        written = self._text.original[span.start : span.end]
        # If the file uses legacy keys, the span covers the whole object. Then quote only the value.
        if len(written) > 60 or "\n" in written or written.startswith(("{", "[")):
            return _quote_scrubbed(pointer, value, self._text.scrub)
        return written

    def locate(self, found: Diagnostic) -> LocatedDiagnostic:
        return LocatedDiagnostic(
            found,
            self._excerpt_at(found.location),
            tuple(self._excerpt_at(related.location) for related in found.related),
        )

    def locate_duplicate(self, duplicate: DuplicateKey) -> LocatedDiagnostic:
        location = ConfigLocation(duplicate.pointer, at_key=True)
        diagnostic = Diagnostic(
            codes.DUPLICATE_KEY,
            sanitize_message(f'duplicate key "{duplicate.pointer[-1]}"', self._text.scrub),
            location,
            Effect.IGNORED,
            None,
            (RelatedInfo("the first occurrence, which is used", location),),
        )
        first, second = (
            self._text.excerpt(self._text.original_span(span))
            for span in (duplicate.first, duplicate.second)
        )
        return LocatedDiagnostic(diagnostic, second, (first,))

    def find_mistyped_secrets(self, found: Iterable[Diagnostic]) -> Iterator[Span]:
        """Yield the values of unknown keys that may be misspelled secrets."""
        for diagnostic in found:
            location, hint = diagnostic.location, diagnostic.hint
            if location.at_key and hint is not None and mentions_secret_key(hint):
                yield self._original_span(location.pointer)

    def _excerpt_at(self, location: ConfigLocation) -> SourceExcerpt:
        key = self._document.key_span(location.pointer) if location.at_key else None
        span = (
            self._text.original_span(key)
            if key is not None
            else self._original_span(location.pointer)
        )
        return self._text.excerpt(span)

    def _original_span(self, pointer: Pointer) -> Span:
        return self._text.original_span(self._document.value_span(pointer))


def _quote_scrubbed(pointer: Pointer, value: Json, scrub: Callable[[str], str]) -> str | None:
    return quote_json(pointer, scrub(value) if isinstance(value, str) else value)
