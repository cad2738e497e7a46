"""Patterns of the `log` section: wildcards or regular expressions for logger names.

Patterns come from clients and configurations, so they are matched with RE2, which guarantees linear
time. It is imported when it is first used: most machines have no patterns, and all would start
later.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re2

MAX_LENGTH = 1000
"""Maximum number of characters in a pattern."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that matches if its text, as a wildcard or as a regular expression, matches the
    whole logger name."""

    text: str
    expressions: tuple[Any, ...]

    @classmethod
    def parse(cls, text: str) -> Pattern:
        if not text:
            raise ValueError("the pattern is empty; write a logger name, with * as a wildcard")
        if len(text) > MAX_LENGTH:
            raise ValueError(f"the pattern has {len(text)} characters; the maximum is {MAX_LENGTH}")
        import re2

        wildcard = text.replace(".", r"\.").replace("*", ".*")
        expressions = []
        fault = ""
        for source in (wildcard, text):
            try:
                expressions.append(re2.compile(source, _options()))
            except (re2.error, UnicodeEncodeError) as error:
                fault = _describe_error(error)
        if not expressions:
            raise ValueError(f"the pattern is neither a wildcard nor a regular expression: {fault}")
        return cls(text, tuple(expressions))

    def matches(self, logger: str) -> bool:
        name = logger.encode(errors="replace").decode()
        return any(expression.fullmatch(name) for expression in self.expressions)


def _options() -> re2.Options:
    import re2

    options = re2.Options()
    # Do not print errors: only one of the two expressions has to be valid.
    options.log_errors = False
    return options


def _describe_error(error: Exception) -> str:
    """Return the error message, which RE2 reports as bytes."""
    reason = error.args[0] if error.args else ""
    text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(error)
    if "perl operator" in text or "escape sequence" in text:
        return f"{text} (look-around and back-references are not supported)"
    return text
