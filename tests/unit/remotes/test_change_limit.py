"""How often a machine is asked whose resources change."""

from __future__ import annotations

from cogwork.core.clock import ManualClock
from cogwork.remotes.change_limit import BURST, MAX_WAIT, RATE, ChangeLimit


async def test_many_changes_at_once_are_applied_at_once() -> None:
    limit = ChangeLimit(ManualClock())
    limit.spend(BURST)
    assert limit.wait_time() == 0


async def test_few_changes_go_on_for_ever() -> None:
    clock = ManualClock()
    limit = ChangeLimit(clock)
    for _ in range(10_000):
        limit.spend(2)
        await clock.advance(0.5)
    assert limit.wait_time() == 0


async def test_changes_are_limited_on_average() -> None:
    clock = ManualClock()
    limit = ChangeLimit(clock)
    began, lists = clock.monotonic(), 0
    while clock.monotonic() - began < 600:
        limit.spend(1_000)
        lists += 1
        await clock.advance(max(0.5, limit.wait_time()))
    assert 600 * RATE <= lists * 1_000 <= 600 * RATE + BURST + 2_000


async def test_machine_that_has_calmed_down_is_soon_asked_as_before() -> None:
    clock = ManualClock()
    limit = ChangeLimit(clock)
    for _ in range(100):
        limit.spend(10**6)
    assert limit.wait_time() == MAX_WAIT
    await clock.advance(MAX_WAIT)
    assert limit.wait_time() == 0
