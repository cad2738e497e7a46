"""How commands talk: exit codes, JSON for programs, colour for people."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

FINE = 0
FAULTS = 1
USAGE = 2

_STYLES = {"red": "31", "yellow": "33", "bold": "1", "dim": "2"}


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def complain(message: str) -> None:
    print(message, file=sys.stderr)


def paint(text: str, style: str) -> str:
    """Colour on a terminal that wants it, plain text elsewhere."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    if plain or not sys.stdout.isatty():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"
