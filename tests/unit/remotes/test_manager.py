"""The remotes of a machine: which are connected to, and what the graph learns of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from tests.support.network.far_machine import FarMachine

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import ManualClock
from cogwork.graph.name import Api, ResourceName
from cogwork.graph.provider import Offer, Unavailable
from cogwork.graph.spec import Spec
from cogwork.remotes.connection import RemoteConnection
from cogwork.remotes.manager import RemoteManager
from cogwork.remotes.names import remote_spec

SENSOR = Api.parse("rdk:component:sensor")


class Site:
    """A machine, and those that it may connect to, by address."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = ManualClock()
        self.far = {name: FarMachine(self.clock) for name in ("line:1", "hall:1")}
        for name, machine in self.far.items():
            machine.names = [f"{name[0]}-scale"]
        self.changes = 0
        self.discovered: list[list[str]] = []
        self.options: dict[str, Any] = {}
        patch.setattr("cogwork.remotes.machine_dialing.MachineDialer", self._make_dialer)
        self.manager = RemoteManager(
            *(self.clock, self._count_change, self._discover), allow_plaintext=True, mdns=True
        )

    def _make_dialer(self, *_: object, **options: Any) -> Site:
        self.options = options
        return self

    async def connect(self, config: RemoteConfig) -> RemoteConnection:
        return await self.far[config.address].connect(config)

    def _count_change(self) -> None:
        self.changes += 1

    def _discover(self, specs: Iterable[Spec]) -> None:
        self.discovered.append([each.name.short for each in specs])

    async def apply(self, *configs: dict[str, Any]) -> None:
        self.manager.apply([RemoteConfig.model_validate(each) for each in configs])
        await self.clock.advance(0)

    def connections(self, address: str) -> list[bool]:
        """Return whether each connection to a machine is open."""
        return [each.is_open for each in self.far[address].connections]


LINE = {"name": "line", "address": "line:1", "frame": {"parent": "world"}}
HALL = {"name": "hall", "address": "hall:1"}


@pytest.fixture
async def site(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Site]:
    made = Site(monkeypatch)
    yield made
    await made.manager.aclose()


async def test_resources_of_all_remotes_are_discovered(site: Site) -> None:
    await site.apply(LINE, HALL)
    assert site.discovered == [
        ["line", "hall"],
        ["line", "line:l-scale", "hall"],
        ["line", "line:l-scale", "hall", "hall:h-scale"],
    ]
    assert site.options == {"allow_plaintext": True, "mdns": True}
    assert [frame.name for frame in site.manager.frames()] == ["line_world"]
    assert (site.manager.services(), site.manager.descriptor_pools()) == ({}, {})


async def test_offer_follows_the_state_of_its_remote(site: Site) -> None:
    site.far["hall:1"].refusal = "it is away"
    await site.apply(LINE, HALL)
    assert isinstance(site.manager.offer(remote_spec("line")), Offer)
    away = site.manager.offer(remote_spec("hall"))
    assert isinstance(away, Unavailable)
    assert "it is away" in away.reason
    removed = site.manager.offer(remote_spec("other"))
    assert isinstance(removed, Unavailable)
    assert removed.reason == "its remote was removed"
    other = Spec(ResourceName(SENSOR, "scale"), remote_spec("line").model, None)
    assert site.manager.offer(other) is None


async def test_configuration_that_has_not_changed_keeps_its_connection(site: Site) -> None:
    await site.apply(LINE, HALL)
    before = site.changes
    await site.apply(HALL, LINE)
    assert site.connections("line:1") == site.connections("hall:1") == [True]
    assert site.discovered[-1] == ["hall", "hall:h-scale", "line", "line:l-scale"]
    published = len(site.discovered)
    await site.apply(HALL, LINE)
    assert (len(site.discovered), site.changes) == (published, before)


async def test_changed_remote_connects_anew(site: Site) -> None:
    await site.apply(LINE)
    await site.apply({**LINE, "prefix": "left-"})
    assert site.connections("line:1") == [False, True]
    assert site.discovered[-1] == ["line", "line:left-l-scale"]


async def test_removed_remote_is_left(site: Site) -> None:
    await site.apply(LINE, HALL)
    await site.apply(HALL)
    assert (site.connections("line:1"), site.connections("hall:1")) == ([False], [True])
    assert site.discovered[-1] == ["hall", "hall:h-scale"]
    assert site.manager.frames() == ()
    await site.clock.advance(60)
    assert len(site.far["line:1"].connections) == 1


async def test_end_closes_every_connection(site: Site) -> None:
    await site.apply(LINE, HALL)
    await site.manager.aclose()
    assert (site.connections("line:1"), site.connections("hall:1")) == ([False], [False])


async def test_loss_and_return_are_told(site: Site) -> None:
    await site.apply(LINE)
    before = site.changes
    site.far["line:1"].connections[0].lose()
    await site.clock.advance(0)
    assert site.changes == before + 1
    await site.clock.advance(1)
    assert site.changes == before + 2
    assert len(site.discovered) == 2  # its resources are the same
