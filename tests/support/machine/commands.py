"""Runs `cogwork` in a child process, as a person does."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

from tests.support.machine.running import DEADLINE
from tests.support.waiting import run_others

PIPE = asyncio.subprocess.PIPE


class CommandResult(NamedTuple):
    code: int | None
    out: str
    err: str


@contextlib.asynccontextmanager
async def start_command(
    *arguments: str, stdin: int = PIPE, stdout: int = PIPE, stderr: int = PIPE
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start the command, and kill it at the end if it still runs."""
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
        # Its transport closes its pipes one iteration of the loop later.
        await run_others()


async def run_command(*arguments: str, typed: str = "") -> CommandResult:
    async with start_command(*arguments) as process, asyncio.timeout(DEADLINE):
        out, err = await process.communicate(typed.encode())
    return CommandResult(process.returncode, out.decode(), err.decode())


def shell_service(directory: Path, name: str = "sh") -> dict[str, object]:
    """Return the configuration of a shell service that starts in the directory."""
    attributes = {"shell": "/bin/sh", "directory": str(directory)}
    return {"name": name, "api": "rdk:service:shell", "attributes": attributes}


def read_tree(root: Path) -> dict[str, bytes | None]:
    """Return the content of a directory: bytes of files, None for directories."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in sorted(root.rglob("*"))
    }
