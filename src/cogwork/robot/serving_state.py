"""The serving state of the machine, as gRPC's health service reports it."""

from __future__ import annotations

import asyncio


class ServingState:
    """The serving state: serving until the machine begins to stop."""

    def __init__(self) -> None:
        self.is_serving = True
        self._end: asyncio.Future[None] | None = None

    def change(self) -> asyncio.Future[None]:
        """Return a future that is done when the machine begins to stop."""
        if self._end is None:
            self._end = asyncio.get_running_loop().create_future()
        return self._end

    def end(self) -> None:
        self.is_serving = False
        end, self._end = self._end, None
        if end is not None and not end.done():
            end.set_result(None)
