"""Cost of calling a resource through one and two remotes, relative to bare proxies.

A small call and a picture of 1 MB, by one and by eight callers, interleaved: directly, through one
and two machines of which the next one is a remote, and through one and two proxies on grpc.aio that
only forward bytes, which is the cost of the hops themselves.

    python -m benchmarks.remote [--rounds 15] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc.aio
from benchmarks.parts.server_process import running_server

MAX_RATIO = 1.25
HOPS = (1, 2)
CALLERS = (1, 8)
OPTIONS = (("grpc.max_receive_message_length", -1),)
SENSOR, CAMERA = "scale", "top"
METHODS = {
    "small": (SENSOR, "/viam.component.sensor.v1.SensorService/GetReadings"),
    "1 MB": (CAMERA, "/viam.component.camera.v1.CameraService/GetImages"),
}
LINE = {
    "network": {"bind_address": "127.0.0.1:0"},
    "components": [
        {
            "name": CAMERA,
            "api": "rdk:component:camera",
            "model": "fake",
            # Without compression, and the same picture each time.
            "attributes": {"width": 640, "height": 540, "format": "raw", "animated": False},
        },
        {
            "name": SENSOR,
            "api": "rdk:component:sensor",
            "model": "fake",
            "depends_on": [CAMERA],
            "attributes": {"readings": {"weight": 3}},
        },
    ],
}
Call = Callable[[], Awaitable[object]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each way in each round")
    parser.add_argument("--quick", action="store_true", help="run a short version")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds = 1, 0.1
    with running_ways() as ways:
        kept = asyncio.run(measure(ways, arguments.rounds, arguments.seconds))
    return 0 if kept or arguments.quick else 1


@contextlib.contextmanager
def running_ways() -> Iterator[dict[str, tuple[str, str]]]:
    """Yield an address and a prefix of names for each way."""
    with contextlib.ExitStack() as stack:
        direct, _ = stack.enter_context(running_server(LINE, SENSOR))
        ways = {"direct": (direct, "")}
        machine, prefix, proxy = direct, "", direct
        for hops in HOPS:
            prefix = f"next:{prefix}"
            config = {
                "network": {"bind_address": "127.0.0.1:0"},
                "remotes": [{"name": "next", "address": machine, "insecure": True}],
            }
            machine, _ = stack.enter_context(running_server(config, f"{prefix}{SENSOR}"))
            proxy = stack.enter_context(running_proxy(proxy))
            ways |= {f"remote {hops}": (machine, prefix), f"proxy {hops}": (proxy, "")}
        yield ways


@contextlib.contextmanager
def running_proxy(target: str) -> Iterator[str]:
    with subprocess.Popen(
        [sys.executable, "-m", "benchmarks.parts.minimal_proxy", target],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        yield child.stdout.readline().strip()
        child.stdin.close()


async def measure(ways: dict[str, tuple[str, str]], rounds: int, seconds: float) -> bool:
    worst = 0.0
    print(f"{'':8} callers  direct/s   1 hop  2 hops   (time through remotes / through proxies)")
    for kind, (resource, path) in METHODS.items():
        for callers in CALLERS:
            rates = await measure_interleaved(ways, resource, path, callers, rounds, seconds)
            ratios = [
                statistics.median(
                    bare / ours
                    for ours, bare in zip(
                        rates[f"remote {hops}"], rates[f"proxy {hops}"], strict=True
                    )
                )
                for hops in HOPS
            ]
            worst = max(worst, *ratios)
            direct = statistics.median(rates["direct"])
            print(f"{kind:8} {callers:7} {direct:9.0f} {ratios[0]:7.2f} {ratios[1]:7.2f}")
    print(f"at most {worst:.2f}; the target is {MAX_RATIO}", flush=True)
    return worst <= MAX_RATIO


async def measure_interleaved(
    ways: dict[str, tuple[str, str]],
    resource: str,
    path: str,
    callers: int,
    rounds: int,
    seconds: float,
) -> dict[str, list[float]]:
    """Return the calls per second of each round, by way."""
    rates: dict[str, list[float]] = {way: [] for way in ways}
    async with contextlib.AsyncExitStack() as stack:
        calls: dict[str, Call] = {}
        for way, (address, prefix) in ways.items():
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(address, OPTIONS))
            calls[way] = make_call(channel.unary_unary(path), f"{prefix}{resource}")
        for number in range(rounds + 1):
            for way in sorted(calls, reverse=bool(number % 2)):
                rate = await measure_rate(calls[way], callers, seconds)
                if number:  # the first round is warm-up
                    rates[way].append(rate)
    return rates


def make_call(method: Any, name: str) -> Call:
    encoded = name.encode()
    request = bytes([10, len(encoded)]) + encoded
    return lambda: method(request)


async def measure_rate(call: Call, callers: int, seconds: float) -> float:
    done = 0
    started = time.perf_counter()

    async def ask() -> None:
        nonlocal done
        while time.perf_counter() - started < seconds:
            await call()
            done += 1

    await asyncio.gather(*(ask() for _ in range(callers)))
    return done / (time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(main())
