from __future__ import annotations

import asyncio
import threading
import time

from cogwork.core.watchdog import LoopWatchdog, WatchdogLimits, run_with_timeout

DEADLINE = 20.0


class Heard:
    def __init__(self) -> None:
        self.stuck: list[str] = []
        self.turned: list[float] = []
        self.given_up = threading.Event()
        self.ticks = 0

    def watch(self, limits: WatchdogLimits) -> LoopWatchdog:
        return LoopWatchdog(
            self.stuck.append, self.turned.append, lambda _: self.given_up.set(), limits, self.tick
        )

    def tick(self) -> None:
        self.ticks += 1


def block_until(heard: list[str]) -> None:
    until = time.monotonic() + DEADLINE
    while not heard and time.monotonic() < until:
        time.sleep(0.01)


async def test_a_loop_that_does_not_turn_is_noticed_with_its_stack() -> None:
    heard = Heard()
    watchdog = heard.watch(WatchdogLimits(stuck=0.3, give_up=DEADLINE))
    block_until(heard.stuck)
    assert "block_until" in heard.stuck[0]
    time.sleep(0.6)  # noqa: ASYNC251 - the loop stays stuck
    # Before the loop turns: on a busy computer it may get stuck for 0.3 s again.
    assert len(heard.stuck) == 1
    async with asyncio.timeout(DEADLINE):
        while not heard.turned:  # noqa: ASYNC110 - the watchdog's thread sets it
            await asyncio.sleep(0.01)
    assert heard.turned[0] >= 0.6
    assert not heard.given_up.is_set()
    watchdog.close()


async def test_a_loop_that_stays_stuck_is_given_up() -> None:
    heard = Heard()
    watchdog = heard.watch(WatchdogLimits(stuck=0.2, give_up=0.5))
    assert heard.given_up.wait(DEADLINE)
    assert heard.stuck
    watchdog.close()


async def test_a_loop_that_turns_is_left_alone() -> None:
    heard = Heard()
    watchdog = heard.watch(WatchdogLimits(stuck=5.0, give_up=DEADLINE))
    async with asyncio.timeout(DEADLINE):
        while heard.ticks < 5:  # noqa: ASYNC110 - a thread tells
            await asyncio.sleep(0.01)
    watchdog.close()
    assert not heard.stuck


def test_work_that_hangs_is_not_waited_for() -> None:
    release = threading.Event()
    assert not run_with_timeout(0.05, "hangs", lambda: release.wait(DEADLINE))
    release.set()
    assert run_with_timeout(DEADLINE, "ends", lambda: None)


def test_work_that_fails_has_ended() -> None:
    assert run_with_timeout(DEADLINE, "fails", lambda: 1 / 0)
