"""Questions to the user before a change."""

from __future__ import annotations

import sys

from cogwork.core.errors import CogworkError
from cogwork.core.escape import escape


class CannotAsk(CogworkError):
    """A question cannot be asked without a terminal."""


def confirm(question: str) -> bool:
    """Return whether the user agrees. Raise CannotAsk without a terminal."""
    return ask(f"{question} [y/N] ") in ("y", "yes")


def ask(question: str) -> str:
    """Return the user's answer in lower case. Raise CannotAsk without a terminal."""
    if not sys.stdin.isatty():
        raise CannotAsk("cannot ask without a terminal; to continue without a question, add -y")
    print(escape(question), end="", flush=True)
    return sys.stdin.readline().strip().lower()
