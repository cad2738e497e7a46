"""Which machines the cloud reports as online."""

from __future__ import annotations

import pytest
from viam.gen.app.v1.app_pb2 import OnlineState

from cogwork.cloud.identity.presence import ONLINE_SECONDS, RECONNECT_SECONDS, Presence
from cogwork.cloud.storage.tables import PartRow
from cogwork.core.clock import ManualClock

PART = PartRow("part", "org", "machine", "main", True, "{}", 1, 0, 0, None, None, None)
ONLINE = OnlineState.ONLINE_STATE_ONLINE
OFFLINE = OnlineState.ONLINE_STATE_OFFLINE


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def presence(clock: ManualClock) -> Presence:
    return Presence(clock)


async def test_machine_that_polls_is_online_between_its_calls(
    presence: Presence, clock: ManualClock
) -> None:
    assert presence.find(PART).state is OnlineState.ONLINE_STATE_AWAITING_SETUP
    presence.note(PART)
    await clock.advance(ONLINE_SECONDS)
    assert presence.find(PART).state is ONLINE
    await clock.advance(1)
    assert presence.find(PART).state is OFFLINE


async def test_machine_whose_streams_ended_has_little_time_to_connect_again(
    presence: Presence, clock: ManualClock
) -> None:
    with presence.connected(PART):
        with presence.connected(PART):
            pass
        await clock.advance(100)
        assert presence.find(PART) == (ONLINE, clock.time() * 1e6, 0)
    await clock.advance(RECONNECT_SECONDS)
    assert presence.find(PART).state is ONLINE
    await clock.advance(1)
    assert presence.find(PART).state is OFFLINE
    with presence.connected(PART):
        assert presence.find(PART).state is ONLINE


async def test_machine_that_polls_after_its_stream_ended_stays_online(
    presence: Presence, clock: ManualClock
) -> None:
    with presence.connected(PART):
        pass
    await clock.advance(1)
    presence.note(PART)
    await clock.advance(ONLINE_SECONDS)
    assert presence.find(PART).state is ONLINE
