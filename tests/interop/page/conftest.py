"""One browser for each file of tests, and one page for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, Page
from tests.support.browser import launch_browser
from tests.support.control_page import open_page


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    async with launch_browser() as launched:
        yield launched


@pytest_asyncio.fixture(loop_scope="module")
async def page(browser: Browser) -> AsyncIterator[Page]:
    """A page in a context of its own, about which the browser must not complain."""
    async with open_page(browser) as opened:
        yield opened
