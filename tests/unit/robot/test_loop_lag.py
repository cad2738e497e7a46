from __future__ import annotations

import asyncio
import time

import pytest

from cogwork.core.clock import SystemClock
from cogwork.robot import loop_lag
from cogwork.robot.loop_lag import TICK, LoopLag


async def test_first_read_knows_nothing() -> None:
    assert LoopLag(SystemClock()).read() is None


async def test_blocked_loop_is_late() -> None:
    lag = LoopLag(SystemClock())
    lag.read()
    await asyncio.sleep(2 * TICK)
    time.sleep(4 * TICK)  # noqa: ASYNC251 - this is what is measured
    await asyncio.sleep(TICK)
    seconds = lag.read()
    assert seconds is not None
    assert 2 * TICK < seconds < 60


async def test_nothing_is_measured_once_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop_lag, "_TICKS_AFTER_READ", 2)
    lag = LoopLag(SystemClock())
    lag.read()
    await asyncio.sleep(1.5 * TICK)
    assert lag.read() is not None
    async with asyncio.timeout(60):
        while lag.is_measuring:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(TICK)
    # What it measured then is no longer true.
    assert lag.read() is None
