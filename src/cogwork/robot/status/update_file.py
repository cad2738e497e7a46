"""Updates that the agent of this machine prepares, for the status."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cogwork.core.versions.update_progress import PROGRESS_VARIABLE, read_progress
from cogwork.core.workers import TooMuchWork, run_in_thread

_TIMEOUT: Final = 5.0


class UpdateFile:
    """Shows nothing if no agent runs this machine."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        path = environment.get(PROGRESS_VARIABLE)
        self._path = Path(path) if path else None

    async def read(self) -> list[dict[str, Any]]:
        """Return the updates that have not arrived, each with what it waits for."""
        if self._path is None:
            return []
        try:
            progress = await run_in_thread("updates", _TIMEOUT, read_progress, self._path)
        except (TimeoutError, TooMuchWork):
            return []
        return [
            {"product": product, **dataclasses.asdict(each)}
            for product, each in progress.products.items()
            if each.phase != "current"
        ]
