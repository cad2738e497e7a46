"""A cache of loaded models: each file is loaded once and shared by services."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cogwork.core.clock import Clock
from cogwork.core.os_error_text import os_reason
from cogwork.core.workers import Workers, await_future
from cogwork.drivers.mlmodel.engine import BadModel, Engine, RunFunction, max_concurrent_runs
from cogwork.graph.progress import report_progress

if TYPE_CHECKING:  # listing the models must not import NumPy
    from numpy.typing import NDArray

    from cogwork.resource.messages.tensors import Tensors

T = TypeVar("T")

_MAX_WAITING = 64
"""Maximum number of queued runs per model."""
_PROGRESS_INTERVAL = 0.5
"""Seconds between two progress reports during loading."""

LoadEngine = Callable[[], Engine]
"""A blocking function that loads an engine."""


@dataclass(frozen=True, slots=True)
class FileVersion:
    """The identity of a file's content at a point in time."""

    path: str
    inode: int
    """Identifies a replacement that has the same size and modification time."""
    mtime_ns: int
    size: int

    @classmethod
    def from_path(cls, path: str) -> FileVersion:
        try:
            file = Path(path).resolve(strict=True)
            stat, size = file.stat(), _total_size(file)
        except OSError as error:
            raise BadModel(f"{path} cannot be read: {os_reason(error)}") from error
        except (RuntimeError, ValueError) as error:  # symlink loop, invalid path
            raise BadModel(f"{path} cannot be read: {error}") from error
        return cls(str(file), stat.st_ino, stat.st_mtime_ns, size)


def _total_size(path: Path) -> int:
    if path.is_dir():
        return sum(each.lstat().st_size for each in path.rglob("*"))
    if not path.is_file():  # reading a FIFO or device might never end
        raise BadModel(f"{path} is neither a file nor a folder")
    return path.stat().st_size


class LoadedModel:
    """A version of a model file, loaded by an engine, with the threads that run the model."""

    def __init__(self, version: FileVersion, threads: int, load: LoadEngine) -> None:
        self.version = version
        self.user_count = 0
        name = f"model {Path(version.path).name}"
        self._workers = Workers(name, threads=max_concurrent_runs(threads), waiting=_MAX_WAITING)
        self._engine = self._workers.submit(load)

    @property
    def engine(self) -> Engine:
        return self._engine.result(timeout=0)

    async def wait_until_loaded(self, clock: Clock) -> None:
        """Wait for the engine, and report progress meanwhile."""
        start = clock.monotonic()
        loading = asyncio.ensure_future(await_future(self._engine))
        try:
            while not loading.done():
                report_progress(self._format_progress(clock.monotonic() - start))
                await clock.wait([loading], _PROGRESS_INTERVAL)
            loading.result()
        finally:
            loading.cancel()

    async def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        """Run the model. Callers are served in order; a cancelled caller leaves the queue."""
        return await self._workers.run(self.engine.run, tensors)

    async def run_with_engine(self, work: Callable[[RunFunction], T]) -> T:
        """Run `work`, which calls the engine, as one job in the engine's threads."""
        return await self._workers.run(work, self.engine.run)

    def close(self) -> None:
        """Close the engine when it is idle. Loading cannot be interrupted; an engine that is still
        loading is closed afterwards."""
        self._workers.close_after(self._close_engine)

    def _close_engine(self) -> None:
        if self._engine.exception() is None:
            self._engine.result().close()

    def _format_progress(self, seconds: float) -> str:
        size = self.version.size / 1e6
        return f"loading {self.version.path} ({size:.1f} MB), {seconds:.0f} s elapsed"


class ModelCache:
    """A reference-counted cache: a model is closed when its last user releases it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._models: dict[Hashable, LoadedModel] = {}

    async def acquire(
        self, path: str, options: Hashable, threads: int, load: LoadEngine
    ) -> LoadedModel:
        """Return the loaded model. `options` distinguish engines for the same file."""
        version = await asyncio.to_thread(FileVersion.from_path, path)
        key = (version, options, threads)
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = LoadedModel(version, threads, load)
        model.user_count += 1
        try:
            await model.wait_until_loaded(self._clock)
        except BaseException:
            self.release(model)
            raise
        return model

    def release(self, model: LoadedModel) -> None:
        model.user_count -= 1
        if not model.user_count:
            self._models = {key: each for key, each in self._models.items() if each is not model}
            model.close()
