"""The server as a child process of the agent, on computers without systemd."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import psutil

from cogwork.core.files import atomic
from cogwork.core.process_end import wait_for_end

_KILL_TIMEOUT: Final = 10.0
_MAX_OUTPUT: Final = 300
_START_TOLERANCE: Final = 1.0
"""Seconds by which two readings of a process's start time may differ."""

_log = logging.getLogger("agent.server")


class ChildServer:
    def __init__(
        self,
        command: Callable[[], Sequence[str]],
        directory: Path,
        environment: Mapping[str, str],
        stop_timeout: float,
    ) -> None:
        """`command` returns the command of the current version.

        `directory` stores the last output and the process ID, by which the next agent finds the
        running server.
        """
        self._command = command
        self._pid_file = directory / "server.pid"
        self._output = directory / "server.out"
        self._environment = environment
        self._stop_timeout = stop_timeout
        self._process: psutil.Process | None = self._find()
        self._child: subprocess.Popen[bytes] | None = None
        """The server's process if this agent started it; None otherwise. Only a child has an exit
        code."""
        if self._process is not None:
            _log.info("the server already runs, as process %d", self._process.pid)

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process is not None and self._is_alive() else None

    async def start(self) -> None:
        if self.process_id is None:
            self._launch()

    async def stop(self, timeout: float | None = None) -> None:
        process = self._process
        if process is None or not self._is_alive():
            return
        seconds = min(timeout or self._stop_timeout, self._stop_timeout)
        descendants = _list_descendants(process)
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(seconds):
                await self.wait()
        except TimeoutError:
            _log.warning("the server did not stop within %g s; killing it", seconds)
            descendants += [process, *_list_descendants(process)]
        for each in descendants:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()
        async with asyncio.timeout(_KILL_TIMEOUT):
            await self.wait()

    async def wait(self) -> str:
        process = self._process
        if process is not None and self._is_alive():
            await wait_for_end(process.pid)
        return self._describe_end()

    def _launch(self) -> None:
        self._output.touch(0o600)
        with self._output.open("wb") as output:
            self._child = subprocess.Popen(  # noqa: S603 - the installed version
                self._command(),
                cwd="/",
                env=dict(self._environment),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._process = psutil.Process(self._child.pid)
        record = {"pid": self._child.pid, "started": self._process.create_time()}
        atomic.write(self._pid_file, json.dumps(record).encode())

    def _is_alive(self) -> bool:
        if self._child is not None and self._child.poll() is not None:
            return False
        process = self._process
        try:
            return (
                process is not None
                and process.is_running()
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False

    def _describe_end(self) -> str:
        code = self._child.poll() if self._child is not None else None
        if code is None:
            how = "it ended"
        elif code < 0:
            how = f"it was killed by {signal.Signals(-code).name}"
        else:
            how = f"it ended with exit code {code}"
        line = self._last_line()
        return f"{how}: {line}" if line and code != 0 else how

    def _last_line(self) -> str:
        try:
            with self._output.open("rb") as output:
                output.seek(max(0, output.seek(0, os.SEEK_END) - 4096))
                lines = output.read().decode(errors="replace").split("\n")
        except OSError:
            return ""
        return next((line.strip()[-_MAX_OUTPUT:] for line in reversed(lines) if line.strip()), "")

    def _find(self) -> psutil.Process | None:
        """Return the server that a former agent has started, if it still runs."""
        try:
            record = json.loads(self._pid_file.read_bytes())
            process = psutil.Process(int(record["pid"]))
            is_same = abs(process.create_time() - float(record["started"])) < _START_TOLERANCE
        except (OSError, ValueError, KeyError, TypeError, psutil.Error):
            return None
        return process if is_same else None


def _list_descendants(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.children(recursive=True)
    except psutil.NoSuchProcess:
        return []
