"""A program with the unmodified SDK that sets something in motion and keeps it moving."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.interop import sdk_mover
from tests.running import Output


@asynccontextmanager
async def mover(port: int, what: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Once it moves; killed if it is not over at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", sdk_mover.__file__, str(port), what),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    output = Output()
    reading = asyncio.ensure_future(output.follow(process.stdout))
    try:
        await output.says("^moving$")
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        await asyncio.sleep(0)
