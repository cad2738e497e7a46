"""`cogwork` in a process of its own, as a person runs it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from tests.running import DEADLINE

PIPE = asyncio.subprocess.PIPE


class Said(NamedTuple):
    code: int | None
    out: str
    err: str


@contextlib.asynccontextmanager
async def command(
    *arguments: str, stdin: int = PIPE, stdout: int = PIPE, stderr: int = PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Killed if it is not over at the end."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cogwork.cli.main", *arguments),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        # Its transport closes its pipes a turn of the loop later.
        await asyncio.sleep(0)


async def said(*arguments: str, typed: str = "") -> Said:
    async with command(*arguments) as process, asyncio.timeout(DEADLINE):
        out, err = await process.communicate(typed.encode())
    return Said(process.returncode, out.decode(), err.decode())


def a_shell(directory: Path, name: str = "sh") -> dict[str, object]:
    """The service of a machine whose shell starts in the directory."""
    attributes = {"shell": "/bin/sh", "directory": str(directory)}
    return {"name": name, "api": "rdk:service:shell", "attributes": attributes}


def tree(root: Path) -> dict[str, bytes | None]:
    """What is in a directory: the content of files, None for directories."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }
