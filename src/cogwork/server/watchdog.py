"""The server's watchdog: if the event loop is blocked, it stops all motion, and finally the
process."""

from __future__ import annotations

import asyncio
import faulthandler
import logging
import os
import signal
from collections.abc import Callable, Mapping

from cogwork.core import duration
from cogwork.core.watchdog import LoopWatchdog, WatchdogLimits, run_with_timeout
from cogwork.robot.motion.motion_stopper import MotionStopper
from cogwork.serving.process import STDERR

STUCK_VARIABLE = "COGWORK_LOOP_STUCK"
GIVE_UP_VARIABLE = "COGWORK_LOOP_GIVE_UP"
_LOG_TIMEOUT = 0.5
"""Timeout in seconds for logging, because the blocked thread may hold a lock of the logger."""

_log = logging.getLogger("rdk.watchdog")


class ServerWatchdog:
    """A watchdog for the server's event loop. Create it on that loop.

    If the loop is blocked, the watchdog stops all motion and logs the loop's stack. If the loop
    recovers, all motion is stopped again in the usual way, which also ends the calls that caused
    it. If the loop does not recover, the process exits, and its supervisor restarts it.
    """

    def __init__(
        self, motion: MotionStopper, force_exit: Callable[[], None], limits: WatchdogLimits
    ) -> None:
        self._motion = motion
        self._force_exit = force_exit
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._stop_task: asyncio.Task[None] | None = None
        self._cpu_watchdog = _CpuWatchdog(limits.give_up)
        self._watchdog = LoopWatchdog(
            self._on_stuck, self._on_recovery, self._on_give_up, limits, self._cpu_watchdog.reset
        )

    def close(self) -> None:
        self._watchdog.close()
        self._cpu_watchdog.close()
        if self._stop_task is not None:
            self._stop_task.cancel()

    def _on_stuck(self, stack: str) -> None:
        failed = self._motion.emergency_stop()
        _log_critical(
            f"the event loop has been stuck for {self._limits.stuck:g}s; everything that moves was "
            f"stopped. Stack of the loop:\n{stack}"
        )
        for name, why in failed.items():
            _log_critical(f"{name} may still move: {why}")

    def _on_recovery(self, seconds: float) -> None:
        self._loop.call_soon_threadsafe(self._recover, seconds)

    def _recover(self, seconds: float) -> None:
        _log.error("the event loop recovered after %.1fs", seconds)
        self._stop_task = self._loop.create_task(self._stop_all(), name="stop after a stuck loop")

    async def _stop_all(self) -> None:
        try:
            await self._motion.stop_all({})
        except Exception as error:
            _log.error("could not stop all motion after the event loop was stuck: %s", error)

    def _on_give_up(self, stack: str) -> None:
        _log_critical(
            f"the event loop has been stuck for {self._limits.give_up:g}s; exiting. Stack of the "
            f"loop:\n{stack}"
        )
        self._force_exit()


class _CpuWatchdog:
    """A watchdog of the kernel, for the case that no thread of the process can run.

    C code that computes without releasing the interpreter lock blocks every thread. The kernel
    measures the CPU time of the process and kills it unless the timer is reset in time. Time during
    which the process is suspended or idle does not count.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds * (os.cpu_count() or 1)
        faulthandler.register(signal.SIGPROF, STDERR, all_threads=True, chain=True)
        self.reset()

    def reset(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, self._seconds)

    def close(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        faulthandler.unregister(signal.SIGPROF)


def read_watchdog_limits(environment: Mapping[str, str]) -> WatchdogLimits:
    defaults = WatchdogLimits()
    return WatchdogLimits(
        _read_seconds(environment, STUCK_VARIABLE, defaults.stuck),
        _read_seconds(environment, GIVE_UP_VARIABLE, defaults.give_up),
    )


def _read_seconds(environment: Mapping[str, str], name: str, default: float) -> float:
    text = environment.get(name, "")
    try:
        seconds = duration.parse(text) if text else default
    except ValueError as error:
        _log.warning("ignoring the environment variable %s: %s", name, error)
        return default
    return seconds if seconds > 0 else default


def _log_critical(text: str) -> None:
    if not run_with_timeout(_LOG_TIMEOUT, "watchdog log", lambda: _log.critical("%s", text)):
        os.write(STDERR, f"{text}\n".encode(errors="backslashreplace"))
