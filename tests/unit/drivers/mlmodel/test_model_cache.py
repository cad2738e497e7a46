from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.support.waiting import wait_until
from tests.unit.robot.bench import full_name, running_bench, thing

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.core.errors import Interrupted
from cogwork.core.workers import TooMuchWork
from cogwork.drivers.mlmodel import model_cache as loaded_module
from cogwork.drivers.mlmodel.attributes import ModelAttributes
from cogwork.drivers.mlmodel.engine import BadModel
from cogwork.drivers.mlmodel.engine_model import EngineModel
from cogwork.drivers.mlmodel.model_cache import FileVersion, LoadedModel, ModelCache
from cogwork.drivers.mlmodel.model_info import ModelInfo, TensorSpec
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.node import NodeState
from cogwork.graph.progress import progress_listener, report_progress

WITHIN = 10.0
X = TensorSpec("x", np.dtype(np.float32), (1,))
MLMODEL = Api.parse("rdk:service:mlmodel")


class Gate:
    """Blocks callers until it is opened, and counts them."""

    def __init__(self, *, is_open: bool = False) -> None:
        self.came = 0
        self._is_open = is_open
        self._news = threading.Condition()

    def pass_through(self) -> None:
        with self._news:
            self.came += 1
            self._news.notify_all()
            assert self._news.wait_for(lambda: self._is_open, WITHIN)

    def open(self) -> None:
        with self._news:
            self._is_open = True
            self._news.notify_all()

    async def wait_for_callers(self, by: int = 1) -> None:
        await asyncio.to_thread(self._wait_for_callers, by)

    def _wait_for_callers(self, by: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.came >= by, WITHIN)


class FakeEngine:
    info = ModelInfo("fake", (X,), (X,))

    def __init__(self, shop: EngineFactory) -> None:
        self._shop = shop
        self.closed = threading.Event()
        self.in_it = 0

    def run(self, tensors: Any) -> dict[str, NDArray[Any]]:
        assert not self.closed.is_set(), "it runs on what is closed"
        shop = self._shop
        with shop.lock:
            self.in_it += 1
            shop.most_at_once = max(shop.most_at_once, self.in_it)
            shop.order.append(float(tensors["x"][0]))
        shop.runs.pass_through()
        with shop.lock:
            self.in_it -= 1
        return dict(tensors)

    def close(self) -> None:
        self.closed.set()


@dataclass
class EngineFactory:
    """Creates fake engines and observes their life."""

    loads: Gate = field(default_factory=lambda: Gate(is_open=True))
    runs: Gate = field(default_factory=lambda: Gate(is_open=True))
    engines: list[FakeEngine] = field(default_factory=list)
    faults: list[Exception] = field(default_factory=list)
    order: list[float] = field(default_factory=list)
    most_at_once: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def load(self) -> FakeEngine:
        self.loads.pass_through()
        if self.faults:
            raise self.faults.pop(0)
        self.engines.append(FakeEngine(self))
        return self.engines[-1]

    async def all_closed(self) -> bool:
        each = (asyncio.to_thread(engine.closed.wait, WITHIN) for engine in self.engines)
        return all(await asyncio.gather(*each))


@pytest.fixture
def shop() -> Iterator[EngineFactory]:
    shop = EngineFactory()
    yield shop
    shop.loads.open()
    shop.runs.open()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "model.fake"
    file.write_bytes(b"as good as any")
    return file


class CacheUser:
    """Acquires models of one cache and releases them at the end."""

    def __init__(self, shop: EngineFactory, models: ModelCache) -> None:
        self.models = models
        self._shop = shop
        self._taken: list[LoadedModel] = []

    async def acquire(self, path: Path, options: str = "", threads: int = 1) -> LoadedModel:
        model = await self.models.acquire(str(path), options, threads, self._shop.load)
        self._taken.append(model)
        return model

    def release(self, model: LoadedModel) -> None:
        self._taken.remove(model)
        self.models.release(model)

    def release_all(self) -> None:
        for model in [*self._taken]:
            self.release(model)


@pytest.fixture
async def taken(shop: EngineFactory) -> AsyncIterator[CacheUser]:
    taken = CacheUser(shop, ModelCache(SystemClock()))
    yield taken
    shop.loads.open()
    shop.runs.open()
    taken.release_all()
    assert await shop.all_closed()
    assert not taken.models._models


def tensors(number: float = 0) -> dict[str, NDArray[Any]]:
    return {"x": np.array([number], np.float32)}


async def settle() -> None:
    """Let every task run as far as it can."""
    await ManualClock().settle()


class TestSharing:
    async def test_file_is_loaded_once_for_all_users(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        first, *others = await asyncio.gather(*(taken.acquire(file) for _ in range(5)))
        assert [each is first for each in others] == [True] * 4
        assert (await taken.acquire(file)) is first
        assert (first.user_count, len(shop.engines)) == (6, 1)

    async def test_engine_is_closed_with_its_last_user(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        models = [await taken.acquire(file) for _ in range(3)]
        for model in models[:2]:
            taken.release(model)
        assert await models[2].run(tensors(4)) == tensors(4)
        assert not shop.engines[0].closed.is_set()
        taken.release(models[2])
        assert await shop.all_closed()
        with pytest.raises(Interrupted, match=r"model model\.fake is closed"):
            await models[2].run(tensors())
        assert (await taken.acquire(file)) is not models[2]

    async def test_link_and_target_share_one_engine(
        self, taken: CacheUser, file: Path, tmp_path: Path
    ) -> None:
        link = tmp_path / "link"
        link.symlink_to(file)
        assert (await taken.acquire(link)) is (await taken.acquire(file))

    async def test_other_threads_options_and_file_versions_load_again(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        made = [await taken.acquire(file)]
        made.append(await taken.acquire(file, threads=2))
        made.append(await taken.acquire(file, "reduced"))
        os.utime(file, (1, 1))
        made.append(await taken.acquire(file))
        file.write_bytes(b"longer than it was before")
        os.utime(file, (1, 1))
        made.append(await taken.acquire(file))
        copy = file.with_name("copy")
        copy.write_bytes(file.read_bytes())
        os.utime(copy, (1, 1))
        copy.rename(file)
        made.append(await taken.acquire(file))
        assert len(set(map(id, made))) == len(shop.engines) == 6

    async def test_changed_folder_is_loaded_again(self, taken: CacheUser, tmp_path: Path) -> None:
        folder = tmp_path / "saved"
        (folder / "variables").mkdir(parents=True)
        (folder / "variables" / "data").write_bytes(b"12345")
        first = await taken.acquire(folder)
        assert first.version.size >= 5
        (folder / "variables" / "data").write_bytes(b"1234567")
        assert (await taken.acquire(folder)) is not first


class TestLoading:
    async def test_failed_load_is_retried_by_the_next_user(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        shop.faults += [BadModel("it is half"), MemoryError()]
        with pytest.raises(BadModel, match="it is half"):
            await taken.acquire(file)
        with pytest.raises(MemoryError):
            await taken.acquire(file)
        assert (await taken.acquire(file)).user_count == 1

    async def test_all_waiting_users_get_the_load_error(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        shop.loads = Gate()
        shop.faults.append(BadModel("it is half"))
        waiters = [asyncio.ensure_future(taken.acquire(file)) for _ in range(3)]
        await shop.loads.wait_for_callers()
        await wait_until(lambda: count_users(taken) == 3)
        shop.loads.open()
        told = await asyncio.gather(*waiters, return_exceptions=True)
        assert [str(each) for each in told] == ["it is half"] * 3
        assert shop.loads.came == 1

    async def test_cancelled_user_does_not_end_the_load_for_others(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        shop.loads = Gate()
        waiters = [asyncio.ensure_future(taken.acquire(file)) for _ in range(3)]
        await shop.loads.wait_for_callers()
        await wait_until(lambda: count_users(taken) == 3)
        waiters[0].cancel()
        await asyncio.wait(waiters[:1])
        assert count_users(taken) == 2
        shop.loads.open()
        first, second = await asyncio.gather(*waiters[1:])
        assert first is second
        assert (first.user_count, len(shop.engines)) == (2, 1)

    async def test_engine_of_an_abandoned_load_is_closed(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        """A user that comes meanwhile starts another load."""
        shop.loads = Gate()
        waiter = asyncio.ensure_future(taken.acquire(file))
        await shop.loads.wait_for_callers()
        waiter.cancel()
        await asyncio.wait([waiter])
        again = asyncio.ensure_future(taken.acquire(file))
        await shop.loads.wait_for_callers(by=2)
        shop.loads.open()
        await again
        await wait_until(lambda: len(shop.engines) == 2)
        closed, kept = sorted(shop.engines, key=lambda each: each is (again.result().engine))
        assert await asyncio.to_thread(closed.closed.wait, WITHIN)
        assert not kept.closed.is_set()

    async def test_progress_of_a_load_is_reported(self, shop: EngineFactory, file: Path) -> None:
        clock, said = ManualClock(), list[str]()
        models = ModelCache(clock)
        shop.loads = Gate()
        file.write_bytes(bytes(1_500_000))
        with progress_listener(said.append):
            loading = asyncio.ensure_future(models.acquire(str(file), "", 1, shop.load))
        await shop.loads.wait_for_callers()
        await wait_until(lambda: bool(said))
        await clock.advance(2.0)
        assert said == [
            f"loading {file} (1.5 MB), {seconds} s elapsed" for seconds in (0, 0, 1, 2, 2)
        ]
        shop.loads.open()
        models.release(await loading)
        assert await shop.all_closed()

    def test_progress_may_have_no_listener(self) -> None:
        report_progress("nothing")


def count_users(taken: CacheUser) -> int:
    return sum(model.user_count for model in taken.models._models.values())


class TestQueue:
    async def test_callers_run_in_the_order_of_their_calls(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        model = await taken.acquire(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(20)]
        await shop.runs.wait_for_callers()
        shop.runs.open()
        assert await asyncio.gather(*runs) == [tensors(n) for n in range(20)]
        assert shop.order == list(range(20))
        assert shop.most_at_once == 1

    async def test_number_of_waiting_callers_is_limited(
        self, taken: CacheUser, shop: EngineFactory, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loaded_module, "_MAX_WAITING", 2)
        model = await taken.acquire(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.wait_for_callers()
        with pytest.raises(TooMuchWork, match=r"model model\.fake is busy: 3 tasks are queued"):
            await model.run(tensors())
        shop.runs.open()
        await asyncio.gather(*runs)
        assert await model.run(tensors(7)) == tensors(7)

    async def test_cancelled_caller_leaves_the_queue(
        self, taken: CacheUser, shop: EngineFactory, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loaded_module, "_MAX_WAITING", 2)
        model = await taken.acquire(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.wait_for_callers()
        runs[1].cancel()
        await asyncio.wait([runs[1]])
        runs.append(asyncio.ensure_future(model.run(tensors(9))))
        await settle()
        shop.runs.open()
        await asyncio.gather(*runs, return_exceptions=True)
        assert shop.order == [0, 2, 9]

    async def test_number_of_concurrent_runs_depends_on_cores_and_threads(
        self, taken: CacheUser, shop: EngineFactory, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "cpu_count", lambda: 8)
        for threads, at_once in ((4, 2), (3, 2), (8, 1), (16, 1), (1, 8)):
            shop.runs, shop.most_at_once = Gate(), 0
            model = await taken.acquire(file, threads=threads)
            runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(12)]
            await shop.runs.wait_for_callers(by=at_once)
            shop.runs.open()
            await asyncio.gather(*runs)
            assert shop.most_at_once == at_once, threads

    async def test_work_around_a_run_is_queued_together_with_it(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        model = await taken.acquire(file, threads=os.cpu_count() or 1)
        names = await model.run_with_engine(
            lambda run: (threading.current_thread().name, *run(tensors(3))["x"])
        )
        assert names[0].startswith("model model.fake")
        assert names[1] == 3

    async def test_queued_runs_finish_after_release(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        model = await taken.acquire(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.wait_for_callers()
        taken.release(model)
        shop.runs.open()
        assert await asyncio.gather(*runs) == [tensors(n) for n in range(3)]


class FakeModel(EngineModel):
    shop: EngineFactory

    @classmethod
    def load(cls, attributes: Any, threads: int) -> FakeEngine:
        return cls.shop.load()


class TestEngineModel:
    async def create_model(self, taken: CacheUser, shop: EngineFactory, file: Path) -> FakeModel:
        FakeModel.shop = shop
        attributes = ModelAttributes(model_path=str(file))
        return await FakeModel.new(ResourceName(MLMODEL, "m"), attributes, {}, taken.models)

    async def test_closing_twice_does_not_affect_other_users(
        self, taken: CacheUser, shop: EngineFactory, file: Path
    ) -> None:
        one, other = [await self.create_model(taken, shop, file) for _ in range(2)]
        await one.close()
        await one.close()
        assert await other.infer(tensors(5)) == tensors(5)
        assert (await other.get_status())["services"] == 1
        await other.close()

    async def test_engine_is_released_when_its_metadata_cannot_be_built(
        self, taken: CacheUser, shop: EngineFactory, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        described = ModelInfo("fake", (X,), (X,), properties={"no": object()})
        monkeypatch.setattr(FakeEngine, "info", described)
        with pytest.raises(TypeError, match="type object cannot be sent"):
            await self.create_model(taken, shop, file)
        assert await shop.all_closed()


class TestProgress:
    """In a real machine, reported progress is the reason why a node is not ready."""

    async def test_progress_is_the_reason_while_the_resource_is_configured(
        self, shop: EngineFactory, file: Path
    ) -> None:
        shop.loads = Gate()
        async with running_bench() as bench:
            models, taken = ModelCache(bench.clock), list[LoadedModel]()

            async def load() -> None:
                taken.append(await models.acquire(str(file), "", 1, shop.load))

            bench.scripts["build", "eye"] = load
            bench.start_apply({"components": [thing("eye")]})
            await shop.loads.wait_for_callers()
            node = bench.machine.nodes[full_name("eye")]
            await wait_until(lambda: node.reason is not None)
            await bench.clock.advance(3)
            assert node.state is NodeState.CONFIGURING
            assert node.reason is not None
            assert node.reason.text == f"loading {file} (0.0 MB), 3 s elapsed"
            reply = await bench.call_robot("GetMachineStatus")
            (status,) = [each for each in reply.resources if each.name.name == "eye"]
            assert status.error == node.reason.text
            shop.loads.open()
            await wait_until(lambda: node.state is NodeState.READY)
            assert bench.machine.nodes[full_name("eye")].reason is None
            models.release(taken[0])
            assert await shop.all_closed()

    async def test_load_error_is_the_reason_of_an_unhealthy_resource(
        self, shop: EngineFactory, tmp_path: Path
    ) -> None:
        async with running_bench() as bench:
            models = ModelCache(bench.clock)

            async def load() -> None:
                await models.acquire(str(tmp_path / "none"), "", 1, shop.load)

            bench.scripts["build", "eye"] = load
            bench.start_apply({"components": [thing("eye")]})
            node = bench.machine.nodes[full_name("eye")]
            await wait_until(lambda: node.state is NodeState.UNHEALTHY)
            assert node.reason is not None
            assert node.reason.text.endswith("none cannot be read: No such file or directory")


class TestFileVersion:
    def test_version_is_equal_until_the_file_changes(self, file: Path) -> None:
        before = FileVersion.from_path(str(file))
        assert FileVersion.from_path(str(file)) == before
        file.write_bytes(b"something else")
        assert FileVersion.from_path(str(file)) != before
