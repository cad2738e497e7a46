"""The reason of a failed call of the operating system, for users."""

from __future__ import annotations

import errno
import os
from typing import Final

_ADVICE: Final = {
    errno.ENOSPC: "free some disk space",
    errno.EDQUOT: "free some disk space, or ask for a larger quota",
    errno.EROFS: "write to another disk",
}
"""What to do about a file that cannot be written."""


def os_reason(error: BaseException) -> str:
    """Return the reason, such as "No space left on device".

    Libraries raise errors that have a number but no text, or a text but no number.
    """
    if isinstance(error, OSError):
        if error.strerror:
            return str(error.strerror)
        if error.errno:
            return os.strerror(error.errno)
    return str(error) or type(error).__name__


def write_reason(error: BaseException) -> str:
    """Return why a file cannot be written, and what to do if that is known."""
    number = error.errno if isinstance(error, OSError) else None
    advice = _ADVICE.get(number or 0)
    return f"{os_reason(error)}: {advice}" if advice is not None else os_reason(error)
