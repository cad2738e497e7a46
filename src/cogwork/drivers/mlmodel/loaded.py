"""Models that are loaded, each file once, however many services use it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cogwork.core.clock import Clock
from cogwork.core.workers import Workers, outcome
from cogwork.drivers.mlmodel.engine import BadModel, Engine, Run, runs_at_once
from cogwork.graph.progress import say

if TYPE_CHECKING:  # the table of models is read without NumPy
    from numpy.typing import NDArray

    from cogwork.resource.tensors import Tensors

T = TypeVar("T")

_WAITING = 64
"""Runs of one model that may wait for their turn."""
_NEWS = 0.5
"""Seconds between two words about how far loading is."""

Load = Callable[[], Engine]
"""Blocks."""


@dataclass(frozen=True, slots=True)
class Edition:
    """A file as it was at one time: another time, another edition."""

    path: str
    node: int
    """A file that replaces another may have its size, and the time of whoever built it."""
    changed_at: int
    size: int

    @classmethod
    def of(cls, path: str) -> Edition:
        try:
            file = Path(path).resolve(strict=True)
            stat, size = file.stat(), _size(file)
        except OSError as error:
            raise BadModel(f"{path} cannot be read: {error.strerror}") from error
        except (RuntimeError, ValueError) as error:  # links in a circle, no path at all
            raise BadModel(f"{path} cannot be read: {error}") from error
        return cls(str(file), stat.st_ino, stat.st_mtime_ns, size)


def _size(path: Path) -> int:
    if path.is_dir():
        return sum(each.lstat().st_size for each in path.rglob("*"))
    if not path.is_file():  # reading it might never end
        raise BadModel(f"{path} is neither a file nor a folder")
    return path.stat().st_size


class LoadedModel:
    """One edition of a file in one engine, with the threads that run it."""

    def __init__(self, edition: Edition, threads: int, load: Load) -> None:
        self.edition = edition
        self.users = 0
        name = f"model {Path(edition.path).name}"
        self._workers = Workers(name, threads=runs_at_once(threads), waiting=_WAITING)
        self._engine = self._workers.submit(load)

    @property
    def engine(self) -> Engine:
        return self._engine.result(timeout=0)

    async def loaded(self, clock: Clock) -> None:
        """Says how far it is meanwhile."""
        start = clock.monotonic()
        loading = asyncio.ensure_future(outcome(self._engine))
        try:
            while not loading.done():
                say(self._progress(clock.monotonic() - start))
                await clock.wait([loading], _NEWS)
            loading.result()
        finally:
            loading.cancel()

    async def run(self, tensors: Tensors) -> dict[str, NDArray[Any]]:
        """Callers take turns in the order they come; one that gives up leaves the queue."""
        return await self._workers.run(self.engine.run, tensors)

    async def work(self, work: Callable[[Run], T]) -> T:
        """A run with what comes before and after it, in one turn."""
        return await self._workers.run(work, self.engine.run)

    def close(self) -> None:
        """A load cannot be interrupted: what comes of it is closed when it comes."""
        self._workers.close_after(self._close_engine)

    def _close_engine(self) -> None:
        if self._engine.exception() is None:
            self._engine.result().close()

    def _progress(self, seconds: float) -> str:
        size = self.edition.size / 1e6
        return f"loading {self.edition.path} ({size:.1f} MB), {seconds:.0f} s so far"


class LoadedModels:
    """What several services use is kept until the last of them gives it back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._models: dict[Hashable, LoadedModel] = {}

    async def take(self, path: str, options: Hashable, threads: int, load: Load) -> LoadedModel:
        """`options` are all that makes one engine differ from another of the same file."""
        edition = await asyncio.to_thread(Edition.of, path)
        key = (edition, options, threads)
        model = self._models.get(key)
        if model is None:
            model = self._models[key] = LoadedModel(edition, threads, load)
        model.users += 1
        try:
            await model.loaded(self._clock)
        except BaseException:
            self.give_back(model)
            raise
        return model

    def give_back(self, model: LoadedModel) -> None:
        model.users -= 1
        if not model.users:
            self._models = {key: each for key, each in self._models.items() if each is not model}
            model.close()
