"""Keeps code of a driver from ending the process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cogwork.core.error_text import error_text


@contextlib.contextmanager
def trap_exit() -> Iterator[None]:
    """Turn SystemExit into an error: otherwise a driver that exits would end the process."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(error_text(error)) from None
