"""What a constructor says about how far it is, for whoever looks at the machine meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_say: ContextVar[Callable[[str], None] | None] = ContextVar("say", default=None)


def say(text: str) -> None:
    """Shown as the reason why the resource is not ready yet. Without a graph, nobody hears it."""
    heard = _say.get()
    if heard is not None:
        heard(text)


@contextmanager
def heard_by(listener: Callable[[str], None]) -> Iterator[None]:
    token = _say.set(listener)
    try:
        yield
    finally:
        _say.reset(token)
