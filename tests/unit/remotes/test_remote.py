"""A remote: connecting, losing and finding it again, with a manual clock."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.support.network.far_machine import FarMachine

from cogwork.config.schema.machine import RemoteConfig
from cogwork.core.clock import ManualClock
from cogwork.graph.provider import Offer, Unavailable
from cogwork.remotes.errors import CALL_TIMEOUT
from cogwork.remotes.names import MAX_RESOURCES
from cogwork.remotes.remote import Remote, RemoteContext

CHECK = 0.5
"""Seconds between two lists: the default."""
RECONNECT = 1.0
"""Seconds between the beginnings of two attempts to connect: the default."""
FRAMES = 5.0


class Site:
    """A remote, and the machine that it connects to."""

    def __init__(self, **config: Any) -> None:
        self.clock = ManualClock()
        self.far = FarMachine(self.clock)
        self.far.names = ["a", "b"]
        self.changes = 0
        given = {"name": "line", "address": "line:8080", **config}
        context = RemoteContext(self.clock, self._count_change, self.far.connect)
        self.remote = Remote(RemoteConfig.model_validate(given), context)

    def _count_change(self) -> None:
        self.changes += 1

    @property
    def names(self) -> list[str]:
        return [spec.name.short for spec in self.remote.specs()[1:]]

    @property
    def session(self) -> int | None:
        """The number of the session in which it can be used."""
        offer = self.remote.offer()
        return offer.provider_session if isinstance(offer, Offer) else None

    @property
    def reason(self) -> str:
        """Why it cannot be used."""
        offer = self.remote.offer()
        return offer.reason if isinstance(offer, Unavailable) else ""


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    made = Site(frame={"parent": "world"})
    yield made
    await made.remote.stop()


async def start(site: Site) -> None:
    site.remote.start()
    await site.clock.advance(0)


async def test_resources_of_the_machine_are_there_once_it_is_connected(site: Site) -> None:
    offer = site.remote.offer()
    assert isinstance(offer, Unavailable)
    assert offer.is_temporary
    await start(site)
    assert site.names == ["line:a", "line:b"]
    assert (site.session, site.changes) == (1, 1)


async def test_list_that_stays_the_same_changes_nothing(site: Site) -> None:
    await start(site)
    await site.clock.advance(20 * CHECK)
    assert site.far.calls["ResourceNames"] == 21
    assert site.changes == 1
    site.far.names.reverse()
    await site.clock.advance(CHECK)
    assert (site.names, site.changes) == (["line:a", "line:b"], 1)


async def test_resources_that_appear_and_disappear(site: Site) -> None:
    await start(site)
    site.far.names = ["b", "c"]
    await site.clock.advance(CHECK)
    assert sorted(site.names) == ["line:b", "line:c"]
    assert (site.session, site.changes) == (1, 2)


async def test_machine_that_cannot_be_reached_says_why_and_is_tried_every_second(
    site: Site,
) -> None:
    site.far.refusal = "it refused the login"
    await start(site)
    assert site.reason == "remote line at line:8080: it refused the login"
    await site.clock.advance(10 * RECONNECT)
    assert site.changes == 1  # said once
    site.far.refusal = "it cannot be reached"
    await site.clock.advance(RECONNECT)
    assert "it cannot be reached" in site.reason
    site.far.refusal = ""
    await site.clock.advance(RECONNECT)
    assert site.session == 1


async def test_lost_connection_is_replaced_and_what_was_built_is_not_used_again(
    site: Site,
) -> None:
    await start(site)
    site.far.connections[0].lose()
    await site.clock.advance(0)
    assert "the connection was lost" in site.reason
    assert site.names == ["line:a", "line:b"]  # they are known, and unhealthy
    assert not site.far.connections[0].is_open
    await site.clock.advance(RECONNECT)
    assert site.session == 2


async def test_silent_machine_is_lost_after_eight_seconds(site: Site) -> None:
    await start(site)
    await site.clock.advance(1)
    site.far.is_cut = True
    await site.clock.advance(CALL_TIMEOUT - 1)
    assert site.session == 1
    await site.clock.advance(2)
    assert "did not answer within 8 s" in site.reason
    site.far.is_cut = False
    await site.clock.advance(RECONNECT)
    assert site.session == 2


async def test_short_silence_loses_nothing_and_another_connection_is_tried(site: Site) -> None:
    await start(site)
    site.far.is_cut = True
    await site.clock.advance(4)
    site.far.is_cut = False
    await site.clock.advance(20)
    assert (site.session, site.changes) == (1, 1)
    assert site.far.connections[0].renewals > 0


async def test_machine_without_sessions_is_lost_with_the_first_call(site: Site) -> None:
    site.far.window = 0
    await start(site)
    assert site.session == 1
    site.far.is_cut = True
    await site.clock.advance(CHECK + CALL_TIMEOUT)
    assert site.session is None


async def test_expired_session_is_started_again_over_the_same_connection(site: Site) -> None:
    await start(site)
    site.far.expired_sessions.add("session 1")
    await site.clock.advance(5)
    assert site.far.calls["StartSession"] == 2
    assert (site.session, len(site.far.connections)) == (1, 1)


async def test_heartbeats_come_several_times_in_the_window(site: Site) -> None:
    await start(site)
    before = site.far.calls["SendSessionHeartbeat"]
    await site.clock.advance(site.far.window * 5)
    assert 15 <= site.far.calls["SendSessionHeartbeat"] - before <= 16


async def test_frames_are_asked_for_less_often_and_stay_when_it_is_away(site: Site) -> None:
    site.far.frames = ["lamp"]
    await start(site)
    assert [frame.name for frame in site.remote.frames] == ["line_world", "lamp"]
    await site.clock.advance(10 * FRAMES)
    assert site.far.calls["FrameSystemConfig"] <= 11
    site.far.frames = ["lamp", "lens"]
    await site.clock.advance(FRAMES + CHECK)
    assert len(site.remote.frames) == 3
    site.far.refusal = "it is away"
    site.far.connections[0].lose()
    await site.clock.advance(RECONNECT)
    assert len(site.remote.frames) == 3


async def test_machine_whose_resources_change_all_the_time_is_asked_less_often(
    site: Site,
) -> None:
    await start(site)
    for number in range(120):
        site.far.names = [f"{number}-{each}" for each in range(500)]
        await site.clock.advance(CHECK)
    assert site.changes < 15
    offer = site.remote.offer()
    assert isinstance(offer, Offer)
    assert "change so often" in (getattr(offer.builder, "fault", "") or "")


async def test_number_of_resources_is_limited(site: Site) -> None:
    site.far.names = [f"s{number}" for number in range(MAX_RESOURCES + 7)]
    await start(site)
    assert len(site.names) == MAX_RESOURCES
    offer = site.remote.offer()
    assert isinstance(offer, Offer)
    assert "7 of its resources are not available here" in (
        getattr(offer.builder, "fault", "") or ""
    )


async def test_stopped_remote_closes_its_connection(site: Site) -> None:
    await start(site)
    await site.remote.stop()
    assert not site.far.connections[0].is_open


async def test_prefix_is_put_before_names() -> None:
    site = Site(prefix="left_")
    await start(site)
    assert site.names == ["line:left_a", "line:left_b"]
    await site.remote.stop()
