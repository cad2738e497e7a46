"""Progress reports of constructors, shown in the status of the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("progress_listener", default=None)


def report_progress(text: str) -> None:
    """Report progress, which the status shows as the reason why the resource is not ready yet.

    Without a listener, the call has no effect.
    """
    listener = _listener.get()
    if listener is not None:
        listener(text)


@contextmanager
def progress_listener(listener: Callable[[str], None]) -> Iterator[None]:
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)
