"""Video and calls over WebRTC through networks that delay, lose and reorder packets, or fail."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
import pytest
from tests.interop.network_client import DEADLINE
from tests.support.machine.running import PROGRAM, Output, Server, run_server
from tests.support.network.namespaces import Computer, needs_namespaces
from tests.support.network.slow_network import Rule, SlowNetwork, change_address, slow_network
from tests.support.paths import REPOSITORY
from tests.support.sizes import FULL, limit, size
from tests.support.waiting import pass_time, run_others

pytestmark = needs_namespaces

BROWSER = REPOSITORY / "tests" / "browser"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
# The narrow one first, while the video still has its full bit rate.
RULES = {
    "256 kbit/s": Rule(bits_per_second=256_000),
    "200 ms delay": Rule(delay=0.2),
    "5 % loss": Rule(loss=0.05),
    "20 % reordered": Rule(reordered=0.2),
}
CUT = Rule(is_cut=True)
SECONDS = size(2, 30)
"""Time in each network."""
OUTAGE = size(4, 30)
BACK = limit(5.0)
"""Seconds after which video and calls must work again."""
MAX_GROWTH = 30 << 20
NOTICED = 60.0
"""Seconds after which the machine must have noticed that a client is gone."""


@dataclass
class Client:
    """A process that watches and calls, or observes."""

    process: asyncio.subprocess.Process
    out: Output
    err: Output

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.lines]

    def frames(self, since: float = 0.0, until: float = float("inf")) -> list[float]:
        times = [each["frame"] for each in self.events if "frame" in each]
        return [each for each in times if since <= each < until]

    def calls(self, since: float = 0.0) -> list[dict[str, Any]]:
        """Return the calls that began after a time."""
        return [each for each in self.events if "call" in each and each["start"] >= since]

    def make_call(self, sensor: str, deadline: float | None = None) -> None:
        assert self.process.stdin is not None
        text = sensor if deadline is None else f"{sensor} {deadline}"
        self.process.stdin.write(f"{text}\n".encode())

    async def wait_until(self, is_done: Callable[[], object], within: float, what: str) -> float:
        """Wait, and return the monotonic time."""
        try:
            async with asyncio.timeout(within):
                while not is_done():
                    assert not self.out.ended, self.err.text
                    await pass_time(0.02)
        except TimeoutError:
            raise AssertionError(f"{what} took more than {within:g} s") from None
        return time.monotonic()

    async def wait_for_operations(self, count: int, within: float) -> float:
        """Wait until the machine has so many operations, and return when it had."""

        def newest() -> dict[str, Any]:
            return ([{}, *(each for each in self.events if "operations" in each)])[-1]

        await self.wait_until(
            lambda: newest().get("operations") == count, within, f"reaching {count} operations"
        )
        return float(newest()["at"])


@contextlib.asynccontextmanager
async def run_process(computer: Computer, *command: str) -> AsyncIterator[Client]:
    process = await asyncio.create_subprocess_exec(
        *(*computer.prefix, *command),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=REPOSITORY,
        env={**os.environ, "CHROMIUM": CHROMIUM or ""},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    client = Client(process, Output(), Output())
    readers = [
        asyncio.ensure_future(client.out.follow(process.stdout)),
        asyncio.ensure_future(client.err.follow(process.stderr)),
    ]
    try:
        yield client
    finally:
        process.stdin.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()
            await process.wait()
        await asyncio.gather(*readers)
        await run_others()


def run_client(computer: Computer, *arguments: str) -> AbstractAsyncContextManager[Client]:
    command = (sys.executable, "-m", "tests.interop.network_client", *arguments)
    return run_process(computer, *command)


@contextlib.asynccontextmanager
async def watch(machine: Computer, computer: Computer) -> AsyncIterator[Client]:
    """Yield a client that has frames and calls."""
    async with run_client(computer, f"{machine.address}:8080") as client:
        await client.out.wait_for('"connected"')
        await client.wait_until(client.frames, 10, "the first frame")
        await client.wait_until(client.calls, 10, "the first call")
        yield client


@contextlib.asynccontextmanager
async def run_machine(computer: Computer, directory: Path) -> AsyncIterator[Server]:
    belt = {"scene": "conveyor", "width": 1280, "height": 720}
    parts: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("belt", "camera", belt),
        ("quick", "sensor", {}),
        ("slow", "sensor", {"faults": [{"delay": "300s"}]}),
    )
    config = {
        "components": [
            {"name": name, "api": f"rdk:component:{kind}", "model": "fake", "attributes": options}
            for name, kind, options in parts
        ],
        "network": {"bind_address": ":8080", "insecure_without_auth": True},
    }
    async with run_server(
        config,
        directory,
        program=[*computer.prefix, *PROGRAM],
        arguments=["-disable-mdns", "-debug"],
    ) as server:
        await server.out.wait_for("applied in")
        yield server
    assert "Traceback" not in server.output, server.output


def read_memory(server: Server) -> int:
    """Return the bytes that the server and its WebRTC process have in memory."""
    main = psutil.Process(server.pid)
    return sum(each.memory_info().rss for each in (main, *main.children()))


def longest_pause(times: list[float], start: float, end: float) -> float:
    return max(other - one for one, other in pairwise([start, *times, end]))


@pytest.mark.timeout(300)
async def test_video_and_calls_in_slow_networks(tmp_path: Path) -> None:
    with slow_network() as (machine, computer, network):
        async with run_machine(machine, tmp_path) as server, watch(machine, computer) as client:
            memory = 0
            for name, rule in RULES.items():
                network.apply(rule)
                start = time.monotonic()
                await pass_time(SECONDS)
                # Little may arrive in the time of a short test.
                await wait_for_recovery(client, start)
                end = time.monotonic()
                frames, calls = client.frames(start, end), client.calls(start)
                pause = longest_pause(frames, start, end)
                took = [each["end"] - each["start"] for each in calls]
                done = sum(each["call"] == "OK" for each in calls)
                rate = len(frames) / (end - start)
                print(
                    f"{name}: {rate:.1f} frames/s, pauses up to {pause:.1f} s; {done} of "
                    f"{len(calls)} calls in up to {max(took):.2f} s"
                )
                assert pause < BACK, f"{name}: no frames for {pause:.1f} s"
                assert max(took) < DEADLINE + 1
                network.apply(Rule())
                await wait_for_recovery(client, time.monotonic())
                # After the first, for which another encoder was started.
                memory = memory or read_memory(server)
            growth = read_memory(server) - memory
            print(f"memory: {growth / (1 << 20):+.1f} MiB")
            assert growth < MAX_GROWTH


async def wait_for_recovery(client: Client, since: float) -> None:
    """Wait until there is a frame, and a call that succeeds, since then."""
    await client.wait_until(lambda: client.frames(since), BACK, "the next frame")
    await client.wait_until(
        lambda: any(each["call"] == "OK" for each in client.calls(since)), BACK, "the next call"
    )


async def test_video_and_calls_return_after_an_outage(tmp_path: Path) -> None:
    with slow_network() as (machine, computer, network):
        async with (
            run_machine(machine, tmp_path) as server,
            watch(machine, computer) as client,
            run_client(machine, "--observe", "127.0.0.1:8080") as observer,
        ):
            await observer.wait_for_operations(0, 10)
            memory = read_memory(server)
            client.make_call("slow", DEADLINE)
            begun = await observer.wait_for_operations(1, 5)
            network.apply(CUT)
            cut = time.monotonic()
            # The server ends the call at its deadline, although it cannot tell the client.
            ended = await observer.wait_for_operations(0, DEADLINE + 1)
            assert DEADLINE - 0.5 < ended - begun < DEADLINE + 1
            await pass_time(cut + OUTAGE - time.monotonic())
            growth = read_memory(server) - memory
            network.apply(Rule())
            back = time.monotonic()
            frame, call = await asyncio.gather(
                client.wait_until(lambda: client.frames(back + 0.05), 20, "the next frame"),
                client.wait_until(
                    lambda: any(each["call"] == "OK" for each in client.calls(cut)),
                    20,
                    "the next call",
                ),
            )
            in_vain = [
                each for each in client.calls(cut) if each["end"] < back and each["call"] != "OK"
            ]
            took = [each["end"] - each["start"] for each in in_vain]
            print(
                f"after {OUTAGE} s: frame in {frame - back:.2f} s, call in {call - back:.2f} s; "
                f"{len(took)} calls ended in {min(took):.2f} to {max(took):.2f} s; "
                f"memory {growth / (1 << 20):+.1f} MiB"
            )
            assert frame - back < BACK
            assert call - back < BACK
            assert in_vain
            assert max(took) < DEADLINE + 1
            assert growth < MAX_GROWTH


async def test_client_with_another_address_connects_again(tmp_path: Path) -> None:
    with slow_network() as (machine, computer, network):
        async with (
            run_machine(machine, tmp_path),
            run_client(machine, "--observe", "127.0.0.1:8080") as observer,
        ):
            async with watch(machine, computer) as client:
                client.make_call("slow")
                await observer.wait_for_operations(1, 5)
                moved = change_address(computer, "10.78.0.3")
                changed = time.monotonic()
                async with watch(machine, moved) as again:
                    took = time.monotonic() - changed
            (connected,) = [each["connected"] for each in again.events if "connected" in each]
            print(f"connected again in {connected:.2f} s, with a picture after {took:.2f} s")
            assert connected < BACK
            if FULL:
                # Both clients are gone without a word. Their calls and their video end.
                ended = await observer.wait_for_operations(0, NOTICED)
                print(f"the machine noticed after {ended - changed:.1f} s")
                async with asyncio.timeout(NOTICED):
                    while await measure_sending(network) > 1000:
                        pass
                print(f"and sends no video after {time.monotonic() - changed:.1f} s")


async def measure_sending(network: SlowNetwork) -> float:
    """Return the bytes per second that the machine sends."""
    before = network.count_bytes()[0]
    await pass_time(1)
    return network.count_bytes()[0] - before


@pytest.mark.soak
@pytest.mark.skipif(
    CHROMIUM is None or not (BROWSER / "node_modules").exists(), reason="run `make browser`"
)
@pytest.mark.parametrize("seconds", [5, 30])
async def test_browser_shows_video_again_after_an_outage(tmp_path: Path, seconds: int) -> None:
    """After a long one, the browser gives up its connection, and the page makes another one."""
    with slow_network() as (machine, computer, network):
        script, url = str(BROWSER / "outage.mjs"), f"http://{machine.address}:8080"
        async with (
            run_machine(machine, tmp_path),
            run_process(computer, "node", script, url, "belt") as page,
        ):
            await page.wait_until(lambda: len(page.frames()) > 30, 30, "the video")
            network.apply(CUT)
            await pass_time(seconds)
            network.apply(Rule())
            back = time.time()
            await page.wait_until(lambda: page.frames(back + 0.05), 30, "the next frame")
            took = page.frames(back + 0.05)[0] - back
            events = [each for each in page.events if "frame" not in each]
            print(f"after {seconds} s: frame in {took:.2f} s; {events}")
            assert took < BACK
