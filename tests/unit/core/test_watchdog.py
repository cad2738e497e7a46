from __future__ import annotations

import threading

from tests.support.waiting import block, block_until, wait_until

from cogwork.core.watchdog import LoopWatchdog, WatchdogLimits, run_with_timeout

DEADLINE = 60.0


class WatchdogEvents:
    def __init__(self) -> None:
        self.stuck: list[str] = []
        self.recovered: list[float] = []
        self.given_up = threading.Event()
        self.ticks = 0

    def watch(self, limits: WatchdogLimits) -> LoopWatchdog:
        return LoopWatchdog(
            self.stuck.append,
            self.recovered.append,
            lambda _: self.given_up.set(),
            limits,
            self.tick,
        )

    def tick(self) -> None:
        self.ticks += 1


async def test_stuck_loop_is_reported_once_with_its_stack() -> None:
    events = WatchdogEvents()
    watchdog = events.watch(WatchdogLimits(stuck=0.3, give_up=DEADLINE))
    block_until(lambda: events.stuck)
    assert "block_until" in events.stuck[0]
    block(0.4)  # the loop stays stuck
    # Before the loop turns: on a busy computer it may get stuck for 0.3 s again.
    assert len(events.stuck) == 1
    await wait_until(lambda: events.recovered)
    assert events.recovered[0] >= 0.6
    assert not events.given_up.is_set()
    watchdog.close()


async def test_loop_that_stays_stuck_is_given_up() -> None:
    events = WatchdogEvents()
    watchdog = events.watch(WatchdogLimits(stuck=0.2, give_up=0.5))
    assert events.given_up.wait(DEADLINE)
    assert events.stuck
    watchdog.close()


async def test_running_loop_is_not_reported() -> None:
    events = WatchdogEvents()
    watchdog = events.watch(WatchdogLimits(stuck=5.0, give_up=DEADLINE))
    await wait_until(lambda: events.ticks >= 5)
    watchdog.close()
    assert not events.stuck


def test_run_with_timeout_does_not_wait_for_hanging_work() -> None:
    release = threading.Event()
    assert not run_with_timeout(0.05, "hangs", lambda: release.wait(DEADLINE))
    release.set()
    assert run_with_timeout(DEADLINE, "ends", lambda: None)


def test_run_with_timeout_counts_failed_work_as_ended() -> None:
    assert run_with_timeout(DEADLINE, "fails", lambda: 1 / 0)
