"""A thread of one's own, for work that would block the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class OwnThread:
    """One piece of work after the other. Not the loop's own threads: one that hangs there would
    starve everybody."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, work)

    def close(self) -> None:
        """Does not wait for work that is under way."""
        self._executor.shutdown(wait=False, cancel_futures=True)
