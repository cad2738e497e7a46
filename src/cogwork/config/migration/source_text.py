"""The text that is migrated: lines and excerpts of its values, without secrets."""

from __future__ import annotations

import functools
import re

from cogwork.config.text.json_reader import read_json
from cogwork.config.text.positions import Json, Pointer, Span
from cogwork.config.text.secrets import find_variables, mask_secrets
from cogwork.config.text.substitution import hide_variables
from cogwork.logs.secret_mask import STARS

_MAX_EXCERPT = 60
_SPACE = re.compile(r"\s+")
_ASTERISKS = re.compile(r"\*{2,}")


class SourceText:
    def __init__(self, text: str) -> None:
        """Raise JsonSyntaxError if the text is invalid whatever its variables are."""
        self.text = text
        self._document = read_json(hide_variables(text))

    @property
    def value(self) -> Json:
        """The value of the text; variables outside of strings are strings."""
        return self._document.value

    def start(self, pointer: Pointer) -> int:
        """Return the offset of the key, or of the item of a list."""
        return (self._document.key_span(pointer) or self._document.value_span(pointer)).start

    def has_variable(self, pointer: Pointer) -> bool:
        span = self._document.value_span(pointer)
        return bool(find_variables(self.text[span.start : span.end]))

    def show_value(self, pointer: Pointer) -> str:
        """Return the value as it is written, on one line and without secrets."""
        return self._show(self._document.value_span(pointer))

    def show_entry(self, pointer: Pointer) -> str:
        """Return the key and the value as they are written, on one line and without secrets."""
        return self._show(Span(self.start(pointer), self._document.value_span(pointer).end))

    def show_key(self, pointer: Pointer) -> str:
        span = self._document.key_span(pointer)
        return self._show(span) if span is not None else f"item {pointer[-1]}"

    def _show(self, span: Span) -> str:
        shown = _SPACE.sub(" ", _ASTERISKS.sub(STARS, self._masked[span.start : span.end]))
        return shown if len(shown) <= _MAX_EXCERPT else f"{shown[: _MAX_EXCERPT - 1]}…"

    @functools.cached_property
    def _masked(self) -> str:
        return mask_secrets(self.text)
