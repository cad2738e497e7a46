"""The source of a machine that has joined a cloud."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import wait_until_asleep

from cogwork.config.schema.cloud import CloudConfig
from cogwork.config.source.last_good import LastGood
from cogwork.config.source.sources import ConfigCandidate, ConfigRefused, PushedSource
from cogwork.core.clock import ManualClock
from cogwork.graph.reconciler import Applied
from cogwork.uplink.errors import CloudUnavailable
from cogwork.uplink.joined_source import CloudLink, JoinedSource

JOINED = {"cloud": {"id": "part", "secret": "s", "app_address": "https://fleet.test"}}


class Cloud:
    """A cloud whose messages are JSON."""

    def __init__(self) -> None:
        self.config: Any = {"debug": True}
        self.is_away = False
        self.timeouts: list[float] = []
        self.links: list[str] = []
        self.is_pushed = False
        self.is_followed = True

    def connect(self, cloud: CloudConfig) -> CloudLink:
        self.links.append(cloud.app_address)
        return self

    async def start(self) -> None:
        self.change: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def fetch(self, timeout: float) -> bytes:
        if self.change.done():
            await self.start()
        self.timeouts.append(timeout)
        if self.is_away:
            raise CloudUnavailable("the cloud is away")
        return json.dumps(self.config).encode()

    def render(self, message: bytes, local: dict[str, Any]) -> str:
        if (found := json.loads(message)) is None:
            raise ValueError("it is null")
        return json.dumps({**found, **local})

    async def stop_following(self) -> None:
        self.is_followed = False

    async def aclose(self) -> None:
        self.links.pop()


class Bench:
    def __init__(self, directory: Path) -> None:
        self.clock = ManualClock()
        self.cloud = Cloud()
        self.file = PushedSource()
        self.cache = LastGood(directory / "cloud.json")
        self.source = self.restart()

    def restart(self) -> JoinedSource:
        self.source = JoinedSource(
            self.file, self.cache, json.loads, self.cloud.connect, self.clock
        )
        return self.source

    async def next(self, seconds: float = 0.0) -> ConfigCandidate:
        """Return the next candidate, which must come within so many seconds."""
        following = asyncio.create_task(self.source.next())
        for _ in range(int(seconds) + 1):
            await wait_until_asleep(self.clock, following)
            if following.done():
                break
            await self.clock.advance(1)
        return await asyncio.wait_for(following, 5)

    async def next_config(self, seconds: float = 0.0) -> Any:
        """Return the next configuration, after applying it as the watcher does."""
        candidate = await self.next(seconds)
        assert isinstance(candidate.content, str)
        if candidate.store is not None:
            await candidate.store()
        candidate.decide(Applied("1", 0.0, 0, 0))
        return json.loads(candidate.content)

    async def restart_without_cloud(self) -> Any:
        """Return the configuration of a machine that starts while its cloud is away."""
        await self.source.aclose()
        self.cloud.is_away = True
        self.file = PushedSource()
        self.restart()
        self.file.push(json.dumps(JOINED))
        return await self.next_config()


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_machine_of_its_own_runs_its_file(bench: Bench) -> None:
    bench.file.push('{"debug": true}')
    assert (await bench.next()).content == '{"debug": true}'
    bench.file.push('{"debug": false}')
    assert (await bench.next()).content == '{"debug": false}'
    assert bench.cloud.timeouts == []
    await bench.source.aclose()


async def test_joined_machine_follows_its_cloud(bench: Bench) -> None:
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == {"debug": True, **JOINED}
    bench.cloud.config = {"debug": False}
    assert await bench.next_config(10) == {"debug": False, **JOINED}
    await bench.source.aclose()
    # For the log of everything that stops afterwards.
    assert (bench.cloud.is_followed, len(bench.cloud.links)) == (False, 1)
    await bench.source.leave()
    assert bench.cloud.links == []


async def test_machine_starts_without_its_cloud(bench: Bench) -> None:
    bench.file.push(json.dumps(JOINED))
    await bench.next_config()
    assert await bench.restart_without_cloud() == {"debug": True, **JOINED}
    assert bench.cloud.timeouts[-1] <= 2
    bench.cloud.config = {"debug": False}
    bench.cloud.is_away = False
    assert await bench.next_config(20) == {"debug": False, **JOINED}
    await bench.source.aclose()


async def test_new_machine_without_its_cloud_waits_for_it(bench: Bench) -> None:
    bench.cloud.is_away = True
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == JOINED
    bench.cloud.is_away = False
    assert await bench.next_config(20) == {"debug": True, **JOINED}
    await bench.source.aclose()


async def test_configuration_of_another_part_is_not_used(bench: Bench) -> None:
    bench.cache.save(json.dumps({"part": "another", "message": b'{"debug": true}'.hex()}))
    bench.cloud.is_away = True
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == JOINED
    await bench.source.aclose()


@pytest.mark.parametrize("damage", ["", "{}", "[]", "not JSON", '{"part": "part", "message": "x"}'])
async def test_damaged_cache_is_not_used(bench: Bench, damage: str) -> None:
    bench.cache.save(damage)
    bench.cloud.is_away = True
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == JOINED
    await bench.source.aclose()


async def test_file_decides_whether_the_machine_has_joined(bench: Bench) -> None:
    bench.file.push(json.dumps(JOINED))
    await bench.next_config()
    bench.file.push('{"debug": false}')
    assert (await bench.next(10)).content == '{"debug": false}'
    assert bench.cloud.links == []
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config(10) == {"debug": True, **JOINED}
    await bench.source.aclose()


@pytest.mark.parametrize("text", ['{"cloud": ', '["cloud"]', '{"cloud": 1}', '{"cloud": {}}'])
async def test_file_with_a_mistake_is_left_to_its_check(bench: Bench, text: str) -> None:
    bench.file.push(text)
    assert (await bench.next()).content == text
    assert bench.cloud.timeouts == []
    await bench.source.aclose()


@pytest.mark.parametrize("hours", [1, 4])
async def test_machine_catches_up_within_seconds_after_an_outage(bench: Bench, hours: int) -> None:
    bench.file.push(json.dumps(JOINED))
    await bench.next_config()
    bench.cloud.is_away = True
    following = asyncio.create_task(bench.source.next())
    for _ in range(hours * 60):
        await bench.clock.advance(60)
    assert not following.done()
    # It kept asking, but not more often than it would otherwise.
    assert 0 < len(bench.cloud.timeouts) <= hours * 3600 / 10 + 1
    bench.cloud.is_away = False
    bench.cloud.config = {"debug": False}
    await bench.clock.advance(15)
    candidate = await asyncio.wait_for(following, 60)
    assert isinstance(candidate.content, str)
    assert json.loads(candidate.content)["debug"] is False
    await bench.source.aclose()


async def test_cloud_that_tells_is_asked_only_now_and_then(bench: Bench) -> None:
    bench.file.push(json.dumps(JOINED))
    await bench.next_config()
    bench.cloud.is_pushed = True
    following = asyncio.create_task(bench.source.next())
    for _ in range(62):
        await wait_until_asleep(bench.clock)  # a thread stores what was applied
        await bench.clock.advance(10)
    assert len(bench.cloud.timeouts) == 3  # at the start, and every five minutes
    bench.cloud.config = {"debug": False}
    bench.cloud.change.set_result(None)
    candidate = await asyncio.wait_for(following, 60)
    assert isinstance(candidate.content, str)
    assert json.loads(candidate.content)["debug"] is False
    await bench.source.aclose()


async def test_restart_runs_what_was_applied_just_before_it(bench: Bench) -> None:
    bench.file.push(json.dumps(JOINED))
    for debug in (True, False, True):  # the last one restores the first
        bench.cloud.config = {"debug": debug}
        assert await bench.next_config(10) == {"debug": debug, **JOINED}
    assert await bench.restart_without_cloud() == {"debug": True, **JOINED}
    await bench.source.aclose()


async def test_unreadable_configuration_is_not_called_missing(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.cloud.config = None
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == JOINED
    assert "the configuration from the cloud cannot be read: it is null" in caplog.text
    assert "until the cloud sends a configuration that can be read" in caplog.text
    await bench.source.aclose()


async def test_stored_configuration_runs_instead_of_an_unreadable_one(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.file.push(json.dumps(JOINED))
    await bench.next_config()
    await bench.source.aclose()
    bench.cloud.config = None
    bench.restart()
    bench.file.push(json.dumps(JOINED))
    assert await bench.next_config() == {"debug": True, **JOINED}
    assert "running the stored configuration from the cloud" in caplog.text
    await bench.source.aclose()


def _refuse(candidate: ConfigCandidate) -> None:
    candidate.decide(ConfigRefused(()))


def _fail(candidate: ConfigCandidate) -> None:
    candidate.fail(RuntimeError("a fault"))


@pytest.mark.parametrize("end", [_refuse, _fail])
async def test_configuration_that_was_not_applied_is_not_kept(
    bench: Bench, end: Callable[[ConfigCandidate], None]
) -> None:
    bench.file.push(json.dumps(JOINED))
    end(await bench.next())
    bench.cloud.config = {"debug": False}
    await bench.next(10)  # keeps what was applied before it
    assert bench.cache.read() is None
    await bench.source.aclose()
