"""What the control page moves stops when its browser is killed, stopped or cut off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest
from playwright.async_api import Locator, Page, expect
from tests.support.browser import find_processes, launch_browser
from tests.support.control_page import find_connection, needs_browser, open_page, open_view
from tests.support.machine.running import PROGRAM, Output, run_server
from tests.support.network.namespaces import Computer, needs_namespaces
from tests.support.network.slow_network import Rule, SlowNetwork, slow_network
from tests.support.paths import REPOSITORY
from tests.support.sizes import FULL, limit
from tests.support.waiting import pass_time, run_others, wait_until

pytestmark = [needs_browser, needs_namespaces, pytest.mark.timeout(300)]

PORT = 8080
WINDOW = 2.0
"""Seconds without a heartbeat after which the machine stops what a client moves: the default."""
SLACK = limit(0.5)
HEARTBEAT = WINDOW / 5
DEADLINE = 60.0
ATTEMPTS = 5
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "motor": {},
    "base": {},
    # A step must take longer than the window.
    "arm": {"speed_degs_per_sec": 1},
}
HELD = {
    "motor": "Forward while held",
    "base": "Forward while held",
    "arm": "waist plus while held",
}
NUMBERED = {
    "base": ("Distance in millimeters", 1_000_000, "Drive straight"),
    "arm": ("Target of elbow in °", -60, "Move elbow to its target"),
}
"""The field, the number and the button of a move that needs no button to be held."""
INSECURE = "Cross-Origin-Opener-Policy"
"""What Chromium complains about on another computer without TLS."""
WAYS = ("killed", "stopped", "cut off")
CONFIG = {
    "components": [
        {"name": name, "api": f"rdk:component:{name}", "model": "fake", "attributes": attributes}
        for name, attributes in ATTRIBUTES.items()
    ],
    "network": {"bind_address": f":{PORT}", "insecure_without_auth": True},
}


class Rest(NamedTuple):
    seconds: float
    """Time from the loss until it was seen at rest."""
    uncertainty: float
    """Seconds since it was last seen moving: on a busy computer, the observer looks rarely."""

    def __str__(self) -> str:
        unsure = f" (±{self.uncertainty:.2f})" if self.uncertainty > 0.1 else ""
        return f"{self.seconds:.2f}{unsure}"


class Observer:
    """What moves on the machine, and since when."""

    def __init__(self, out: Output) -> None:
        self._out = out

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._out.lines]

    @property
    def moving(self) -> set[str]:
        return set(self.events[-1]["moving"]) if self._out.lines else set()

    async def wait_until(self, is_so: Callable[[set[str]], bool], within: float = DEADLINE) -> None:
        """Wait until what moves meets a condition."""
        await wait_until(lambda: self._out.ended or is_so(self.moving), within)
        assert not self._out.ended, self._out.text

    def find_rest(self, name: str, since: float) -> Rest:
        """Return when a component that was lost at a time was seen at rest for good."""
        last = max(n for n, each in enumerate(self.events) if name in each["moving"])
        rest = self.events[last + 1]
        return Rest(max(0.0, rest["at"] - since), rest["at"] - rest["looked"])


@contextlib.asynccontextmanager
async def observe(computer: Computer) -> AsyncIterator[Observer]:
    process = await asyncio.create_subprocess_exec(
        *(*computer.prefix, sys.executable, "-m", "tests.interop.motion_observer"),
        *(str(PORT), ",".join(ATTRIBUTES)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        cwd=REPOSITORY,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    out = Output()
    reading = asyncio.ensure_future(out.follow(process.stdout))
    try:
        await out.wait_for("moving")
        yield Observer(out)
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
        await process.wait()
        await reading
        await run_others()


class Browser:
    """A browser on another computer than the machine, with the cards of what moves."""

    def __init__(self, computer: Computer, network: SlowNetwork, url: str, transport: str) -> None:
        self._computer = computer
        self._network = network
        self._url = url
        self._transport = transport
        self._page: Page | None = None
        self._processes: list[psutil.Process] = []
        self._stack = contextlib.AsyncExitStack()

    async def show(self) -> Page:
        """Return the page, in a new browser if the one before is gone."""
        if self._page is None:
            browser = await self._stack.enter_async_context(launch_browser(self._computer.prefix))
            page = await self._stack.enter_async_context(open_page(browser, complaint=INSECURE))
            if self._transport == "gRPC-web":
                await page.add_init_script("delete globalThis.RTCPeerConnection;")
            pins = [f"rdk:component:{name}/{name}" for name in ATTRIBUTES]
            await open_view(page, self._url, "control", pin=pins)
            self._page = page
        label = "WebRTC" if self._transport == "WebRTC" else "HTTP"
        await expect(find_connection(self._page, "online")).to_contain_text(label)
        return self._page

    def lose(self, way: str) -> float:
        """Lose the browser, and return when."""
        assert self._page is not None
        # Finding them takes a busy computer a second.
        self._processes = find_processes()
        since = time.monotonic()
        if way == "cut off":
            self._network.apply(Rule(is_cut=True))
        else:
            self._signal(signal.SIGKILL if way == "killed" else signal.SIGSTOP)
        return since

    def _signal(self, number: signal.Signals) -> None:
        for each in self._processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.send_signal(number)

    async def recover(self, way: str) -> None:
        assert self._page is not None
        if way == "killed":
            self._page = None
            await self._stack.aclose()
            return
        if way == "cut off":
            self._network.apply(Rule())
        else:
            self._signal(signal.SIGCONT)
        await self.show()
        await self._page.mouse.up()

    async def close(self) -> None:
        await self._stack.aclose()


def find_card(page: Page, name: str) -> Locator:
    return page.locator(f"[data-card$='/{name}']")


async def hold(page: Page, name: str) -> None:
    card = find_card(page, name)
    if name == "arm":
        await card.get_by_label("Step of a jog").select_option("10")
    await card.get_by_role("button", name=HELD[name]).hover()
    await page.mouse.down()


async def start_by_number(page: Page, name: str, attempt: int) -> None:
    field, number, button = NUMBERED[name]
    number *= -1 if attempt % 2 else 1  # it may have arrived
    card = find_card(page, name)
    await card.get_by_label(field, exact=True).fill(str(number))
    await card.get_by_role("button", name=button, exact=True).click()


@contextlib.asynccontextmanager
async def run_rig(directory: Path, transport: str) -> AsyncIterator[tuple[Browser, Observer]]:
    with slow_network() as (machine, computer, network):
        async with (
            run_server(
                CONFIG,
                directory,
                program=[*machine.prefix, *PROGRAM],
                arguments=["-disable-mdns"],
            ) as server,
            observe(machine) as observer,
        ):
            await server.out.wait_for("applied in")
            browser = Browser(computer, network, f"http://{machine.address}:{PORT}", transport)
            try:
                yield browser, observer
            finally:
                network.apply(Rule())
                await browser.close()
        assert "Traceback" not in server.output, server.output


async def keep_moving(
    page: Page, observer: Observer, names: Sequence[str], seconds: float, attempt: int
) -> bool:
    """Return whether the page moves everything for some seconds.

    A browser that gets no time of a busy computer sends no heartbeats, and all of it stops.
    """
    for name in names[1:]:
        await start_by_number(page, name, attempt)
    await hold(page, names[0])
    with contextlib.suppress(pytest.fail.Exception):
        await observer.wait_until({*names}.issubset, within=5 * WINDOW)
    await pass_time(seconds)
    return observer.moving >= {*names}


async def measure(
    browser: Browser, observer: Observer, way: str, names: Sequence[str], keeps_moving: float
) -> dict[str, Rest]:
    """Lose the browser while it moves something, and return when each is at rest.

    The first of the names is moved by a button that is held.
    """
    for attempt in range(ATTEMPTS):
        page = await browser.show()
        if await keep_moving(page, observer, names, keeps_moving, attempt):
            break
        await page.mouse.up()
    else:
        raise AssertionError(f"its heartbeats kept it moving in none of {ATTEMPTS} attempts")
    since = browser.lose(way)
    await observer.wait_until({*names}.isdisjoint)
    took = {name: observer.find_rest(name, since) for name in names}
    await browser.recover(way)
    # What the page had sent before must not move anything when it arrives later.
    assert observer.moving == set()
    return took


@pytest.mark.parametrize("transport", ["WebRTC", "gRPC-web"])
async def test_what_a_lost_page_moves_stops_within_the_window(
    tmp_path: Path, transport: str
) -> None:
    async with run_rig(tmp_path, transport) as (browser, observer):
        for number, way in enumerate(("stopped", "cut off", "killed")):
            # Once for longer than the window: heartbeats keep it moving.
            keeps_moving = 0.2 if number else WINDOW + 0.5
            took = await measure(browser, observer, way, ["motor", "base", "arm"], keeps_moving)
            times = ", ".join(f"{name} {rest} s" for name, rest in took.items())
            print(f"{transport}, {way}: {times}", flush=True)
            assert max(took.values()).seconds < WINDOW + SLACK


@pytest.mark.soak
@pytest.mark.skipif(not FULL, reason="takes half an hour")
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transport", ["WebRTC", "gRPC-web"])
async def test_every_loss_many_times(tmp_path: Path, transport: str) -> None:
    phase = random.Random(7)
    async with run_rig(tmp_path, transport) as (browser, observer):
        for way in WAYS:
            for name, rounds in {"motor": 20, "base": 5, "arm": 5}.items():
                took: list[Rest] = []
                while len(took) < rounds:
                    after = HEARTBEAT * phase.uniform(0.5, 2)
                    rest = (await measure(browser, observer, way, [name], after))[name]
                    if rest.uncertainty > SLACK:
                        print(f"not seen at that moment: {rest} s", flush=True)
                        continue
                    took.append(rest)
                times = " ".join(map(str, sorted(took)))
                print(f"{transport}, {way}, {name}, seconds: {times}", flush=True)
                assert max(took).seconds < WINDOW + SLACK
