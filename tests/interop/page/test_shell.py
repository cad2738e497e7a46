"""The frame of the control page: connection, views, search, STOP ALL, login, themes."""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, Route, expect
from tests.support.control_page import (
    REFUSED,
    find_connection,
    log_in,
    log_in_as,
    needs_browser,
    open_page,
    open_view,
    wait_for_webrtc,
)
from tests.support.machine.login import KEYS, ROLES, config
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.paths import TESTS
from tests.support.sizes import limit
from viam.components.motor import Motor

pytestmark = [needs_browser, pytest.mark.timeout(240), pytest.mark.asyncio(loop_scope="module")]

VIEWS = {
    "overview": "Last events",
    "control": "Choose resources in the list",
    "vision": "This machine has no vision service",
    "logs": "following",
    "configure": "What saving does",
    "graph": "4 ready",
    "modules": "No modules are configured",
    "frames": "grid ",
    "jobs": "No jobs are configured",
    "diagnose": "No calls are running",
}
"""What each view shows when it has everything."""
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
TRANSFORM = {
    "name": "t",
    "api": "rdk:component:camera",
    "model": "transform",
    "attributes": {"source": "c", "pipeline": [{"type": "rotate"}]},
}
MACHINE = {"components": [MOTOR, SENSOR, CAMERA, BROKEN, TRANSFORM], "jbos": []}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with run_server(MACHINE, tmp_path_factory.mktemp("machine")) as running:
        await running.wait_for_status(state="running")
        yield running


async def test_page_shows_the_machine_and_talks_to_nothing_else(server: Server, page: Page) -> None:
    # By its address, as on another computer: the SDK treats names with "local" in them specially.
    host = f"127.0.0.1:{server.port}"
    foreign: list[str] = []

    async def stop_foreign(route: Route) -> None:
        if urlsplit(route.request.url).netloc == host:
            await route.continue_()
        else:
            foreign.append(route.request.url)
            await route.abort()

    await page.context.route("**", stop_foreign)
    await open_view(page, f"http://{host}")
    await wait_for_webrtc(page)
    await expect(page.get_by_text("4 of 5 ready")).to_be_visible()
    for view, text in VIEWS.items():
        await open_view(page, f"http://{host}", view)
        await expect(page.locator("#view").get_by_text(text).first).to_be_visible()
    assert foreign == []


async def test_hostile_text_is_text(server: Server, page: Page) -> None:
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    for view in ("overview", "graph", "logs", "diagnose"):
        await open_view(page, server.url, view)
        await expect(page.locator("#view").get_by_text(VIEWS[view]).first).to_be_visible()
    pins = ["rdk:component:sensor/s", "rdk:component:sensor/b"]
    await open_view(page, server.url, "control", pin=pins)
    await expect(page.get_by_text("onerror").first).to_be_visible()
    text = await page.locator("#view").inner_text()
    assert "<img src=x onerror=alert(1)>" in text
    assert "\u202e" not in text
    assert len(text) < 20_000
    await expect(page.locator("img[src=x]")).to_have_count(0)
    assert dialogs == []


@pytest.mark.parametrize("way", ["button", "keyboard"])
async def test_stop_all_stops_what_moves(server: Server, page: Page, way: str) -> None:
    async with connect_sdk(server.port) as client:
        motor = Motor.from_robot(client, "m")
        await open_view(page, server.url)
        await motor.set_power(0.5)
        assert (await motor.is_powered())[0]
        if way == "button":
            await page.get_by_role("button", name="STOP ALL").click()
        else:
            await page.keyboard.press("Escape")
            await page.keyboard.press("Escape")
        await expect(page.get_by_text("everything is stopped")).to_be_visible()
        assert not (await motor.is_powered())[0]


async def test_search_opens_views_and_resources(server: Server, page: Page) -> None:
    await open_view(page, server.url)
    for typed, address in (("logs", "#/logs"), ("m motor", "motor%2Fm")):
        await page.keyboard.press("Control+k")
        await page.keyboard.type(typed)
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(re.escape(address)))
    search = page.get_by_role("dialog", name="Search")
    await expect(search).to_have_count(0)

    # It does not hide STOP ALL, and finds nothing in the word "command".
    await page.keyboard.press("Control+k")
    await page.keyboard.type("comm")
    await expect(search).to_contain_text("Nothing has this name")
    await page.get_by_role("button", name="STOP ALL").click()
    await expect(page.get_by_text("everything is stopped")).to_be_visible()
    await expect(search).to_have_count(0)


async def test_page_is_usable_again_after_the_server_was_killed(page: Page, tmp_path: Path) -> None:
    machine = with_free_port({**MACHINE, "network": {"bind_address": "localhost:18199"}})
    async with run_server(machine, tmp_path, exits=None) as server:
        await server.wait_for_status(state="running")
        await open_view(page, server.url, "control", pin="rdk:component:motor/m")
        await wait_for_webrtc(page)
        loads: list[Page] = []
        page.on("load", lambda loaded: loads.append(loaded))
        server.signal(signal.SIGKILL)
        await server.exit_code()
    await expect(find_connection(page, "lost")).to_be_visible()
    async with run_server(machine, tmp_path) as server:
        begin = time.monotonic()
        await expect(find_connection(page, "online")).to_be_visible()
        stop = page.locator("[data-card]").get_by_role("button", name=re.compile("Stop$"))
        await stop.click()
        await server.wait_for_status(state="running")
        took = time.monotonic() - begin
        print(f"usable again {took:.2f} s after the server serves")
        assert took <= limit(3)
        assert loads == []


@pytest.mark.parametrize("role", ROLES)
async def test_login_with_a_key_and_what_roles_are_offered(
    browser: Browser, tmp_path: Path, role: str
) -> None:
    async with (
        run_server(config(*ROLES), tmp_path) as server,
        open_page(browser, complaint=REFUSED) as page,
    ):
        await page.goto(server.url)
        await log_in(page, KEYS[role], "wrong")
        await expect(page.get_by_role("alert")).to_be_visible()
        await log_in_as(page, role)
        await wait_for_webrtc(page)
        out = page.get_by_role("button", name="Log out")
        stop = page.get_by_role("button", name="STOP ALL")
        await expect(out).to_have_text(f"{role} · Log out")
        await expect(stop).to_have_count(int(role != "viewer"))
        configure = page.get_by_role("link", name="Configure")
        await expect(configure).to_have_count(int(role == "owner"))
        status = await page.evaluate(
            """async () => {
              const token = sessionStorage.getItem('cogwork.token');
              const headers = {Authorization: `Bearer ${token}`};
              return (await fetch('/configuration.json', {headers})).status;
            }"""
        )
        assert status == (200 if role == "owner" else 403)
        await out.click()
        await expect(page.get_by_role("button", name="Log in")).to_be_visible()


async def test_phone_has_the_name_the_login_and_room_for_stop_all(
    browser: Browser, tmp_path: Path
) -> None:
    async with (
        run_server(config("operator"), tmp_path) as server,
        open_page(browser, width=390, height=844, complaint=REFUSED) as page,
    ):
        await page.goto(server.url)
        await log_in_as(page, "operator")
        name = page.get_by_role("banner").get_by_role("link", name="robot")
        await expect(name).to_be_visible()
        stop = page.get_by_role("button", name="STOP ALL")
        for each in (page.get_by_role("main"), *await page.get_by_role("link").all()):
            assert not await overlap(stop, each)
        out = page.get_by_role("button", name="Log out")
        await expect(out).to_have_count(0)
        await page.get_by_role("button", name="More").click()
        await expect(page.get_by_text("· operator")).to_be_visible()
        assert not await overlap(stop, out)
        await out.click()
        await expect(page.get_by_role("button", name="Log in")).to_be_visible()


async def overlap(one: Locator, other: Locator) -> bool:
    first, second = await one.bounding_box(), await other.bounding_box()
    if first is None or second is None:
        return False
    return (
        first["x"] < second["x"] + second["width"]
        and second["x"] < first["x"] + first["width"]
        and first["y"] < second["y"] + second["height"]
        and second["y"] < first["y"] + first["height"]
    )


async def test_states_are_gray_while_the_connection_is_lost(
    browser: Browser, tmp_path: Path
) -> None:
    async with open_page(browser, complaint="Failed to load resource") as page:
        async with run_server(MACHINE, tmp_path) as server:
            await server.wait_for_status(state="running")
            await open_view(page, server.url, "control")
            ready = page.get_by_role("button", name="ready m motor").get_by_role("img")
            read_color = "(mark) => getComputedStyle(mark).color"
            color = await ready.evaluate(read_color)
        await expect(find_connection(page, "lost")).to_be_visible()
        last = page.get_by_role("button", name="last ready m motor").get_by_role("img")
        other = page.get_by_role("button", name="last unhealthy b sensor").get_by_role("img")
        assert await last.evaluate(read_color) == await other.evaluate(read_color) != color

        # A phone has room for it, too.
        await page.set_viewport_size({"width": 390, "height": 844})
        await expect(page.get_by_role("button", name="Theme")).to_be_in_viewport(ratio=1)
        banner = page.get_by_role("banner")
        icon = banner.get_by_title("Overview").locator("img")
        assert not await overlap(icon, banner.get_by_text("of 5 ready"))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 1280), ("light", 390)])
async def test_every_view_is_accessible(
    server: Server, browser: Browser, scheme: Literal["light", "dark"], width: int
) -> None:
    axe = TESTS / "browser/node_modules/axe-core/axe.min.js"
    found: dict[str, Any] = {}
    async with open_page(browser, scheme=scheme, width=width) as page:
        # Added outside of the page's policy, like an extension.
        await page.add_init_script(path=axe)
        pins = [f"rdk:component:{name}" for name in ("motor/m", "sensor/s", "camera/c")]
        views: list[tuple[str, str, dict[str, Any]]] = [
            *((view, text, {}) for view, text in VIEWS.items()),
            ("control", "px", {"pin": pins}),
            ("configure", "Connected to this computer", {"tab": "add"}),
            ("configure", "angle_degs", {"tab": "form", "resource": "components/4"}),
        ]
        for view, text, params in views:
            await open_view(page, server.url, view, **params)
            await page.reload()
            await expect(page.locator("#view").get_by_text(text).first).to_be_visible()
            found[page.url] = await page.evaluate(
                """async () => (await axe.run(document)).violations
                  .filter((each) => ['serious', 'critical'].includes(each.impact))
                  .map((each) => `${each.id}: ${each.nodes.map((node) => node.html).slice(0, 3)}`)
                """
            )
    assert len(found) == len(views)
    assert not any(found.values()), json.dumps(found, indent=1)


async def test_page_without_webrtc_neither_complains_nor_dials(page: Page, tmp_path: Path) -> None:
    dialed: list[str] = []
    page.on("request", lambda sent: dialed.append(sent.url) if "webrtc" in sent.url else None)
    async with run_server(MACHINE, tmp_path, arguments=["-webrtc=false"]) as server:
        await open_view(page, server.url)
        for _ in range(5):  # by then, it would have dialed
            async with page.expect_response(re.compile("status.json")):
                pass
        await expect(find_connection(page, "online")).to_contain_text("HTTP")
        history = json.loads((await server.get("/history.json"))[1])
        assert [each for each in history if each["event"] == "client"] == []
        await page.goto("about:blank")
    assert dialed == []
