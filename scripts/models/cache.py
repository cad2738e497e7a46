"""The directory that keeps the fetched files."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.models.catalog import File

from cogwork.core.files import atomic

VARIABLE = "COGWORK_TEST_MODELS"
_DEFAULT = Path(__file__).parents[2] / ".models"
"""A directory outside `.cache`, because the builder of the site empties that one."""
_LOCK_TIMEOUT = 900.0
_POLL_INTERVAL = 0.2


def directory() -> Path:
    return Path(os.environ.get(VARIABLE) or _DEFAULT).absolute()


def missing(where: Path, files: Sequence[File]) -> list[File]:
    """Return the files that are missing or have a wrong checksum."""
    return [file for file in files if _digest(where / file.name) != file.sha256]


def store(where: Path, file: File, data: bytes) -> None:
    if (found := hashlib.sha256(data).hexdigest()) != file.sha256:
        raise ValueError(
            f"{file.name} has the SHA-256 {found} instead of {file.sha256}; check that onnx and "
            "Pillow have the versions of the group test in pyproject.toml"
        )
    path = where / file.name
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(path, data, mode=0o644)


@contextlib.contextmanager
def lock(where: Path) -> Iterator[None]:
    """Hold a lock, so that only one process fetches and the others wait for it."""
    where.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + _LOCK_TIMEOUT
    with (where / ".lock").open("w") as file:
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if time.monotonic() > deadline:
                raise TimeoutError(f"timed out waiting for another process to release {file.name}")
            time.sleep(_POLL_INTERVAL)
        yield


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
