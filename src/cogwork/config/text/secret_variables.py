"""Find the environment variables that a configuration uses in secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cogwork.config.text.json_reader import Document
from cogwork.config.text.placeholders import find_environment_placeholders
from cogwork.config.text.positions import Json, Pointer, Span
from cogwork.config.text.secrets import find_variables, is_masked


def secret_variable_names(
    document: Document, original: str, original_span: Callable[[Span], Span]
) -> frozenset[str]:
    """Return the names of the variables in values that no output may show.

    `original` is the text before substitution. `original_span` maps a span of the document to a
    span of `original`.
    """
    if "$" not in original:
        return frozenset()
    spans = (original_span(document.value_span(at)) for at, _ in _find_masked(document.value, ()))
    return frozenset(
        name for span in spans for name in find_variables(original[span.start : span.end])
    )


def secret_placeholder_names(value: Json) -> frozenset[str]:
    """Return the names of the variables in secret values of a configuration that is not text."""
    return frozenset(
        name
        for _, text in _find_masked(value, ())
        if isinstance(text, str)
        for name in find_environment_placeholders(text)
    )


def _find_masked(value: Json, at: Pointer) -> Iterator[tuple[Pointer, Json]]:
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _find_masked(member, (*at, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _find_masked(member, (*at, index))
    elif at and is_masked(at):
        yield at, value
