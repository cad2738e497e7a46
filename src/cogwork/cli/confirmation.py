"""Ask the user before something is changed."""

from __future__ import annotations

import sys

from cogwork.cli.terminal import print_text
from cogwork.core.errors import CogworkError


class CannotAsk(CogworkError):
    """There is no terminal to ask a question on."""


def confirm(question: str) -> bool:
    """Return whether the user agrees. Raise CannotAsk without a terminal."""
    return ask(f"{question} [y/N] ") in ("y", "yes")


def ask(question: str) -> str:
    """Return the user's answer in lower case. Raise CannotAsk without a terminal."""
    if not sys.stdin.isatty():
        raise CannotAsk("cannot ask without a terminal; to continue without a question, add -y")
    print_text(question)
    return sys.stdin.readline().strip().lower()
