"""The whole path of a configuration: source, load, apply, verdict, last-known-good copy."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.waiting import pass_time, run_others, wait_until

from cogwork.config.check.load_context import LoadContext
from cogwork.config.check.loader import LoadedConfig, load
from cogwork.config.schema.fields import Attributes, FileField
from cogwork.config.source import watcher
from cogwork.config.source.config_history import ConfigHistory
from cogwork.config.source.config_report import ConfigReport
from cogwork.config.source.last_good import LastGood
from cogwork.config.source.sources import (
    ConfigCandidate,
    ConfigRefused,
    ConfigSource,
    FileSource,
    PushedSource,
    Verdict,
)
from cogwork.config.source.watcher import ConfigWatcher
from cogwork.config.text.positions import Json
from cogwork.core.clock import SystemClock
from cogwork.graph.name import Api, ModelName, ResourceName
from cogwork.graph.node import NodeState
from cogwork.graph.provider import Dependencies, Providers
from cogwork.graph.reconciler import Applied, Outcome, Reconciler, Superseded
from cogwork.resource.model import Model
from cogwork.resource.registry import Registry

IsCancelled = Callable[[], bool]
API = Api.parse("rdk:component:generic")


class StepAttributes(Attributes):
    hangs: bool = False
    label: str = ""
    label_path: FileField = ""

    def model_post_init(self, _: object) -> None:
        if self.label == "exit":
            raise SystemExit(3)


@dataclass
class Machine:
    """A reconciler behind a ConfigWatcher, as in the server."""

    home: Path
    environment: dict[str, str] = field(default_factory=dict)
    loaded: list[LoadedConfig] = field(default_factory=list)
    reports: list[ConfigReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        model = Model(API, ModelName.parse("step"), StepAttributes, construct)
        self.registry = Registry([model])
        self.last_good = LastGood(self.home / "last-good.json")
        self.history = ConfigHistory(self.home / "history")
        self.reconciler = Reconciler(Providers({"built-in": self.registry}), SystemClock())

    def apply(
        self, loaded: LoadedConfig, verdict: asyncio.Future[Verdict]
    ) -> asyncio.Future[Outcome]:
        self.loaded.append(loaded)
        return self.reconciler.apply(loaded.result.specs, loaded.result.config.revision)

    def states(self) -> dict[str, NodeState]:
        return {name.short: node.state for name, node in self.reconciler.nodes.items()}

    @asynccontextmanager
    async def watching(self, source: ConfigSource) -> AsyncIterator[None]:
        context = LoadContext(self.registry, self.home, self.environment)
        config_watcher = ConfigWatcher(
            source,
            context,
            self.apply,
            self.last_good,
            publish=self.reports.append,
            history=self.history,
        )
        task = asyncio.ensure_future(config_watcher.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await self.reconciler.aclose()


async def construct(
    name: ResourceName, attributes: StepAttributes, dependencies: Dependencies
) -> object:
    if attributes.hangs:
        await asyncio.Event().wait()
    return object()


def machine_text(*names: str, revision: str = "1", **attributes: Json) -> str:
    components = [
        {"name": name, "api": str(API), "model": "step", "attributes": attributes} for name in names
    ]
    return json.dumps({"components": components, "revision": revision})


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def wait_for_verdict(of: Awaitable[object]) -> object:
    return await asyncio.wait_for(of, 5)


async def test_push_is_applied_and_saved(machine: Machine) -> None:
    source = PushedSource()
    text = machine_text("a", "b", revision="7")
    async with machine.watching(source):
        outcome = await wait_for_verdict(source.push(text))
        assert isinstance(outcome, Applied)
        assert (outcome.revision, outcome.ready, outcome.unhealthy) == ("7", 2, 0)
        assert machine.reconciler.revision == "7"
        assert machine.last_good.read() == text
        assert stat.S_IMODE(machine.last_good.path.stat().st_mode) == 0o600


class OneCandidate:
    """A source that yields one configuration."""

    def __init__(self, candidate: ConfigCandidate) -> None:
        self._candidates = [candidate]
        self.is_stopping = asyncio.Event()

    async def next(self) -> ConfigCandidate:
        if not self._candidates:
            try:
                await asyncio.Event().wait()
            finally:
                self.is_stopping.set()
        return self._candidates.pop()

    async def aclose(self) -> None:
        pass


async def test_configuration_is_stored_before_the_verdict_even_if_the_server_stops(
    machine: Machine,
) -> None:
    has_started = asyncio.Event()
    stored: list[dict[str, NodeState]] = []

    async def store() -> None:
        has_started.set()
        await source.is_stopping.wait()
        await run_others(10)
        assert not candidate.verdict.done()
        stored.append(machine.states())

    candidate = ConfigCandidate(machine_text("a"), store=store)
    source = OneCandidate(candidate)
    async with machine.watching(source):
        await wait_for_verdict(has_started.wait())
    assert isinstance(candidate.verdict.result(), Applied)
    assert stored == [{"a": NodeState.READY}]
    assert machine.last_good.read() == candidate.content


async def test_slow_disk_stores_only_the_newest_configuration(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved: list[str] = []
    may_save = threading.Event()

    def save_slowly(_: LastGood, text: str) -> None:
        saved.append(json.loads(text)["revision"])
        may_save.wait(10.0)

    monkeypatch.setattr(LastGood, "save", save_slowly)
    source = PushedSource()

    async def push(revision: str) -> asyncio.Future[Verdict]:
        verdict = source.push(machine_text("a", revision=revision))
        await wait_until(lambda: machine.reconciler.revision == revision)
        return verdict

    async with machine.watching(source):
        verdicts = [await push("1")]
        await wait_until(lambda: saved == ["1"])
        verdicts += [await push("2"), await push("3")]
        await run_others(10)
        may_save.set()
        for verdict in verdicts:
            assert isinstance(await wait_for_verdict(verdict), Applied)
    assert saved == ["1", "3"]


async def test_save_that_hangs_never_replaces_a_later_one(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_save = threading.Event()
    save = LastGood.save

    def save_late(last_good: LastGood, text: str) -> None:
        may_save.wait(10.0)
        save(last_good, text)

    monkeypatch.setattr(watcher, "_STORE_TIMEOUT", 0.01)
    monkeypatch.setattr(LastGood, "save", save_late)
    async with machine.watching(source := PushedSource()):
        for revision in ("1", "2"):
            await wait_for_verdict(source.push(machine_text("a", revision=revision)))
        may_save.set()
        newest = machine_text("a", revision="2")
        await wait_until(lambda: machine.last_good.read() == newest)


@pytest.mark.parametrize("text", ["{", '{"network": {"bind_address": 5}}'])
async def test_refused_configuration_is_not_stored(machine: Machine, text: str) -> None:
    async def store() -> None:
        raise AssertionError

    candidate = ConfigCandidate(text, store=store)
    async with machine.watching(OneCandidate(candidate)):
        assert isinstance(await wait_for_verdict(candidate.verdict), ConfigRefused)


async def test_applied_configurations_are_recorded_in_the_history(machine: Machine) -> None:
    source = PushedSource()
    texts = [machine_text("a", revision=revision) for revision in ("1", "2")]
    async with machine.watching(source):
        for text in (*texts, "{"):
            await wait_for_verdict(source.push(text))
            await wait_until(lambda: len([*machine.history.entries()]) >= 1)
        await wait_until(lambda: len([*machine.history.entries()]) == 2)
    assert [(entry.revision, entry.text) for entry in machine.history.entries()] == [
        ("2", texts[1]),
        ("1", texts[0]),
    ]


async def test_history_that_cannot_be_written_does_not_stop_the_machine(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    (machine.home / "history").write_text("not a directory")
    source = PushedSource()
    async with machine.watching(source):
        assert isinstance(await wait_for_verdict(source.push(machine_text("a"))), Applied)
        await wait_until(lambda: "cannot store the configuration in the history" in caplog.text)
        assert isinstance(await wait_for_verdict(source.push(machine_text("b"))), Applied)


async def test_refused_push_has_a_reason_and_changes_nothing(machine: Machine) -> None:
    source = PushedSource()
    good = machine_text("a")
    async with machine.watching(source):
        await wait_for_verdict(source.push(good))
        kept = machine.reconciler.nodes[ResourceName(API, "a")].held
        outcome = await wait_for_verdict(source.push('{"network": {"bind_address": 5}}'))
        assert isinstance(outcome, ConfigRefused)
        assert outcome.reason == "expected a string, got the number 5"
        outcome = await wait_for_verdict(source.push("{"))
        assert isinstance(outcome, ConfigRefused)
        assert machine.reconciler.nodes[ResourceName(API, "a")].held is kept
        assert machine.reconciler.revision == "1"
        assert machine.last_good.read() == good


async def test_each_version_is_reported_with_what_runs_instead(machine: Machine) -> None:
    source = PushedSource()
    faulty = machine_text("a", labl="x")
    async with machine.watching(source):
        for text in (machine_text("a"), "{", '{"network": 5}', faulty, "{"):
            await wait_for_verdict(source.push(text))
        await wait_until(lambda: len(machine.reports) == 5)
    assert [(report.state, report.running, report.errors) for report in machine.reports] == [
        ("valid", "this", 0),
        ("refused", "earlier", 1),
        ("refused", "earlier", 1),
        ("faulty", "this", 1),
        ("refused", "earlier", 1),
    ]
    since = [report.since for report in machine.reports]
    assert since[0] < since[1] == since[2] < since[3] < since[4]


@pytest.mark.parametrize("running", ["none", "last_good"])
async def test_start_on_a_refused_configuration_is_reported(machine: Machine, running: str) -> None:
    if running == "last_good":
        machine.last_good.save(machine_text("old"))
    source = PushedSource()
    refused = source.push("{")
    async with machine.watching(source):
        assert isinstance(await wait_for_verdict(refused), ConfigRefused)
        await wait_until(lambda: len(machine.reports) == 1)
        assert (machine.reports[0].state, machine.reports[0].running) == ("refused", running)
        await wait_for_verdict(source.push(machine_text("a")))
        await wait_until(lambda: len(machine.reports) == 2)
        assert machine.reports[1].running == "this"


async def test_pushed_value_is_applied_like_text(machine: Machine) -> None:
    source = PushedSource()
    value = json.loads(machine_text("a"))
    async with machine.watching(source):
        assert isinstance(await wait_for_verdict(source.push(value)), Applied)
        kept = machine.last_good.read()
        assert kept is not None
        assert json.loads(kept) == value


async def test_hanging_plan_is_superseded_by_a_newer_push(machine: Machine) -> None:
    source = PushedSource()
    async with machine.watching(source):
        hanging = source.push(machine_text("a", revision="1", hangs=True))
        await wait_until(lambda: machine.states() == {"a": NodeState.CONFIGURING})
        newer = source.push(machine_text("a", revision="2"))
        assert await wait_for_verdict(hanging) == Superseded("1")
        outcome = await wait_for_verdict(newer)
        assert isinstance(outcome, Applied)
        assert outcome.revision == "2"
        assert machine.states() == {"a": NodeState.READY}


async def test_unfinished_configuration_is_not_saved(machine: Machine) -> None:
    source = PushedSource()
    first = machine_text("a")
    async with machine.watching(source):
        await wait_for_verdict(source.push(first))
        source.push(machine_text("a", "b", revision="2", hangs=True))
        await wait_until(lambda: "b" in machine.states())
        assert machine.last_good.read() == first


async def test_last_of_many_pushes_is_applied(machine: Machine) -> None:
    source = PushedSource()
    async with machine.watching(source):
        verdicts = []
        for turn in range(50):
            verdicts.append(source.push(machine_text("a", label=str(turn), revision=str(turn))))
            await pass_time(0.001)  # some are applied, and some superseded
        outcomes = [await wait_for_verdict(pushed) for pushed in verdicts]
        assert isinstance(outcomes[-1], Applied)
        assert all(isinstance(outcome, Applied | Superseded) for outcome in outcomes)
        assert machine.reconciler.revision == "49"


async def test_broken_file_at_start_falls_back_to_the_last_good_copy(
    machine: Machine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "machine.json"
    machine.last_good.save(machine_text("a", revision="old"))
    path.write_text('{"components": [')
    source = FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    with caplog.at_level(logging.ERROR):
        async with machine.watching(source):
            await wait_until(lambda: machine.reconciler.revision == "old")
            assert machine.states() == {"a": NodeState.READY}
            path.write_text(machine_text("a", "b", revision="new"))
            await wait_until(lambda: machine.reconciler.revision == "new")
            assert machine.states() == {"a": NodeState.READY, "b": NodeState.READY}
    assert "RUNNING THE LAST GOOD CONFIGURATION" in caplog.text
    assert f"{path}:1:16" in caplog.text


@pytest.mark.parametrize("copy", [None, b"not what was written"])
async def test_watcher_waits_for_a_valid_file_without_a_valid_copy(
    machine: Machine, tmp_path: Path, copy: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "machine.json"
    if copy is not None:
        machine.last_good.path.write_bytes(copy)
    source = FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    async with machine.watching(source):
        await wait_until(lambda: "there is no earlier configuration to run" in caplog.text)
        assert not machine.loaded
        path.write_text(machine_text("a"))
        await wait_until(lambda: machine.states() == {"a": NodeState.READY})
        await wait_until(lambda: machine.last_good.path.exists())


async def test_environment_is_substituted_at_start_and_on_change(
    machine: Machine, tmp_path: Path
) -> None:
    machine.environment["LABEL"] = "from-the-environment"
    path = tmp_path / "machine.json"
    path.write_text(machine_text("a", label="${LABEL}", revision="1"))
    source = FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    async with machine.watching(source):
        for revision in ("1", "2"):
            path.write_text(machine_text("a", label="${LABEL}", revision=revision))
            await wait_until(lambda wanted=revision: machine.reconciler.revision == wanted)  # type: ignore[misc]
            settings = machine.loaded[-1].result.specs[0].settings
            assert settings == StepAttributes(label="from-the-environment")
            await wait_until(
                lambda wanted=revision: f'"{wanted}"' in (machine.last_good.read() or "")  # type: ignore[misc]
            )
            assert "from-the-environment" not in machine.last_good.path.read_text()


async def test_refused_last_good_copy_is_not_applied(
    machine: Machine, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    machine.last_good.save('{"network": {"bind_address": 5}}')
    path = tmp_path / "machine.json"
    path.write_text("{")
    async with machine.watching(
        FileSource(path, SystemClock(), poll_interval=0.005, debounce=0.02)
    ):
        await wait_until(lambda: "cannot be used either" in caplog.text)
        assert not machine.loaded


async def test_push_fails_when_applying_it_raises(machine: Machine) -> None:
    source = PushedSource()
    async with machine.watching(source):
        await machine.reconciler.aclose()
        with pytest.raises(RuntimeError, match="is being closed"):
            await wait_for_verdict(source.push(machine_text("a")))


async def test_plugin_that_exits_during_the_check_only_refuses_the_push(
    machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    source = PushedSource()
    async with machine.watching(source):
        await wait_for_verdict(source.push(machine_text("a")))
        outcome = await wait_for_verdict(source.push(machine_text("a", label="exit")))
        assert isinstance(outcome, ConfigRefused)
        assert outcome.reason == "checking it failed with SystemExit"
        assert machine.states() == {"a": NodeState.READY}
        assert isinstance(await wait_for_verdict(source.push(machine_text("a", "b"))), Applied)
    assert "checking a configuration failed" in caplog.text


async def test_stopping_the_watcher_supersedes_pending_pushes(machine: Machine) -> None:
    source = PushedSource()
    async with machine.watching(source):
        hanging = source.push(machine_text("a", hangs=True))
        await wait_until(lambda: machine.states() == {"a": NodeState.CONFIGURING})
    assert isinstance(await wait_for_verdict(hanging), Superseded)
    assert isinstance(await wait_for_verdict(source.push("{}")), Superseded)


async def test_newer_push_does_not_wait_for_a_slow_check(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, end = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow_load(text: str, context: LoadContext, is_cancelled: IsCancelled) -> LoadedConfig:
        if "slow" in text:
            loop.call_soon_threadsafe(started.set)
            assert end.wait(10)
        return load(text, context, is_cancelled)

    monkeypatch.setattr(watcher, "load", slow_load)
    source = PushedSource()
    try:
        async with machine.watching(source):
            await wait_for_verdict(source.push(machine_text("a")))
            slow = source.push(machine_text("slow"))
            await wait_for_verdict(started.wait())
            newer = source.push(machine_text("b", revision="2"))
            assert isinstance(await wait_for_verdict(newer), Applied)
            assert isinstance(await wait_for_verdict(slow), Superseded)
            assert machine.states() == {"b": NodeState.READY}
    finally:
        end.set()


async def test_check_is_retried_after_a_memory_error(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    attempts = 0

    def short_of_memory(text: str, context: LoadContext, is_cancelled: IsCancelled) -> LoadedConfig:
        nonlocal attempts
        attempts += "big" in text
        if "big" in text and attempts < 3:
            raise MemoryError
        return load(text, context, is_cancelled)

    monkeypatch.setattr(watcher, "load", short_of_memory)
    source = PushedSource()
    async with machine.watching(source):
        await wait_for_verdict(source.push(machine_text("a")))
        assert isinstance(await wait_for_verdict(source.push(machine_text("big"))), Applied)
    assert attempts == 3
    assert sum("cannot check" in record.message for record in caplog.records) == 1


async def test_relative_path_refers_to_the_directory_of_the_watched_file(
    machine: Machine, tmp_path: Path
) -> None:
    folder = tmp_path / "machine"
    folder.mkdir()
    (folder / "labels.txt").touch()
    (folder / "machine.json").write_text(machine_text("a", label_path="labels.txt"))
    async with machine.watching(FileSource(folder / "machine.json", SystemClock())):
        await wait_until(lambda: len(machine.loaded) == 1)
        await wait_until(lambda: bool(machine.states()))
    settings = machine.loaded[0].result.specs[0].settings
    assert isinstance(settings, StepAttributes)
    assert settings.label_path == str(folder / "labels.txt")


async def test_relative_path_of_the_last_good_copy_refers_to_the_directory_of_the_file(
    machine: Machine, tmp_path: Path
) -> None:
    (tmp_path / "machine.json").write_text("{")
    (tmp_path / "labels.txt").touch()
    machine.last_good.save(machine_text("a", label_path="labels.txt"))
    async with machine.watching(FileSource(tmp_path / "machine.json", SystemClock())):
        await wait_until(lambda: len(machine.loaded) == 1)
    settings = machine.loaded[0].result.specs[0].settings
    assert isinstance(settings, StepAttributes)
    assert settings.label_path == str(tmp_path / "labels.txt")
