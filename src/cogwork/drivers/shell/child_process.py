"""Child processes. They are started in worker threads, because starting a process blocks."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from cogwork.core.process_end import wait_for_end
from cogwork.core.workers import Workers, await_future

_POLL_INTERVAL = 0.05
"""Seconds between two polls on systems that do not notify about the end of a process."""

Process = subprocess.Popen[bytes]


async def start(
    workers: Workers, command: Sequence[str], directory: Path, environment: Mapping[str, str]
) -> Process:
    """Start the process in its own session, without input or output; raise OSError on failure."""
    starting = workers.submit(_spawn, command, directory, environment)
    try:
        return await await_future(starting)
    except asyncio.CancelledError:
        if not starting.cancel():
            starting.add_done_callback(_kill)
        raise


def _spawn(command: Sequence[str], directory: Path, environment: Mapping[str, str]) -> Process:
    return subprocess.Popen(  # noqa: S603 - the command is configured
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd=directory,
        env=environment,
        start_new_session=True,
    )


def _kill(started: Future[Process]) -> None:
    if started.exception() is None:
        process = started.result()
        process.kill()
        process.wait()


async def wait(process: Process) -> None:
    """Wait until the process has ended."""
    try:
        await wait_for_end(process.pid)
    except (AttributeError, OSError):
        while process.poll() is None:  # noqa: ASYNC110 - no notification
            await asyncio.sleep(_POLL_INTERVAL)
    process.wait()
