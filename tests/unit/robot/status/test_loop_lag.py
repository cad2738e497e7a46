from __future__ import annotations

import pytest
from tests.support.waiting import block, pass_time, wait_until

from cogwork.core.clock import SystemClock
from cogwork.robot.status import loop_lag
from cogwork.robot.status.loop_lag import TICK, LoopLag


async def test_first_read_knows_nothing() -> None:
    assert LoopLag(SystemClock()).read() is None


async def test_blocked_loop_is_late() -> None:
    lag = LoopLag(SystemClock())
    lag.read()
    await pass_time(2 * TICK)
    block(4 * TICK)  # this is what is measured
    await pass_time(TICK)
    seconds = lag.read()
    assert seconds is not None
    assert 2 * TICK < seconds < 60


async def test_nothing_is_measured_once_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_lag, "_TICKS_AFTER_READ", 2)
    lag = LoopLag(SystemClock())
    lag.read()
    await pass_time(1.5 * TICK)
    assert lag.read() is not None
    await wait_until(lambda: not lag.is_measuring)
    # What it measured then is no longer true.
    assert lag.read() is None
