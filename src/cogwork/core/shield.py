"""Finish work even if its waiter is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def await_shielded(work: Awaitable[T]) -> T:
    """Await the work to its end, and raise a cancellation only after that.

    Further cancellations do not interrupt it either, so the work needs a deadline of its own.
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
