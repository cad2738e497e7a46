"""Converts errors of running a program to failures of the program."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Protocol

from cogwork.core.errors import CogworkError
from cogwork.subprocesses.executable_check import Misconfigured


class Fail(Protocol):
    def __call__(self, why: str, *, can_retry: bool = True) -> None: ...


@contextlib.contextmanager
def failing_on_errors(program: str, fail: Fail, log: logging.Logger) -> Iterator[None]:
    """Suppress an error, and report it to `fail`. `program`: the kind and the name of the
    program."""
    try:
        yield
    except Misconfigured as error:
        fail(f"cannot be started: {error}", can_retry=False)
    except (CogworkError, OSError) as error:
        fail(f"could not be started: {error}")
    except Exception as error:
        log.exception("internal error while running %s", program)
        fail(f"could not be run: {error}")
