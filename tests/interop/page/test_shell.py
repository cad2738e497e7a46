"""The frame of the control page: connection, views, search, STOP ALL, login, themes."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.control_page import Page, connect_sdk, needs_browser, open_browser
from tests.support.machine.login import KEYS, ROLES, config, key_of
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.paths import TESTS
from tests.support.sizes import limit
from viam.components.motor import Motor

pytestmark = [needs_browser, pytest.mark.timeout(240)]

VIEWS = (
    "overview",
    "control",
    "vision",
    "logs",
    "configure",
    "graph",
    "modules",
    "frames",
    "jobs",
    "diagnose",
)
MOTOR = {"name": "m", "api": "rdk:component:motor", "model": "fake"}
HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe\0\"'{{7*7}}"
SENSOR = {
    "name": "s",
    "api": "rdk:component:sensor",
    "model": "fake",
    "attributes": {"readings": {HOSTILE: HOSTILE, "long": "x" * 1_000_000, "n": 1.5}},
}
CAMERA = {"name": "c", "api": "rdk:component:camera", "model": "fake"}
BROKEN = {
    "name": "b",
    "api": "rdk:component:sensor",
    "model": "fake",
    "attributes": {"start": {"error": HOSTILE}},
}
MACHINE = {"components": [MOTOR, SENSOR, CAMERA, BROKEN]}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    async with run_server(MACHINE, tmp_path) as running:
        await running.wait_for_status(state="running")
        yield running


async def test_page_shows_the_machine_and_talks_to_nothing_else(server: Server) -> None:
    # By its address, as on another computer: the SDK treats names with "local" in them specially.
    url = f"http://127.0.0.1:{server.port}"
    async with open_browser() as page:
        foreign: Any = await page.run(
            """
            globalThis.foreign = [];
            await context.route("**", (route) => {
              const url = new URL(route.request().url());
              if (url.host === values.host) return route.continue();
              globalThis.foreign.push(url.href);
              return route.abort();
            });
            """,
            host=f"127.0.0.1:{server.port}",
        )
        await page.open(url)
        await page.wait_for_webrtc()
        await page.run("await page.getByText('3 of 4 ready').waitFor();")
        for view in VIEWS:
            await page.open(url, view)
            await page.run("await page.waitForTimeout(150);")
        foreign = await page.run("return globalThis.foreign;")
        assert foreign == []
        assert await page.problems() == []


async def test_hostile_text_is_text(server: Server) -> None:
    async with open_browser() as page:
        await page.run("page.on('dialog', () => problems.push('a script ran'));")
        for view in ("overview", "graph", "logs", "diagnose"):
            await page.open(server.url, view)
            await page.run("await page.waitForTimeout(500);")
        pins = ["rdk:component:sensor/s", "rdk:component:sensor/b"]
        await page.open(server.url, "control", pin=pins)
        await page.run("await page.getByText('onerror').first().waitFor();")
        text = await page.run("return page.locator('#view').innerText();")
        assert "<img src=x onerror=alert(1)>" in text
        assert "\u202e" not in text
        assert len(text) < 20_000
        assert await page.run("return page.locator('img[src=x]').count();") == 0
        assert await page.problems() == []


async def test_stop_all_stops_what_moves(server: Server) -> None:
    async with open_browser() as page, connect_sdk(server.port) as client:
        motor = Motor.from_robot(client, "m")
        await page.open(server.url)
        for press in (
            "await page.getByRole('button', {name: 'STOP ALL'}).click();",
            "await page.keyboard.press('Escape'); await page.keyboard.press('Escape');",
        ):
            await motor.set_power(0.5)
            assert (await motor.is_powered())[0]
            await page.run(press)
            await page.run("await page.getByText('everything is stopped').waitFor();")
            assert not (await motor.is_powered())[0]
            await page.run("await page.waitForTimeout(4200);")


async def test_search_opens_views_and_resources(server: Server) -> None:
    async with open_browser() as page:
        await page.open(server.url)
        for typed, address in (("logs", "#/logs"), ("m motor", "motor%2Fm")):
            await page.run(
                """
                await page.keyboard.press('Control+k');
                await page.keyboard.type(values.typed);
                await page.keyboard.press('Enter');
                await page.waitForFunction((end) => location.hash.includes(end), values.address);
                """,
                typed=typed,
                address=address,
            )


async def test_page_is_usable_again_after_the_server_was_killed(tmp_path: Path) -> None:
    machine = with_free_port({**MACHINE, "network": {"bind_address": "localhost:18199"}})
    async with open_browser() as page:
        async with run_server(machine, tmp_path, exits=None) as server:
            await server.wait_for_status(state="running")
            await page.open(server.url, "control", pin="rdk:component:motor/m")
            await page.wait_for_webrtc()
            await page.run("globalThis.loads = 0; page.on('load', () => (globalThis.loads += 1));")
            server.signal(signal.SIGKILL)
            await server.exit_code()
        await page.run("await page.locator('[data-connection=lost]').waitFor();")
        async with run_server(machine, tmp_path) as server:
            begin = time.monotonic()
            await page.run("await page.locator('[data-connection=online]').waitFor();")
            await page.run(
                "await page.locator('[data-card]').getByRole('button', {name: /Stop$/}).click();"
            )
            await server.wait_for_status(state="running")
            took = time.monotonic() - begin
            print(f"usable again {took:.2f} s after the server serves")
            assert took <= limit(3)
            assert await page.run("return globalThis.loads;") == 0


async def test_login_with_a_key_and_what_roles_are_offered(tmp_path: Path) -> None:
    async with run_server(config(*ROLES), tmp_path) as server:
        for role in ROLES:
            async with open_browser() as page:
                await log_in(page, server, role, "wrong")
                await page.run("await page.getByRole('alert').waitFor();")
                await log_in(page, server, role, key_of(role))
                await page.wait_for_webrtc()
                offered = await page.run(
                    """
                    return {
                      stop: await page.getByRole('button', {name: 'STOP ALL'}).count(),
                      configure: await page.getByRole('link', {name: 'Configure'}).count(),
                      role: await page.getByRole('button', {name: 'Log out'}).innerText(),
                    };
                    """
                )
                assert offered == {
                    "stop": int(role != "viewer"),
                    "configure": int(role == "owner"),
                    "role": f"{role} · Log out",
                }
                refused = await page.run(
                    """
                    return page.evaluate(async () => {
                      const token = sessionStorage.getItem('cogwork.token');
                      const headers = {Authorization: `Bearer ${token}`};
                      return (await fetch('/configuration.json', {headers})).status;
                    });
                    """
                )
                assert refused == (200 if role == "owner" else 403)
                await page.run("await page.getByRole('button', {name: 'Log out'}).click();")
                await page.run("await page.getByRole('button', {name: 'Log in'}).waitFor();")


async def log_in(page: Page, server: Server, role: str, key: str) -> None:
    await page.run(
        """
        if (!page.url().startsWith(values.url)) await page.goto(values.url);
        await page.getByLabel('Key ID').fill(values.id);
        await page.getByLabel('Key', {exact: true}).fill(values.key);
        await page.getByRole('button', {name: 'Log in'}).click();
        """,
        url=server.url,
        id=KEYS[role],
        key=key,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_every_view_is_accessible(server: Server, scheme: str) -> None:
    axe = (TESTS / "browser/node_modules/axe-core/axe.min.js").read_text()
    found: dict[str, Any] = {}
    async with open_browser(scheme=scheme) as page:
        # Added outside of the page's policy, like an extension.
        await page.run("await context.addInitScript(values.axe);", axe=axe)
        pins = [f"rdk:component:{name}" for name in ("motor/m", "sensor/s", "camera/c")]
        for view in VIEWS:
            await page.open(server.url, view, **({"pin": pins} if view == "control" else {}))
            await page.run(
                """
                await page.reload();
                await page.locator('#view').waitFor();
                await page.waitForTimeout(1200);
                """
            )
            found[view] = await page.run(
                """
                const result = await page.evaluate(() => axe.run(document));
                return result.violations
                  .filter((each) => ['serious', 'critical'].includes(each.impact))
                  .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`);
                """
            )
    assert found == {view: [] for view in VIEWS}, json.dumps(found, indent=1)
