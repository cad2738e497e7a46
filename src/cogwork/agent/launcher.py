"""Starts the agent, and returns to its former version if a new version does not work.

The launcher is packed into one file that needs only the standard library (`launcher_archive.py`).
No update replaces that file, so the launcher works even after a broken update. The agent proves
that it is alive by touching a heartbeat file. Under systemd, the launcher is the main process of
the service. It reports ready when the agent is ready, and sends the watchdog messages while it
watches the agent.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from cogwork.agent.slots.layout import Layout
from cogwork.agent.slots.store import StateStore
from cogwork.core.versions.product import Product
from cogwork.systemd.notify_socket import (
    SOCKET_VARIABLE,
    WATCHDOG_PROCESS_VARIABLE,
    WATCHDOG_VARIABLE,
    NotifySettings,
    read_notify_settings,
)

EXIT_UPDATED: Final = 75
"""The exit code of the agent after it has made another version current."""
ALIVE_INTERVAL: Final = 5.0
"""Seconds between two touches of the agent's heartbeat file."""

_AGENT: Final = Product.AGENT
_MAX_BOOTS: Final = 3
_HANG_TIMEOUT: Final = 60.0
_STOP_TIMEOUT: Final = 30.0
_RETRY_DELAY: Final = 5.0
_POLL: Final = 0.2

_log = logging.getLogger("agent.launcher")


class Launcher:
    def __init__(
        self,
        layout: Layout,
        hang_timeout: float,
        retry_delay: float,
        systemd: NotifySettings | None = None,
    ) -> None:
        self._layout = layout
        self._hang_timeout = hang_timeout
        self._retry_delay = retry_delay
        self._systemd = systemd
        self._is_ready = False
        self._next_report = 0.0
        self._stopping = False

    def run(self) -> int:
        """Run the agent until a signal ends this process. Return the exit code."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self._stopping:
            version = choose_version(self._layout)
            if version is None:
                _log.error("no version of the agent is installed in %s", self._layout.versions)
                return 1
            code = self._run_once(version)
            if code != EXIT_UPDATED and not self._stopping:
                _log.warning("version %s of the agent ended with exit code %s", version, code)
                self._sleep(self._retry_delay)
        return 0

    def _run_once(self, version: str) -> int | None:
        signs = _HeartbeatFile(self._layout.alive)
        python = self._layout.slot(_AGENT, version) / "bin" / "python"
        try:
            agent = subprocess.Popen(  # noqa: S603 - an installed version
                [python, "-I", "-m", _AGENT.module, "run", "--root", self._layout.root]
            )
        except OSError as error:
            _log.error("version %s of the agent cannot be started: %s", version, error)
            return None
        while agent.poll() is None:
            if self._stopping:
                _end(agent)
            elif signs.silence() > self._hang_timeout:
                _log.error("version %s of the agent hangs; ending it", version)
                agent.kill()
                agent.wait()
                fail_trial(self._layout, version, "it hung while it was on trial")
            elif signs.has_any:
                self._report_ready()
            self._pause()
        return agent.returncode

    def _sleep(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < ends:
            self._pause()

    def _report_ready(self) -> None:
        if self._systemd is not None and not self._is_ready:
            self._is_ready = self._systemd.send("READY=1")

    def _pause(self) -> None:
        """Wait for a moment, and send the watchdog message to systemd when it is due."""
        now = time.monotonic()
        if (
            self._systemd is not None
            and self._systemd.watchdog_interval is not None
            and now >= self._next_report
            and self._systemd.send("WATCHDOG=1")
        ):
            self._next_report = now + self._systemd.watchdog_interval
        time.sleep(_POLL)

    def _stop(self, *_: object) -> None:
        self._stopping = True


class _HeartbeatFile:
    """The heartbeat file that the agent touches.

    A change of its modification time is a heartbeat. The time is not compared with the clock,
    which may jump.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._touched: int | None = None
        self._last = time.monotonic()
        # Remove the heartbeat file of the former agent, which is not a heartbeat of the new agent.
        path.unlink(missing_ok=True)

    @property
    def has_any(self) -> bool:
        return self._touched is not None

    def silence(self) -> float:
        """Return the seconds since the last heartbeat, or since the start of the agent."""
        with contextlib.suppress(OSError):
            touched = self._path.stat().st_mtime_ns
            if touched != self._touched:
                self._touched = touched
                self._last = time.monotonic()
        return time.monotonic() - self._last


def choose_version(layout: Layout) -> str | None:
    """Return the version to start. Replace a version on trial that was started too often."""
    states = StateStore(layout)
    state = states[_AGENT]
    if state.trial is not None:
        if state.trial.boots >= _MAX_BOOTS:
            fail_trial(layout, state.trial.version, f"it failed {_MAX_BOOTS} times to start")
        else:
            states[_AGENT] = state.count_boot()
    return layout.current_version(_AGENT)


def fail_trial(layout: Layout, version: str, reason: str) -> None:
    """Return to the former version, if the given version is on trial."""
    states = StateStore(layout)
    state = states[_AGENT]
    if state.trial is None or state.trial.version != version or state.trial.fallback is None:
        return
    _log.error(
        "version %s of the agent failed, returning to %s: %s",
        *(version, state.trial.fallback, reason),
    )
    states[_AGENT] = state.reject(version, reason, time.time())
    layout.switch(_AGENT, state.trial.fallback)


def _end(agent: subprocess.Popen[bytes]) -> None:
    agent.terminate()
    try:
        agent.wait(_STOP_TIMEOUT)
    except subprocess.TimeoutExpired:
        agent.kill()
        agent.wait()


def main(arguments: list[str]) -> int:
    logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
    if len(arguments) != 1:
        _log.error("usage: launcher DIRECTORY")
        return 2
    with contextlib.suppress(OSError):
        os.chdir("/")
    layout = Layout(Path(arguments[0]).absolute())
    return Launcher(layout, _HANG_TIMEOUT, _RETRY_DELAY, _find_systemd()).run()


def _find_systemd() -> NotifySettings | None:
    """Return the settings for messages to systemd. Remove their variables from the environment, so
    that the agent and the server do not send such messages."""
    settings = read_notify_settings(os.environ, os.getpid())
    for name in (SOCKET_VARIABLE, WATCHDOG_VARIABLE, WATCHDOG_PROCESS_VARIABLE):
        os.environ.pop(name, None)
    return settings


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
