"""A server of the agent, that starts, answers and ends as a test says."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from typing import cast

from cogwork.agent.errors import ServerSilent
from cogwork.agent.supervision.probe import ServerAnswer, ServerProbe


class ScriptedServer:
    """The process, and the answers of its probe."""

    def __init__(self, current: Callable[[], str | None]) -> None:
        """`current` returns the version that a start runs."""
        self._current = current
        self._ids = itertools.count(100)
        self._end: asyncio.Future[str] | None = None
        self.process_id: int | None = None
        self.started: list[str | None] = []
        """The version of each start."""
        self.stop_timeouts: list[float | None] = []
        self.broken: set[str] = set()
        """Versions that end as soon as they start."""
        self.silent: set[str] = set()
        """Versions that never answer."""
        self.denial: str | None = None
        """Why it may not be restarted now."""

    @property
    def version(self) -> str | None:
        """The version that runs."""
        return self.started[-1] if self.process_id is not None else None

    async def start(self) -> None:
        if self.process_id is not None:
            return
        version = self._current()
        self.started.append(version)
        self.process_id, self._end = next(self._ids), asyncio.get_running_loop().create_future()
        if version in self.broken:
            self.crash()

    async def stop(self, timeout: float | None = None) -> None:
        self.stop_timeouts.append(timeout)
        self._finish("it was stopped")

    async def wait(self) -> str:
        assert self._end is not None
        return await asyncio.shield(self._end)

    def crash(self) -> None:
        self._finish("exit code 1")

    def _finish(self, how: str) -> None:
        if self._end is not None and not self._end.done():
            self._end.set_result(how)
        self.process_id = None

    @property
    def probe(self) -> ServerProbe:
        return cast("ServerProbe", self)

    def forget(self) -> None:
        """Nothing is remembered."""

    async def ask(self, process_id: int | None) -> ServerAnswer:
        version = self.version
        if version is None or process_id != self.process_id or version in self.silent:
            raise ServerSilent("the server is not ready yet")
        return ServerAnswer(version, self.denial is None, self.denial or "nothing moves")
