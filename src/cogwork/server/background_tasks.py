"""Background tasks of a server, which run independently of clients' calls."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from typing import Any

_log = logging.getLogger("rdk")


class BackgroundTasks:
    def __init__(self, on_failure: Callable[[str], None]) -> None:
        """Create an empty group. `on_failure` is called with the reason when a task has failed."""
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._on_done)

    async def cancel(self, *, keep: Collection[str] = ()) -> None:
        """Cancel all tasks except those named in `keep`, and wait until they have ended."""
        tasks = [task for task in self._tasks if task.get_name() not in keep]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("task %s failed; stopping the server", task.get_name(), exc_info=error)
            self._on_failure(f"task {task.get_name()} failed")
