"""Programs that use the unmodified SDK, each in a child process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.machine import sdk_mover
from tests.support.machine.running import Output
from tests.support.waiting import run_others


@asynccontextmanager
async def start_program(
    file: str, port: int, what: str, *, says: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Output]]:
    """Wait until it prints `says`; kill it at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", file, str(port), what),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        limit=1 << 24,
    )
    assert process.stdout is not None
    output = Output()
    reading = asyncio.ensure_future(output.follow(process.stdout))
    try:
        await output.wait_for(says)
        yield process, output
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        await run_others()


@asynccontextmanager
async def start_mover(port: int, what: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a client that sets something in motion and keeps it moving."""
    async with start_program(sdk_mover.__file__, port, what, says="^moving$") as (process, _):
        yield process
