"""Rates of calls that alternate between several routes, so that noise affects all routes
equally."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping

Call = Callable[[], Awaitable[float]]
"""Returns the amount of work: 1, or the megabytes received."""
Rates = dict[str, list[float]]
"""The rates of each round, by route."""


async def measure_interleaved(
    routes: Mapping[str, Call], callers: int, rounds: int, seconds: float
) -> Rates:
    rates: Rates = {route: [] for route in routes}
    for number in range(rounds + 1):
        # Rotate the order, so that no route always runs first.
        for route in sorted(routes, reverse=bool(number % 2)):
            rate = await _measure_rate(routes[route], callers, seconds)
            if number:  # the first round is warm-up
                rates[route].append(rate)
    return rates


def cost_ratio(base: list[float], ours: list[float]) -> float:
    """Return the time of a call by our route, relative to the base."""
    return statistics.median(theirs / mine for mine, theirs in zip(ours, base, strict=True))


async def _measure_rate(call: Call, callers: int, seconds: float) -> float:
    done = 0.0
    started = time.perf_counter()

    async def ask() -> None:
        nonlocal done
        while time.perf_counter() - started < seconds:
            much = await call()
            done += much

    await asyncio.gather(*(ask() for _ in range(callers)))
    return done / (time.perf_counter() - started)
