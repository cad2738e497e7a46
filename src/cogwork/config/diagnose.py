"""Diagnostics: what is wrong, where, what the machine does about it, and what a person can do."""

from __future__ import annotations

import difflib
import enum
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from cogwork.config.codes import Code
from cogwork.config.positions import Json, Pointer

Quote = Callable[[Pointer, Json], str | None]
"""The value as a message may show it; None for a secret."""


class Effect(enum.StrEnum):
    """What the machine does about it."""

    REFUSED = "the configuration is refused"
    UNHEALTHY = "it is unhealthy until this is mended"
    IGNORED = "it is ignored"


@dataclass(frozen=True, slots=True)
class Place:
    pointer: Pointer
    at_key: bool = False
    """The key is at fault, not its value."""


@dataclass(frozen=True, slots=True)
class Related:
    message: str
    place: Place


@dataclass(frozen=True, slots=True)
class Diagnostic:
    code: Code
    message: str
    place: Place
    effect: Effect
    hint: str | None = None
    related: tuple[Related, ...] = ()


_LONGEST_GUESS = 100


def close_match(word: str, choices: Iterable[str]) -> str | None:
    if len(word) > _LONGEST_GUESS:
        return None
    by_lower = {choice.lower(): choice for choice in choices}
    found = difflib.get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return by_lower[found[0]] if found else None


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    match = close_match(word, choices)
    return f'did you mean "{match}"?' if match is not None else None


def quote_plainly(pointer: Pointer, value: Json) -> str | None:
    del pointer
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:37]}…"


def printable(text: str) -> str:
    """Nothing in a file may move the cursor of a terminal or start a line of a log."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "\ufffd" for character in text)


_ENDLESS = re.compile(r"(\S{200})\S+")


def said(text: str, scrub: Callable[[str], str] = str) -> str:
    """A message as it may be said: in one line, of words that end, without what is scrubbed."""
    return _ENDLESS.sub("\\1…", printable(scrub(text)))
