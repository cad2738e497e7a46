"""What must never be shown: which values are secret, and a line of the file without them."""

from __future__ import annotations

import re

from cogwork.config.positions import Pointer

_SECRET_KEY = re.compile(
    r"secret|passw|token|api_?key|private_?key|credential|payload|^key$", re.IGNORECASE
)
_SECRET_VALUE = re.compile(
    r'("(?:[^"\\]|\\.)*(?:secret|passw|token|api_?key|private_?key|credential|payload)(?:[^"\\]|\\.)*"'
    r'|"key")(\s*:\s*)"((?:[^"\\]|\\.)*)("?)',
    re.IGNORECASE,
)
_ANY_VALUE = re.compile(r'("(?:[^"\\]|\\.)*")(\s*:\s*)"((?:[^"\\]|\\.)*)("?)')


def is_secret(pointer: Pointer) -> bool:
    if pointer[:2] == ("auth", "handlers"):
        return "config" in pointer
    return any(isinstance(part, str) and _SECRET_KEY.search(part) for part in pointer)


def masked(line: str, *, all_values: bool = False) -> str:
    """The line with each secret as stars, as long as before so that a caret stays right."""
    pattern = _ANY_VALUE if all_values else _SECRET_VALUE
    return pattern.sub(lambda m: f'{m[1]}{m[2]}"{"*" * len(m[3])}{m[4]}', line)
