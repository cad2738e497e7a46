"""Collects what is found, in one place and with one vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from cogwork.config import codes
from cogwork.config.codes import Code
from cogwork.config.diagnose import (
    Diagnostic,
    Effect,
    Place,
    Quote,
    Related,
    did_you_mean,
    said,
)
from cogwork.config.positions import Json, Pointer, pointer_text
from cogwork.config.surroundings import Surroundings
from cogwork.config.validate import Validator

_MAY_TURN_UP = frozenset(
    {
        codes.MISSING_DEPENDENCY,
        codes.AMBIGUOUS_DEPENDENCY,
        codes.CIRCULAR_DEPENDENCY,
        codes.MISSING_FILE,
        codes.UNKNOWN_MODEL,
    }
)


_MOST_COMPARISONS = 50_000
"""A guess looks at every name: a file of a thousand faults must not take seconds."""


class Findings:
    def __init__(
        self, surroundings: Surroundings, quote: Quote, scrub: Callable[[str], str] = str
    ) -> None:
        """Scrubbing takes out of a message what it may not say."""
        self._around = surroundings
        self._quote = quote
        self._scrub = scrub
        self._found: list[Diagnostic] = []
        self._comparisons_left = _MOST_COMPARISONS

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        return tuple(self._found)

    def add(
        self,
        code: Code,
        message: str,
        at: Pointer,
        effect: Effect,
        *,
        at_key: bool = False,
        hint: str | None = None,
        related: tuple[Related, ...] = (),
    ) -> None:
        self._take(Diagnostic(code, message, Place(at, at_key), effect, hint, related))

    def guess(self, word: str, choices: Iterable[str]) -> str | None:
        """Did you mean …?"""
        if self._comparisons_left <= 0:
            return None
        known = list(choices)
        self._comparisons_left -= len(known)
        return did_you_mean(word, known)

    def duplicate(self, name: str, at: Pointer, first: Pointer) -> None:
        self.add(
            codes.DUPLICATE_NAME,
            f'the name "{name}" is taken',
            at,
            Effect.IGNORED,
            related=(Related("it is used first here", Place(first)),),
        )

    def validated(self, validator: Validator, value: Json, at: Pointer, effect: Effect) -> Any:
        """The validated object, or None; what is wrong with it is added."""
        usable, found = validator.validate(value, at, effect, self._quote)
        for diagnostic in found:
            self._take(diagnostic)
        return usable

    def file_must_exist(self, path: str, at: Pointer, effect: Effect) -> None:
        # A path that still has a placeholder in it has its diagnostic already.
        if "${" not in path and not self._exists(path):
            self.add(codes.MISSING_FILE, f"there is no file {path}", at, effect)

    def _exists(self, path: str) -> bool:
        try:
            return self._around.exists(Path(path).expanduser())
        except (OSError, RuntimeError, ValueError):
            # A directory that may not be read, a name too long, a user who does not exist.
            return False

    def _take(self, found: Diagnostic) -> None:
        self._found.append(
            replace(
                found,
                message=said(found.message, self._scrub),
                hint=said(found.hint, self._scrub) if found.hint else None,
                related=tuple(
                    replace(related, message=said(related.message, self._scrub))
                    for related in found.related
                ),
            )
        )

    def static_faults(self) -> dict[Pointer, str]:
        """Per resource what only another configuration can mend.

        A dependency, a model or a file may still turn up while the machine runs: the graph and
        the constructor see to those.
        """
        faults: dict[Pointer, str] = {}
        for found in self._found:
            if found.effect is Effect.UNHEALTHY and found.code not in _MAY_TURN_UP:
                at = found.place.pointer[:2]
                where = said(pointer_text(found.place.pointer), self._scrub)
                fault = f"{found.message} (at {where})"
                faults[at] = f"{faults[at]}; {fault}" if at in faults else fault
        return faults
