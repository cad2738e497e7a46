"""Prevents driver code from ending the process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cogwork.core.error_text import error_text


@contextlib.contextmanager
def trap_exit() -> Iterator[None]:
    """Convert SystemExit to a RuntimeError, because a driver must not end the process."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(error_text(error)) from None
