"""Limits on replies of modules, which are stored, compared and displayed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    message: int = 4 << 20
    """Maximum bytes of a module's reply to the server."""
    apis: int = 1_000
    models: int = 10_000
    dependencies: int = 1_000
    """Maximum dependencies of one resource."""
    name: int = 1_000
    """Maximum characters of any name."""
    error: int = 4_096
    """Maximum characters of an error message."""
    descriptions: int = 4 << 20
    """Maximum bytes of the descriptors of all services of a module."""


LIMITS: Final = ReplyLimits()


def truncate(text: str, length: int = LIMITS.error) -> str:
    """Return the text, truncated and marked as truncated if it is too long."""
    if len(text) <= length:
        return text
    return f"{text[:length]}… ({len(text) - length} more characters)"
