"""The session of the control page: what ends it, who moves what, and what goes on without it."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.control_page import Machine, needs_browser, open_browser, open_machine, until
from tests.support.machine.login import KEYS, config, key_of
from tests.support.machine.running import run_server
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
LEAVING = {
    "hidden": """
        await page.evaluate(() => {
          Object.defineProperty(document, 'hidden', {value: true, configurable: true});
          document.dispatchEvent(new Event('visibilitychange'));
        });
        """,
    # Chromium freezes no page that is shown, so the test says that it does.
    "frozen": "await page.evaluate(() => document.dispatchEvent(new Event('freeze')));",
    "left": "await page.goto('about:blank');",
}
RETURN = {
    "hidden": """
        await page.evaluate(() => {
          Object.defineProperty(document, 'hidden', {value: false, configurable: true});
          document.dispatchEvent(new Event('visibilitychange'));
        });
        """,
    "frozen": "await page.evaluate(() => document.dispatchEvent(new Event('resume')));",
    "left": "await page.goBack();",
}
GO = """
    await page.getByLabel('Turns', {exact: true}).fill('1000');
    await page.getByRole('button', {name: 'Go for'}).click();
    """


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(tmp_path_factory: Any) -> AsyncIterator[Machine]:
    async with open_machine(MACHINE, tmp_path_factory.mktemp("machine")) as opened:
        yield opened


async def is_still(motor: Motor) -> bool:
    return not await motor.is_moving()


@pytest.mark.parametrize("how", LEAVING)
async def test_what_the_page_moves_stops_at_once_when_it_is_out_of_sight(
    machine: Machine, how: str
) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    await machine.page.open(machine.server.url, "control", pin=PINNED)
    await machine.page.wait_for_webrtc()
    await machine.page.run(GO)
    await until(motor.is_moving)
    await machine.page.run(LEAVING[how])
    await until(lambda: is_still(motor))
    # It moves things again when it is back, in another session.
    await machine.page.run(RETURN[how])
    await machine.page.run(GO)
    await until(motor.is_moving)
    await motor.stop()


async def test_every_page_shows_who_moves_a_thing(machine: Machine) -> None:
    motor = Motor.from_robot(machine.robot, "m")
    await machine.page.open(machine.server.url, "control", pin=PINNED)
    await machine.page.run(GO)
    await machine.page.run("await page.getByText('by this page').waitFor();")
    async with open_browser() as other:
        await other.open(machine.server.url, "control", pin=PINNED)
        await other.run("await page.getByText('by the machine\\'s own computer').waitFor();")
    await motor.stop()
    await machine.page.run("await page.locator('[data-mover]').waitFor({state: 'detached'});")


async def test_cards_say_what_goes_on_without_the_page(machine: Machine) -> None:
    await machine.page.open(machine.server.url, "control", pin=PINNED)
    await machine.page.run("await page.locator('[data-when-lost]').nth(1).waitFor();")
    said = await machine.page.run("return page.locator('[data-when-lost]').allInnerTexts();")
    assert said[0] == "Stops when this page is hidden, closed or lost."
    assert said[1].startswith("Pins and PWM stay as they are")


async def test_stop_that_was_not_confirmed_stays_until_it_is_dismissed(tmp_path: Path) -> None:
    # Without a client of the SDK, which would connect again meanwhile.
    async with run_server(MACHINE, tmp_path) as server, open_browser() as page:
        await page.open(server.url)
        server.signal(signal.SIGSTOP)
        try:
            await page.run(
                """
                await page.getByRole('button', {name: 'STOP ALL'}).click();
                await page.getByRole('alert').filter({hasText: 'was not confirmed'}).waitFor();
                // Longer than other results are shown.
                await page.waitForTimeout(5000);
                await page.getByRole('alert').filter({hasText: 'Things may still move'}).waitFor();
                """
            )
        finally:
            server.signal(signal.SIGCONT)
        await page.run(
            """
            await page.locator('[data-connection=online]').waitFor();
            await page.getByRole('button', {name: 'Dismiss'}).click();
            await page.getByText('was not confirmed').waitFor({state: 'detached'});
            await page.getByRole('button', {name: 'STOP ALL'}).click();
            await page.getByText('everything is stopped').waitFor();
            """
        )


async def test_login_expires_and_the_page_asks_for_it_again(tmp_path: Path) -> None:
    async with run_server(config("owner"), tmp_path) as server, open_browser() as page:
        asked = await page.run(
            """
            let asked = null;
            await page.route('**/rpc/v1/authenticate', (route) => {
              const body = route.request().postDataJSON();
              asked ??= body.lifetime;
              route.continue({postData: JSON.stringify({...body, lifetime: 5})});
            });
            await page.goto(values.url);
            await page.getByLabel('Key ID').fill(values.id);
            await page.getByLabel('Key', {exact: true}).fill(values.key);
            await page.getByRole('button', {name: 'Log in'}).click();
            await page.locator('#view').waitFor();
            await page.getByText('Your login has expired: log in again.').waitFor();
            return asked;
            """,
            url=server.url,
            id=KEYS["owner"],
            key=key_of("owner"),
        )
        assert asked == HALF_A_DAY
