"""Deadlines and retry delays of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cogwork.core.backoff import RetryPolicy

RETRY = RetryPolicy(first=0.5, maximum=30.0)


@dataclass(frozen=True, slots=True)
class GraphLimits:
    build: float = 120.0
    """Timeout in seconds of a constructor or a reconfiguration."""
    close: float = 30.0
    """Timeout in seconds of a close."""
    optional_wait: float = 2.0
    """Seconds that a node waits for an optional dependency that is being built."""
    abandon_grace: float = 1.0
    """Seconds that an abandoned constructor has to return before another one starts."""
    retry: RetryPolicy = RETRY
    """Back-off between attempts to build a resource."""


def slow_warning_times(limit: float) -> Iterator[float]:
    """Yield the elapsed times at which to warn about a slow call. The last of these times is the
    limit."""
    elapsed = 2.0
    while elapsed < limit:
        yield elapsed
        elapsed = 5.0 if elapsed < 5.0 else elapsed + 5.0
    yield limit
