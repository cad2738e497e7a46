"""Starts the agent, and returns to its former version if a new one does not work.

It is packed into one file that needs the standard library only (`launcher_archive.py`), and no
update replaces it: whatever an update breaks, this still runs. The agent shows that it is alive by
a file that it touches.
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
from cogwork.core.product import Product

EXIT_UPDATED: Final = 75
"""The exit code of an agent that has made another version current."""
ALIVE_INTERVAL: Final = 5.0
"""Seconds after which a running agent touches its file."""

_AGENT: Final = Product.AGENT
_MAX_BOOTS: Final = 3
_HANG_TIMEOUT: Final = 60.0
_STOP_TIMEOUT: Final = 30.0
_RETRY_DELAY: Final = 5.0
_POLL: Final = 0.2

_log = logging.getLogger("agent.launcher")


class Launcher:
    def __init__(self, layout: Layout, hang_timeout: float, retry_delay: float) -> None:
        self._layout = layout
        self._hang_timeout = hang_timeout
        self._retry_delay = retry_delay
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
        alive = self._layout.alive
        alive.touch()
        python = self._layout.slot(_AGENT, version) / "bin" / "python"
        try:
            agent = subprocess.Popen(  # noqa: S603 - an installed version
                [python, "-I", "-m", _AGENT.module, "run", "--root", self._layout.root]
            )
        except OSError as error:
            _log.error("version %s of the agent cannot be started: %s", version, error)
            return None
        began = time.monotonic()
        while agent.poll() is None:
            if self._stopping:
                _end(agent)
            elif self._is_silent(alive, began):
                _log.error("version %s of the agent hangs; ending it", version)
                agent.kill()
                agent.wait()
                fail_trial(self._layout, version, "it hung while it was on trial")
            time.sleep(_POLL)
        return agent.returncode

    def _is_silent(self, alive: Path, began: float) -> bool:
        try:
            age = time.time() - alive.stat().st_mtime
        except OSError:
            age = self._hang_timeout + 1
        # The clock of the computer may jump, so the agent also gets the time by our own.
        return age > self._hang_timeout and time.monotonic() - began > self._hang_timeout

    def _sleep(self, seconds: float) -> None:
        ends = time.monotonic() + seconds
        while not self._stopping and time.monotonic() < ends:
            time.sleep(_POLL)

    def _stop(self, *_: object) -> None:
        self._stopping = True


def choose_version(layout: Layout) -> str | None:
    """Return the version to start. One on trial that was started too often is replaced before."""
    states = StateStore(layout)
    state = states[_AGENT]
    if state.trial is not None:
        if state.trial.boots >= _MAX_BOOTS:
            fail_trial(layout, state.trial.version, f"it failed {_MAX_BOOTS} times to start")
        else:
            states[_AGENT] = state.count_boot()
    return layout.current_version(_AGENT)


def fail_trial(layout: Layout, version: str, reason: str) -> None:
    """Return to the former version, if this one is on trial."""
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
    return Launcher(Layout(Path(arguments[0]).absolute()), _HANG_TIMEOUT, _RETRY_DELAY).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
