"""Wait for the end of a process, which may be a child of another process."""

from __future__ import annotations

import asyncio
import os


async def wait_for_end(process_id: int) -> None:
    """Wait until the process has ended.

    Raise AttributeError or OSError if the system cannot watch other processes.
    """
    try:
        descriptor = os.pidfd_open(process_id)
    except ProcessLookupError:
        return
    loop, ended = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
