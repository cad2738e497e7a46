"""The session of the control page: what ends it, who moves what, and what goes on without it."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route, expect
from tests.support.control_page import (
    REFUSED,
    Machine,
    find_connection,
    log_in_as,
    needs_browser,
    open_machine,
    open_page,
    open_view,
    wait_for_webrtc,
)
from tests.support.machine.login import config
from tests.support.machine.running import run_server
from tests.support.waiting import pass_time, poll
from viam.components.motor import Motor

pytestmark = [
    needs_browser,
    pytest.mark.timeout(240),
    pytest.mark.asyncio(loop_scope="module"),
]

MACHINE = {
    "components": [
        {"name": "m", "api": "rdk:component:motor", "model": "fake"},
        {"name": "pins", "api": "rdk:component:board", "model": "fake"},
    ],
    # So long that nothing stops because a session expires.
    "network": {"sessions": {"heartbeat_window": "1m"}},
}
PINNED = ["rdk:component:motor/m", "rdk:component:board/pins"]
HALF_A_DAY = 12 * 3600
VISIBILITY = """(hidden) => {
  Object.defineProperty(document, 'hidden', {value: hidden, configurable: true});
  document.dispatchEvent(new Event('visibilitychange'));
}"""


async def leave(page: Page, how: str) -> None:
    if how == "hidden":
        await page.evaluate(VISIBILITY, True)
    elif how == "frozen":
        # Chromium freezes no page that is shown, so the test says that it does.
        await page.evaluate("document.dispatchEvent(new Event('freeze'))")
    else:
        await page.goto("about:blank")


async def return_to(page: Page, how: str) -> None:
    if how == "hidden":
        await page.evaluate(VISIBILITY, False)
    elif how == "frozen":
        await page.evaluate("document.dispatchEvent(new Event('resume'))")
    else:
        await page.go_back()


async def go(page: Page) -> None:
    await page.get_by_label("Turns", exact=True).fill("1000")
    await page.get_by_role("button", name="Go for").click()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any, browser: Browser) -> AsyncIterator[Machine]:
    async with open_machine(MACHINE, tmp_path_factory.mktemp("machine"), browser) as opened:
        yield opened


async def is_still(motor: Motor) -> bool:
    return not await motor.is_moving()


@pytest.mark.parametrize("how", ["hidden", "frozen", "left"])
async def test_what_the_page_moves_stops_at_once_when_it_is_out_of_sight(
    machine: Machine, how: str
) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    await open_view(machine.page, machine.server.url, "control", pin=PINNED)
    await wait_for_webrtc(machine.page)
    await go(machine.page)
    await poll(motor.is_moving)
    await leave(machine.page, how)
    await poll(lambda: is_still(motor))
    # It moves things again when it is back, in another session.
    await return_to(machine.page, how)
    await go(machine.page)
    await poll(motor.is_moving)
    await motor.stop()


async def test_every_page_shows_who_moves_a_thing(machine: Machine, page: Page) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    await open_view(machine.page, machine.server.url, "control", pin=PINNED)
    await go(machine.page)
    await expect(machine.page.get_by_text("by this page")).to_be_visible()
    await open_view(page, machine.server.url, "control", pin=PINNED)
    await expect(page.get_by_text("by the machine's own computer")).to_be_visible()
    await motor.stop()
    await expect(machine.page.locator("[data-mover]")).not_to_be_attached()


async def test_cards_say_what_goes_on_without_the_page(machine: Machine) -> None:
    await open_view(machine.page, machine.server.url, "control", pin=PINNED)
    said = machine.page.locator("[data-when-lost]")
    await expect(said).to_contain_text(
        ["Stops when this page is hidden, closed or lost.", "Pins and PWM stay as they are"]
    )


async def test_stop_that_was_not_confirmed_stays_until_it_is_dismissed(
    page: Page, tmp_path: Path
) -> None:
    # Without a client of the SDK, which would connect again meanwhile.
    async with run_server(MACHINE, tmp_path) as server:
        await open_view(page, server.url)
        stop = page.get_by_role("button", name="STOP ALL")
        alert = page.get_by_role("alert")
        server.signal(signal.SIGSTOP)
        try:
            await stop.click()
            await expect(alert.filter(has_text="was not confirmed")).to_be_visible()
            # Longer than other results are shown.
            await pass_time(5)
            await expect(alert.filter(has_text="Things may still move")).to_be_visible()
        finally:
            server.signal(signal.SIGCONT)
        await expect(find_connection(page, "online")).to_be_visible()
        await page.get_by_role("button", name="Dismiss").click()
        await expect(page.get_by_text("was not confirmed")).not_to_be_attached()
        await stop.click()
        await expect(page.get_by_text("everything is stopped")).to_be_visible()


async def test_login_expires_and_the_page_asks_for_it_again(
    browser: Browser, tmp_path: Path
) -> None:
    asked: list[int] = []

    async def shorten(route: Route) -> None:
        body: Any = route.request.post_data_json
        asked.append(body["lifetime"])
        await route.continue_(post_data={**body, "lifetime": 5})

    async with (
        run_server(config("owner"), tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        await page.route("**/rpc/v1/authenticate", shorten)
        await page.goto(server.url)
        await log_in_as(page, "owner")
        await expect(page.get_by_role("main")).to_be_visible()
        expiry = page.get_by_text("Your login has expired: log in again.")
        await expect(expiry).to_be_visible()
        assert asked[0] == HALF_A_DAY
