"""Work that is not left half done, whoever gives up waiting for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T]) -> T:
    """However often whoever waits is told to give up: that is raised after the end. The work has a
    deadline of its own."""
    task = asyncio.ensure_future(work)
    told: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            told = error
    if told is not None:
        if not task.cancelled():
            task.exception()
        raise told
    return task.result()
