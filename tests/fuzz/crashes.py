"""Distinct failures of a target, each with the input that caused it."""

from __future__ import annotations

import hashlib
import traceback
from pathlib import Path

MAX_CRASHES = 20
"""Distinct failures after which a run ends."""


class Crashes:
    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen: set[str] = set()

    def __len__(self) -> int:
        return len(self._seen)

    def add(self, error: BaseException, data: bytes) -> None:
        """Keep one input for each origin of an error."""
        origin = _find_origin(error)
        if origin in self._seen:
            return
        self._seen.add(origin)
        name = hashlib.sha256(origin.encode()).hexdigest()[:12]
        self._directory.mkdir(parents=True, exist_ok=True)
        (self._directory / f"{name}.bin").write_bytes(data)
        report = "".join(traceback.format_exception(error))
        (self._directory / f"{name}.txt").write_text(f"{data[:500]!r}\n\n{report[-8000:]}")


def _find_origin(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/cogwork/" in frame.filename] or frames
    last = ours[-1]
    return f"{type(error).__name__} {last.filename}:{last.lineno}"
