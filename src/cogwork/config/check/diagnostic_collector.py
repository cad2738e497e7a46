"""Collect the diagnostics of one configuration, limited in number and without secrets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cogwork.config.check.diagnostic_limits import (
    MAX_DIAGNOSTICS,
    MAX_MESSAGE_LENGTH,
    MAX_RELATED,
    keep_worst,
)
from cogwork.config.check.diagnostics import (
    ConfigLocation,
    Diagnostic,
    Effect,
    Quote,
    RelatedInfo,
    close_match,
    sanitize_message,
)
from cogwork.config.check.file_lookup import FileLookup, find_file, list_siblings, try_path
from cogwork.config.check.fix import Fix
from cogwork.config.check.key_names import WrittenKeys
from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.validator import Validator
from cogwork.config.schema import codes
from cogwork.config.schema.codes import Code
from cogwork.config.text.positions import Json, Pointer, format_pointer

_MAY_RESOLVE_LATER = frozenset(
    {
        codes.MISSING_DEPENDENCY,
        codes.AMBIGUOUS_DEPENDENCY,
        codes.CIRCULAR_DEPENDENCY,
        codes.MISSING_FILE,
        codes.UNKNOWN_MODEL,
    }
)


_MAX_COMPARISONS = 5_000
"""Maximum number of words to compare for all suggestions of a configuration together. Without it,
checking a file with many faults would take seconds."""


class CheckCancelled(Exception):
    """The check was cancelled because its result is no longer needed."""


class DiagnosticCollector:
    def __init__(
        self,
        context: LoadContext,
        quote: Quote,
        scrub: Callable[[str], str] = str,
        is_cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """`scrub` removes secrets from messages."""
        self._is_cancelled = is_cancelled
        self._context = context
        self.written_keys = WrittenKeys()
        """The keys that the file writes in another way than the check sees them."""
        self._quote: Quote = lambda pointer, value: quote(
            self.written_keys.find_pointer(pointer), value
        )
        self._scrub = scrub
        self._by_rank: dict[int, list[tuple[int, Diagnostic]]] = {}
        """The diagnostics by rank, each with its position in the order in which they were found."""
        self._count = 0
        self._static_faults: dict[Pointer, str] = {}
        self.missing_files: dict[Pointer, str] = {}
        """The message about the first missing file, by the JSON pointer of the entry that requires
        it."""
        self._comparisons_left = _MAX_COMPARISONS
        self.all_keys_compared = True
        """False if an unknown key was not compared with the known keys, because the limit of
        comparisons was reached. The key may be a misspelled secret."""

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The most severe diagnostics, in the order in which they were found."""
        kept = sorted(itertools.chain(*self._by_rank.values()), key=lambda numbered: numbered[0])
        return tuple(keep_worst([found for _, found in kept], lambda found: found.rank))

    @property
    def omitted(self) -> int:
        """Number of diagnostics that were found but not kept."""
        return self._count - len(self.diagnostics)

    def add(
        self,
        code: Code,
        message: str,
        at: Pointer,
        effect: Effect,
        *,
        at_key: bool = False,
        hint: str | None = None,
        related: tuple[RelatedInfo, ...] = (),
        fix: Fix | None = None,
    ) -> None:
        location = ConfigLocation(at, at_key)
        self.record(Diagnostic(code, message, location, effect, hint, related, fix))

    def suggest(self, word: str, choices: Iterable[str]) -> str | None:
        """Return a "did you mean" hint, or None without a close match."""
        match = self._find_closest(word, choices)
        return f'did you mean "{match}"?' if match is not None else None

    def _find_closest(self, word: str, choices: Iterable[str]) -> str | None:
        known = list(itertools.islice(choices, self._comparisons_left))
        self._comparisons_left -= len(known)
        return close_match(word, known)

    def suggest_key(self, word: str, choices: Collection[str]) -> str | None:
        if len(choices) > self._comparisons_left:
            self.all_keys_compared = False
            return None
        return self.suggest(word, choices)

    def add_duplicate(self, name: str, at: Pointer, first: Pointer) -> None:
        self.add(
            codes.DUPLICATE_NAME,
            f'the name "{name}" is already in use',
            at,
            Effect.IGNORED,
            related=(RelatedInfo("first used here", ConfigLocation(first)),),
        )

    def validate(self, validator: Validator, value: Json, at: Pointer, effect: Effect) -> Any:
        """Return the validated object or None, and record its faults. Raise CheckCancelled."""
        if self._is_cancelled():
            raise CheckCancelled
        usable, found = validator.validate(value, at, effect, self._quote, self.suggest_key)
        for diagnostic in found:
            self.record(diagnostic)
        return usable

    def require_file(
        self, text: str, at: Pointer, effect: Effect, *, or_folder: bool = False
    ) -> str:
        """Return the path of the file, and report the file if it is missing."""
        # Ignore a path with an unresolved placeholder: the placeholder has already been reported.
        if "${" in text:
            return text
        lookup = find_file(text, self._context, or_folder=or_folder)
        if not lookup.is_found:
            kind = "file or folder" if or_folder else "file"
            message = f'{kind} "{text}" does not exist'
            if len(lookup.tried) > 1:
                message += f" (tried {' and '.join(map(str, lookup.tried))})"
            match = self._suggest_file(text, lookup, or_folder=or_folder)
            hint = match or f"correct the path, or put the {kind} there"
            self.add(codes.MISSING_FILE, message, at, effect, hint=hint)
            if effect is Effect.UNHEALTHY:
                self.missing_files.setdefault(at[:2], sanitize_message(message, self._scrub))
        return lookup.path

    def check_certificate(self, certificate: str, key: str, at: Pointer) -> None:
        files = (Path(each).expanduser() for each in (certificate, key))
        if (warning := self._context.find_certificate_warning(*files)) is not None:
            self.add(codes.CERTIFICATE_DATES, warning, at, Effect.IGNORED)

    def has_directory(self, path: str) -> bool:
        return try_path(self._context.is_directory, Path(path))

    def _suggest_file(self, text: str, lookup: FileLookup, *, or_folder: bool) -> str | None:
        if not self._comparisons_left:
            return None
        folder, slash, name = text.rpartition("/")
        names = list_siblings(lookup, self._context, or_folder=or_folder)
        match = self._find_closest(name, names)
        return f'did you mean "{folder}{slash}{match}"?' if match is not None else None

    def record(self, found: Diagnostic) -> None:
        self._count += 1
        self._record_static_fault(found)
        kept = self._by_rank.setdefault(found.rank, [])
        if len(kept) < MAX_DIAGNOSTICS:
            kept.append((self._count, self._sanitize(self.written_keys.locate(found))))

    def _sanitize(self, found: Diagnostic) -> Diagnostic:
        return replace(
            found,
            message=sanitize_message(found.message, self._scrub),
            hint=sanitize_message(found.hint, self._scrub) if found.hint else None,
            related=tuple(
                replace(related, message=sanitize_message(related.message, self._scrub))
                for related in found.related[:MAX_RELATED]
            ),
        )

    def _record_static_fault(self, found: Diagnostic) -> None:
        if found.effect is not Effect.UNHEALTHY or found.code in _MAY_RESOLVE_LATER:
            return
        at = found.location.pointer[:2]
        before = self._static_faults.get(at, "")
        if len(before) < MAX_MESSAGE_LENGTH:
            pointer = self.written_keys.find_pointer(found.location.pointer)
            fault = f"{found.message} (at {format_pointer(pointer)})"
            self._static_faults[at] = (
                f"{before}; {sanitize_message(fault, self._scrub)}".removeprefix("; ")
            )

    def list_items(self, name: str, value: Json) -> list[tuple[Pointer, Json]]:
        """Return the items of a section, with their pointers."""
        if value is None:
            return []
        if not isinstance(value, list):
            self.add(codes.WRONG_TYPE, f'"{name}" must be a list', (name,), Effect.IGNORED)
            return []
        return [((name, index), item) for index, item in enumerate(value)]

    def static_faults(self) -> dict[Pointer, str]:
        """Return, for each resource, the faults that only a changed configuration can fix.

        Missing dependencies, models and files are not included: they may appear while the machine
        runs, so the graph and the constructor check for them.
        """
        return self._static_faults
