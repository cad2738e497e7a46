"""The control page in a browser, and a machine whose page it is."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlencode

import pytest
from playwright.async_api import Browser, ConsoleMessage, Locator, Page, expect
from playwright.async_api import Error as BrowserError
from tests.support.browser import CHROMIUM, TIMEOUT
from tests.support.machine.login import KEYS, key_of
from tests.support.machine.running import Config, Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.paths import TESTS

from cogwork.control.static_site import BUILT_SITE

is_missing = (
    CHROMIUM is None
    or not (TESTS / "browser" / "node_modules").is_dir()  # axe-core
    or not BUILT_SITE.is_dir()
)
needs_browser = pytest.mark.skipif(
    is_missing and "CI" not in os.environ, reason="make system browser page"
)

_LOST_CONNECTION = re.compile(
    r"ConnectionClosed|channel error|data channel|error dialing|timed out"
    r"|\[(unavailable|canceled|deadline_exceeded|aborted)\]|net::ERR_(CONN|NETWORK|TIMED)"
    # A page that is left, or whose server ends, while WebRTC connects.
    r"|\[unknown\] Failed to fetch"
    # The SDK dials a name with "local" in it directly when WebRTC fails.
    r"|localhost:\d+/viam\.",
    re.IGNORECASE,
)
"""A connection may be lost on a computer that is busy; the page comes back by itself."""

REFUSED = r"status of 40[13]"
"""What Chromium complains about while nobody is logged in, and when a role may not do something."""


@contextlib.asynccontextmanager
async def open_page(
    browser: Browser,
    *,
    width: int = 1280,
    height: int = 800,
    scheme: Literal["light", "dark"] = "light",
    complaint: str | None = None,
) -> AsyncIterator[Page]:
    """An empty page in a context of its own.

    At the end no script may have failed, and the browser may have complained about nothing.
    `complaint`: a pattern of what it complains about in this test.
    """
    problems: list[str] = []

    def report(text: str) -> None:
        if not (_LOST_CONNECTION.search(text) or (complaint and re.search(complaint, text))):
            problems.append(text)

    def report_error(error: BrowserError) -> None:
        report(f"error: {error.name}: {error.message}")

    def report_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            report(f"console: {message.text}")

    context = await browser.new_context(
        viewport={"width": width, "height": height}, color_scheme=scheme, ignore_https_errors=True
    )
    context.set_default_timeout(TIMEOUT)
    try:
        page = await context.new_page()
        page.on("pageerror", report_error)
        page.on("console", report_message)
        yield page
        assert not problems, problems
    finally:
        await context.close()


async def open_view(
    page: Page, url: str, view: str = "overview", **params: str | list[str]
) -> None:
    """Open a view of the machine at the URL, and wait until it is there."""
    await page.goto(f"{url}/#/{view}?{urlencode(params, doseq=True)}")
    shown = page.get_by_role("main", name=view.capitalize())
    await expect(shown).not_to_be_empty()


async def log_in_as(page: Page, role: str) -> None:
    await log_in(page, KEYS[role], key_of(role))


async def log_in(page: Page, key_id: str, key: str) -> None:
    await page.get_by_label("Key ID").fill(key_id)
    await page.get_by_label("Key", exact=True).fill(key)
    await page.get_by_role("button", name="Log in").click()


async def wait_for_webrtc(page: Page) -> None:
    """Wait until calls go over WebRTC."""
    await expect(find_connection(page, "online")).to_contain_text("WebRTC")


def find_connection(page: Page, state: str) -> Locator:
    return page.locator(f"[data-connection={state}]")


@dataclass
class Machine:
    """A machine, its page in a browser, and a client of the Python SDK to check results with."""

    server: Server
    page: Page
    robot: Any


@contextlib.asynccontextmanager
async def open_machine(
    config: Config | str, directory: Path, browser: Browser
) -> AsyncIterator[Machine]:
    async with run_server(config, directory) as server:
        await server.wait_for_status(state="running")
        async with connect_sdk(server.port) as robot, open_page(browser) as page:
            yield Machine(server, page, robot)
