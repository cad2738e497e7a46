"""Pending updates, which the agent of this machine writes to a file for the status."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cogwork.core.versions.update_progress import PROGRESS_VARIABLE, read_progress
from cogwork.core.workers import TooMuchWork, run_in_thread

_TIMEOUT: Final = 5.0


class UpdateFile:
    """The file of the agent's updates. Without an agent, it reads as empty."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        path = environment.get(PROGRESS_VARIABLE)
        self._path = Path(path) if path else None

    async def read(self) -> list[dict[str, Any]]:
        """Return the updates that are not installed yet, each with the reason why it waits."""
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
