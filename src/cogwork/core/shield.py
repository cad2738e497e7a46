"""Finish work even if its waiter is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def await_shielded(work: Awaitable[T]) -> T:
    """Wait until the work is complete, and only then raise a cancellation.

    Further cancellations do not interrupt the work either, so the work needs its own deadline.
    """
    task = asyncio.ensure_future(work)
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        if not task.cancelled():
            task.exception()
        raise cancellation
    return task.result()
