"""Chromium, driven by Playwright."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import psutil
from playwright.async_api import Browser, async_playwright, expect
from tests.support.waiting import wait_until

CHROMIUM = shutil.which("chromium")
TIMEOUT = 30_000
"""Milliseconds that Playwright waits for what a test expects."""

_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # Otherwise it announces names for its addresses on the network.
    "--disable-features=WebRtcHideLocalIpsWithMdns",
)

expect.set_options(timeout=TIMEOUT)


@contextlib.asynccontextmanager
async def launch_browser(prefix: Sequence[str] = ()) -> AsyncIterator[Browser]:
    """Start Chromium without a window. `prefix`: what its command begins with."""
    assert CHROMIUM is not None
    # Chromium leaves files behind, at the latest when it is killed.
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory, "chromium")
        program.write_text(f'#!/bin/sh\nexec {shlex.join([*prefix, CHROMIUM])} "$@"\n')
        program.chmod(0o755)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=program, args=_FLAGS, env={**os.environ, "TMPDIR": directory}
            )
            processes = find_processes()
            try:
                yield browser
            finally:
                await browser.close()
        # Some of them may still write files.
        await wait_until(lambda: not any(_is_running(each) for each in processes))


def find_processes() -> list[psutil.Process]:
    """Return the processes of the browsers that this process started."""
    return [each for each in psutil.Process().children(recursive=True) if _is_chromium(each)]


def _is_chromium(process: psutil.Process) -> bool:
    try:
        return process.name().startswith("chrom")
    except psutil.NoSuchProcess:
        return False


def _is_running(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
