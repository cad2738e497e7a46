"""Diagnostics: the fault, its location, the machine's reaction, and a hint for the user."""

from __future__ import annotations

import difflib
import enum
import json
import re
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from cogwork.config.check.diagnostic_limits import truncate_message
from cogwork.config.check.fix import Fix
from cogwork.config.schema.codes import Code, Severity
from cogwork.config.text.positions import Json, Pointer
from cogwork.core.escape import INDENT

Quote = Callable[[Pointer, Json], str | None]
"""Formats the value for a message; returns None if the value is secret."""


class Effect(enum.StrEnum):
    """The reaction of the machine to a fault."""

    REFUSED = "the configuration is refused"
    UNHEALTHY = "it is unhealthy until this is fixed"
    IGNORED = "it is ignored"


@dataclass(frozen=True, slots=True)
class ConfigLocation:
    pointer: Pointer
    at_key: bool = False
    """Whether the location is a key rather than the value of the key."""


@dataclass(frozen=True, slots=True)
class RelatedInfo:
    message: str
    location: ConfigLocation


@dataclass(frozen=True, slots=True)
class Diagnostic:
    code: Code
    message: str
    location: ConfigLocation
    effect: Effect
    hint: str | None = None
    related: tuple[RelatedInfo, ...] = ()
    fix: Fix | None = None

    @property
    def rank(self) -> int:
        """Sort key by severity: 0 is the most severe."""
        # "maintenance" decides whether the machine may be interrupted, so its faults rank first.
        if self.effect is Effect.REFUSED or self.location.pointer[:1] == ("maintenance",):
            return 0
        return 1 if self.code.severity is Severity.ERROR else 2


Suggest = Callable[[str, Collection[str]], str | None]
"""Returns a hint that names the closest choice, or None."""

_MAX_WORD_LENGTH = 100


def close_match(word: str, choices: Iterable[str]) -> str | None:
    if len(word) > _MAX_WORD_LENGTH:
        return None
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    match = close_match(word, choices)
    return f'did you mean "{match}"?' if match is not None else None


def quote_json(pointer: Pointer, value: Json) -> str | None:
    del pointer
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}…"


_READABLE = {"\t": " ", "\n": r"\n", "\r": r"\r"}


def replace_unprintable(text: str) -> str:
    r"""Return one printable line, so that a text cannot move the cursor or forge log lines.

    A tab becomes a space and a line break `\n`.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else _READABLE.get(character, "\ufffd")
        for character in text
    )


def replace_unprintable_lines(text: str) -> str:
    """Return a text whose lines are printable; all lines but the first are indented."""
    return f"\n{INDENT}".join(map(replace_unprintable, text.splitlines()))


_LONG_WORD = re.compile(r"(\S{200})\S+")


def sanitize_message(text: str, scrub: Callable[[str], str] = str) -> str:
    """Return the message as one printable line of limited length, without secrets."""
    return truncate_message(_LONG_WORD.sub("\\1…", replace_unprintable(scrub(text))))
