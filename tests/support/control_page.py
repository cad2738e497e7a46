"""The control page in a real browser, driven by scripts that use Playwright's `page`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.support.machine.running import Config, Server, run_server
from tests.support.paths import TESTS
from tests.support.waiting import poll, wait_until
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

from cogwork.control.static_site import BUILT_SITE

_BROWSER = TESTS / "browser"
_CHROMIUM = shutil.which("chromium")
_NODE = shutil.which("node")
_LONGEST_LINE = 1 << 24
DEADLINE = 90.0
"""Seconds that a script may take."""

is_missing = (
    _CHROMIUM is None
    or _NODE is None
    or not (_BROWSER / "node_modules").is_dir()
    or not BUILT_SITE.is_dir()
)
needs_browser = pytest.mark.skipif(
    is_missing and "CI" not in os.environ, reason="make system browser page"
)


class Page:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def find_processes(self) -> list[psutil.Process]:
        """Return the processes of the browser."""
        return _find_children(self._process.pid)

    async def run(self, script: str, *, within: float = DEADLINE, **values: Any) -> Any:
        """Run the body of an asynchronous function with `page`, `context`, `problems`, `values`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        line = json.dumps({"script": script, "values": values})
        self._process.stdin.write(f"{line}\n".encode())
        answered = await asyncio.wait_for(self._process.stdout.readline(), within)
        assert answered, "the browser ended"
        answer = json.loads(answered)
        assert "error" not in answer, answer["error"]
        return answer["value"]

    async def open(self, url: str, view: str = "overview", **params: str | list[str]) -> None:
        """Open a view of the machine at the URL."""
        await self.run(
            """
            const params = new URLSearchParams();
            for (const [key, value] of Object.entries(values.params))
              for (const each of [value].flat()) params.append(key, each);
            await page.goto(`${values.url}/#/${values.view}?${params}`);
            await page.locator("#view").waitFor();
            """,
            url=url,
            view=view,
            params=params,
        )

    async def wait_for_webrtc(self) -> None:
        """Wait until calls go over WebRTC."""
        await self.run(
            "await page.locator('[data-connection=online]:has-text(\"WebRTC\")').waitFor();"
        )

    async def problems(self) -> list[str]:
        """Return the scripts that failed, and whatever else the browser complained about."""
        found: list[str] = await self.run("return problems;")
        return found


@contextlib.asynccontextmanager
async def open_browser(
    width: int = 1280, height: int = 800, scheme: str = "light", prefix: Sequence[str] = ()
) -> AsyncIterator[Page]:
    """A browser with an empty profile. `prefix`: what its command begins with."""
    assert _CHROMIUM is not None
    assert _NODE is not None
    options = {"viewport": {"width": width, "height": height}, "colorScheme": scheme}
    # A browser that is killed leaves files behind.
    with tempfile.TemporaryDirectory() as directory:
        process = await asyncio.create_subprocess_exec(
            *(*prefix, _NODE, "drive.mjs", json.dumps(options)),
            cwd=_BROWSER,
            env={**os.environ, "CHROMIUM": _CHROMIUM, "TMPDIR": directory},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            limit=_LONGEST_LINE,
        )
        try:
            yield Page(process)
        finally:
            browser = _find_children(process.pid)
            assert process.stdin is not None
            process.stdin.close()  # the browser ends, and removes its files
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), DEADLINE)
            if process.returncode is None:
                process.kill()
            await process.wait()
            await _wait_until_ended(browser)


async def _wait_until_ended(processes: list[psutil.Process]) -> None:
    """Wait for what may still write into its files; kill it if it does not end."""
    with contextlib.suppress(pytest.fail.Exception):
        await wait_until(lambda: not any(map(_is_running, processes)), DEADLINE)
    for each in filter(_is_running, processes):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    await wait_until(lambda: not any(map(_is_running, processes)))


def _is_running(process: psutil.Process) -> bool:
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _find_children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


@dataclass
class Machine:
    """A machine, its page in a browser, and a client of the Python SDK to check results with."""

    server: Server
    page: Page
    robot: Any


@contextlib.asynccontextmanager
async def open_machine(config: Config | str, directory: Path) -> AsyncIterator[Machine]:
    async with run_server(config, directory) as server:
        await server.wait_for_status(state="running")
        async with connect_sdk(server.port) as robot, open_browser() as page:
            # Its files are there from now on, and not left behind by the first test.
            await page.open(server.url)
            yield Machine(server, page, robot)
            problems = await page.problems()
            assert not problems, problems


@contextlib.asynccontextmanager
async def connect_sdk(port: int) -> AsyncIterator[Any]:
    options = RobotClient.Options(
        dial_options=DialOptions(insecure=True, disable_webrtc=True),
        log_level=logging.ERROR,
        disable_sessions=True,
    )
    robot: Any = await RobotClient.at_address(f"localhost:{port}", options)
    try:
        yield robot
    finally:
        await robot.close()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Ask the machine until the condition is met."""
    await poll(is_so, within=DEADLINE)
