"""What is wrong with how a part connects."""

from __future__ import annotations

import pytest

from cogwork.cloud.identity.part_watch import Instance, PartWatch
from cogwork.core.clock import ManualClock

ONE = Instance("i1", "press", "ipv4:192.0.2.1")
OTHER = Instance("i2", "laptop", "ipv4:192.0.2.2")
UNNAMED = Instance("", "", "ipv4:192.0.2.3")
DAY = 86_400.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def watch(clock: ManualClock) -> PartWatch:
    return PartWatch(clock)


async def call_from_both(watch: PartWatch, clock: ManualClock) -> None:
    for _ in range(3):
        for each in (ONE, OTHER):
            watch.note_call("p", each)
            await clock.advance(15)


async def test_a_restarted_server_is_no_conflict(watch: PartWatch, clock: ManualClock) -> None:
    for number in range(20):
        restarted = ONE._replace(id=f"i{number}")
        for _ in range(3):
            watch.note_call("p", restarted)
            await clock.advance(30)
    assert watch.list_notices("p") == []


async def test_calls_of_a_former_server_that_arrive_late_are_no_conflict(
    watch: PartWatch, clock: ManualClock
) -> None:
    watch.note_call("p", ONE)
    watch.note_call("p", OTHER)
    await clock.advance(3)
    watch.note_call("p", ONE)
    assert watch.describe_conflict("p") is None


async def test_two_computers_with_the_same_credentials_are_noticed(
    watch: PartWatch, clock: ManualClock
) -> None:
    await call_from_both(watch, clock)
    (notice,) = watch.list_notices("p")
    assert "press at ipv4:192.0.2.1 and laptop at ipv4:192.0.2.2" in notice
    assert watch.list_notices("other") == []
    for _ in range(20):
        await clock.advance(30)
        watch.note_call("p", OTHER)
    assert watch.list_notices("p") == []


async def test_a_new_secret_goes_to_the_only_server_that_uses_the_old_one(
    watch: PartWatch, clock: ManualClock
) -> None:
    with watch.using("p", "s1"):
        assert watch.is_only_user("p", "s1")
        with watch.using("p", "s1"):
            assert not watch.is_only_user("p", "s1")
        await call_from_both(watch, clock)
        assert not watch.is_only_user("p", "s1")
    assert not watch.is_only_user("p", "s1")


async def test_a_new_secret_waits_if_an_unknown_server_has_called(
    watch: PartWatch, clock: ManualClock
) -> None:
    """A server of another make polls, and a thief listens."""
    with watch.using("p", "s1"):
        watch.note_call("p", UNNAMED)
        assert not watch.is_only_user("p", "s1")
        await clock.advance(2 * DAY)
        assert watch.is_only_user("p", "s1")


async def test_a_new_secret_waits_for_a_day_after_a_conflict(
    watch: PartWatch, clock: ManualClock
) -> None:
    """The machine may be stopped for its repair, so that the thief is the only one."""
    await call_from_both(watch, clock)
    await clock.advance(DAY / 2)
    with watch.using("p", "s1"):
        assert not watch.is_only_user("p", "s1")
        await clock.advance(DAY)
        assert watch.is_only_user("p", "s1")


async def test_a_wrong_clock_is_noticed(watch: PartWatch) -> None:
    watch.note_clock("p", 200)
    assert watch.list_notices("p") == []
    watch.note_clock("p", -365 * 86_400)
    (notice,) = watch.list_notices("p")
    assert "365 days behind" in notice
    watch.note_clock("p", 400)
    assert "7 minutes ahead" in watch.list_notices("p")[0]
    watch.note_clock("p", 0)
    assert watch.list_notices("p") == []


async def test_a_refused_secret_is_noticed_until_it_works(
    watch: PartWatch, clock: ManualClock
) -> None:
    watch.note_refusal("p", "ipv4:192.0.2.1")
    assert "a computer at 192.0.2.1 tries to log in" in watch.list_notices("p")[0]
    watch.note_login("p", "ipv4:192.0.2.9")
    assert len(watch.list_notices("p")) == 1
    watch.note_login("p", "ipv4:192.0.2.1")
    assert watch.list_notices("p") == []
    watch.note_refusal("p", "ipv4:192.0.2.1")
    await clock.advance(90_000)
    assert watch.list_notices("p") == []


async def test_a_replaced_secret_ends_the_conflict(watch: PartWatch, clock: ManualClock) -> None:
    await call_from_both(watch, clock)
    watch.end_conflict("p")
    for _ in range(3):
        watch.note_call("p", OTHER)
        await clock.advance(15)
    assert watch.list_notices("p") == []
    await call_from_both(watch, clock)
    assert watch.describe_conflict("p") is not None
