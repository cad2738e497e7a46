from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
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
from cogwork.graph.node import State
from cogwork.graph.progress import progress_listener, report_progress

WITHIN = 10.0
X = TensorSpec("x", np.dtype(np.float32), (1,))
MLMODEL = Api.parse("rdk:service:mlmodel")


class Gate:
    """Lets work through when it is opened, and knows who came."""

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

    async def reached(self, by: int = 1) -> None:
        await asyncio.to_thread(self._reached, by)

    def _reached(self, by: int) -> None:
        with self._news:
            assert self._news.wait_for(lambda: self.came >= by, WITHIN)


class FakeEngine:
    info = ModelInfo("fake", (X,), (X,))

    def __init__(self, shop: Shop) -> None:
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
class Shop:
    """Makes engines, and sees what becomes of them."""

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
def shop() -> Iterator[Shop]:
    shop = Shop()
    yield shop
    shop.loads.open()
    shop.runs.open()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "model.fake"
    file.write_bytes(b"as good as any")
    return file


class Taken:
    """Models of one place, each given back at the end."""

    def __init__(self, shop: Shop, models: ModelCache) -> None:
        self.models = models
        self._shop = shop
        self._taken: list[LoadedModel] = []

    async def take(self, path: Path, options: str = "", threads: int = 1) -> LoadedModel:
        model = await self.models.acquire(str(path), options, threads, self._shop.load)
        self._taken.append(model)
        return model

    def give_back(self, model: LoadedModel) -> None:
        self._taken.remove(model)
        self.models.release(model)

    def give_all_back(self) -> None:
        for model in [*self._taken]:
            self.give_back(model)


@pytest.fixture
async def taken(shop: Shop) -> AsyncIterator[Taken]:
    taken = Taken(shop, ModelCache(SystemClock()))
    yield taken
    shop.loads.open()
    shop.runs.open()
    taken.give_all_back()
    assert await shop.all_closed()
    assert not taken.models._models


def tensors(number: float = 0) -> dict[str, NDArray[Any]]:
    return {"x": np.array([number], np.float32)}


async def turn() -> None:
    """Whoever can go on, does."""
    await ManualClock().settle()


class TestSharing:
    async def test_a_file_is_loaded_once(self, taken: Taken, shop: Shop, file: Path) -> None:
        first, *others = await asyncio.gather(*(taken.take(file) for _ in range(5)))
        assert [each is first for each in others] == [True] * 4
        assert (await taken.take(file)) is first
        assert (first.user_count, len(shop.engines)) == (6, 1)

    async def test_and_closed_with_the_last(self, taken: Taken, shop: Shop, file: Path) -> None:
        models = [await taken.take(file) for _ in range(3)]
        for model in models[:2]:
            taken.give_back(model)
        assert await models[2].run(tensors(4)) == tensors(4)
        assert not shop.engines[0].closed.is_set()
        taken.give_back(models[2])
        assert await shop.all_closed()
        with pytest.raises(Interrupted, match=r"model model\.fake is closed"):
            await models[2].run(tensors())
        assert (await taken.take(file)) is not models[2]

    async def test_by_whichever_path(self, taken: Taken, file: Path, tmp_path: Path) -> None:
        link = tmp_path / "link"
        link.symlink_to(file)
        assert (await taken.take(link)) is (await taken.take(file))

    async def test_other_threads_options_and_editions_are_others(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        made = [await taken.take(file)]
        made.append(await taken.take(file, threads=2))
        made.append(await taken.take(file, "reduced"))
        os.utime(file, (1, 1))
        made.append(await taken.take(file))
        file.write_bytes(b"longer than it was before")
        os.utime(file, (1, 1))
        made.append(await taken.take(file))
        copy = file.with_name("copy")
        copy.write_bytes(file.read_bytes())
        os.utime(copy, (1, 1))
        copy.rename(file)
        made.append(await taken.take(file))
        assert len(set(map(id, made))) == len(shop.engines) == 6

    async def test_a_folder_has_editions_too(self, taken: Taken, tmp_path: Path) -> None:
        folder = tmp_path / "saved"
        (folder / "variables").mkdir(parents=True)
        (folder / "variables" / "data").write_bytes(b"12345")
        first = await taken.take(folder)
        assert first.version.size >= 5
        (folder / "variables" / "data").write_bytes(b"1234567")
        assert (await taken.take(folder)) is not first


class TestLoading:
    async def test_a_load_that_fails_is_tried_again(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        shop.faults += [BadModel("it is half"), MemoryError()]
        with pytest.raises(BadModel, match="it is half"):
            await taken.take(file)
        with pytest.raises(MemoryError):
            await taken.take(file)
        assert (await taken.take(file)).user_count == 1

    async def test_all_who_wait_are_told(self, taken: Taken, shop: Shop, file: Path) -> None:
        shop.loads = Gate()
        shop.faults.append(BadModel("it is half"))
        waiters = [asyncio.ensure_future(taken.take(file)) for _ in range(3)]
        await shop.loads.reached()
        await until(lambda: users(taken) == 3)
        shop.loads.open()
        told = await asyncio.gather(*waiters, return_exceptions=True)
        assert [str(each) for each in told] == ["it is half"] * 3
        assert shop.loads.came == 1

    async def test_whoever_gives_up_does_not_end_it_for_others(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        shop.loads = Gate()
        waiters = [asyncio.ensure_future(taken.take(file)) for _ in range(3)]
        await shop.loads.reached()
        await until(lambda: users(taken) == 3)
        waiters[0].cancel()
        await asyncio.wait(waiters[:1])
        assert users(taken) == 2
        shop.loads.open()
        first, second = await asyncio.gather(*waiters[1:])
        assert first is second
        assert (first.user_count, len(shop.engines)) == (2, 1)

    async def test_nobody_wants_it_any_more(self, taken: Taken, shop: Shop, file: Path) -> None:
        """What comes of it is closed, and whoever asks meanwhile gets another."""
        shop.loads = Gate()
        waiter = asyncio.ensure_future(taken.take(file))
        await shop.loads.reached()
        waiter.cancel()
        await asyncio.wait([waiter])
        again = asyncio.ensure_future(taken.take(file))
        await shop.loads.reached(by=2)
        shop.loads.open()
        await again
        await until(lambda: len(shop.engines) == 2)
        closed, kept = sorted(shop.engines, key=lambda each: each is (again.result().engine))
        assert await asyncio.to_thread(closed.closed.wait, WITHIN)
        assert not kept.closed.is_set()

    async def test_it_says_how_far_it_is(self, shop: Shop, file: Path) -> None:
        clock, said = ManualClock(), list[str]()
        models = ModelCache(clock)
        shop.loads = Gate()
        file.write_bytes(bytes(1_500_000))
        with progress_listener(said.append):
            loading = asyncio.ensure_future(models.acquire(str(file), "", 1, shop.load))
        await shop.loads.reached()
        await until(lambda: bool(said))
        await clock.advance(2.0)
        assert said == [
            f"loading {file} (1.5 MB), {seconds} s elapsed" for seconds in (0, 0, 1, 2, 2)
        ]
        shop.loads.open()
        models.release(await loading)
        assert await shop.all_closed()

    def test_nobody_has_to_listen(self) -> None:
        report_progress("nothing")


def users(taken: Taken) -> int:
    return sum(model.user_count for model in taken.models._models.values())


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN):
        while not condition():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.001)


class TestQueue:
    async def test_callers_take_turns_in_the_order_they_come(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        model = await taken.take(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(20)]
        await shop.runs.reached()
        shop.runs.open()
        assert await asyncio.gather(*runs) == [tensors(n) for n in range(20)]
        assert shop.order == list(range(20))
        assert shop.most_at_once == 1

    async def test_no_more_of_them_wait_than_there_are_places(
        self, taken: Taken, shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loaded_module, "_MAX_WAITING", 2)
        model = await taken.take(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.reached()
        with pytest.raises(TooMuchWork, match=r"model model\.fake is busy: 3 tasks are queued"):
            await model.run(tensors())
        shop.runs.open()
        await asyncio.gather(*runs)
        assert await model.run(tensors(7)) == tensors(7)

    async def test_whoever_gives_up_leaves_the_queue(
        self, taken: Taken, shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loaded_module, "_MAX_WAITING", 2)
        model = await taken.take(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.reached()
        runs[1].cancel()
        await asyncio.wait([runs[1]])
        runs.append(asyncio.ensure_future(model.run(tensors(9))))
        await turn()
        shop.runs.open()
        await asyncio.gather(*runs, return_exceptions=True)
        assert shop.order == [0, 2, 9]

    async def test_as_many_run_as_the_cores_have_room_for(
        self, taken: Taken, shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "cpu_count", lambda: 8)
        for threads, at_once in ((4, 2), (3, 2), (8, 1), (16, 1), (1, 8)):
            shop.runs, shop.most_at_once = Gate(), 0
            model = await taken.take(file, threads=threads)
            runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(12)]
            await shop.runs.reached(by=at_once)
            shop.runs.open()
            await asyncio.gather(*runs)
            assert shop.most_at_once == at_once, threads

    async def test_work_around_a_run_is_one_turn(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        model = await taken.take(file, threads=os.cpu_count() or 1)
        names = await model.run_with_engine(
            lambda run: (threading.current_thread().name, *run(tensors(3))["x"])
        )
        assert names[0].startswith("model model.fake")
        assert names[1] == 3

    async def test_what_waits_is_still_run_when_it_is_given_back(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        model = await taken.take(file, threads=os.cpu_count() or 1)
        shop.runs = Gate()
        runs = [asyncio.ensure_future(model.run(tensors(n))) for n in range(3)]
        await shop.runs.reached()
        taken.give_back(model)
        shop.runs.open()
        assert await asyncio.gather(*runs) == [tensors(n) for n in range(3)]


class FakeModel(EngineModel):
    shop: Shop

    @classmethod
    def load(cls, attributes: Any, threads: int) -> FakeEngine:
        return cls.shop.load()


class TestEngineModel:
    async def made(self, taken: Taken, shop: Shop, file: Path) -> FakeModel:
        FakeModel.shop = shop
        attributes = ModelAttributes(model_path=str(file))
        return await FakeModel.new(ResourceName(MLMODEL, "m"), attributes, {}, taken.models)

    async def test_closing_twice_takes_nothing_from_others(
        self, taken: Taken, shop: Shop, file: Path
    ) -> None:
        one, other = [await self.made(taken, shop, file) for _ in range(2)]
        await one.close()
        await one.close()
        assert await other.infer(tensors(5)) == tensors(5)
        assert (await other.get_status())["services"] == 1
        await other.close()

    async def test_what_cannot_be_described_is_given_back(
        self, taken: Taken, shop: Shop, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        described = ModelInfo("fake", (X,), (X,), properties={"no": object()})
        monkeypatch.setattr(FakeEngine, "info", described)
        with pytest.raises(TypeError, match="type object cannot be sent"):
            await self.made(taken, shop, file)
        assert await shop.all_closed()


class TestProgress:
    """Through a real machine: what a constructor says is why its node is not ready."""

    async def test_it_is_the_reason_while_the_resource_is_configured(
        self, shop: Shop, file: Path
    ) -> None:
        shop.loads = Gate()
        async with running_bench() as bench:
            models, taken = ModelCache(bench.clock), list[LoadedModel]()

            async def load() -> None:
                taken.append(await models.acquire(str(file), "", 1, shop.load))

            bench.scripts["build", "eye"] = load
            bench.start_apply({"components": [thing("eye")]})
            await shop.loads.reached()
            node = bench.machine.nodes[full_name("eye")]
            await until(lambda: node.reason is not None)
            await bench.clock.advance(3)
            assert node.state is State.CONFIGURING
            assert node.reason is not None
            assert node.reason.text == f"loading {file} (0.0 MB), 3 s elapsed"
            reply = await bench.call_robot("GetMachineStatus")
            (status,) = [each for each in reply.resources if each.name.name == "eye"]
            assert status.error == node.reason.text
            shop.loads.open()
            await until(lambda: node.state is State.READY)
            assert bench.machine.nodes[full_name("eye")].reason is None
            models.release(taken[0])
            assert await shop.all_closed()

    async def test_a_file_that_cannot_be_loaded_is_the_reason_then(
        self, shop: Shop, tmp_path: Path
    ) -> None:
        async with running_bench() as bench:
            models = ModelCache(bench.clock)

            async def load() -> None:
                await models.acquire(str(tmp_path / "none"), "", 1, shop.load)

            bench.scripts["build", "eye"] = load
            bench.start_apply({"components": [thing("eye")]})
            node = bench.machine.nodes[full_name("eye")]
            await until(lambda: node.state is State.UNHEALTHY)
            assert node.reason is not None
            assert node.reason.text.endswith("none cannot be read: No such file or directory")


class TestEdition:
    def test_a_file_is_the_same_until_it_changes(self, file: Path) -> None:
        before = FileVersion.from_path(str(file))
        assert FileVersion.from_path(str(file)) == before
        file.write_bytes(b"something else")
        assert FileVersion.from_path(str(file)) != before
