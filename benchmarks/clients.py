"""Many clients of one server: do they all get answers, does memory stay, is one kept from others?

`steady`: 64 clients, each with its own connection, make small calls for a while.
`greedy`: one client keeps 256 calls in flight on a method that sleeps 50 ms, while others call that
same resource one at a time and ask for the names of all resources, as every client does to see
whether its machine lives. What they get is divided by what they got before it came.

    python -m benchmarks.clients [--seconds 20]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any, NamedTuple

import psutil
from benchmarks.parts.executable import server

CLIENTS = 64
PROCESSES = 4
GREEDY = 256
OTHERS = 4
SLEEP = 0.05
MOST_MEDIAN = 1.5
MOST_NAMES = 5.0
MOST_GROWTH = 0.05

CONFIG = {
    "network": {"bind_address": "localhost:0"},
    "components": [
        {"name": "quick", "api": "rdk:component:sensor", "model": "fake"},
        {
            "name": "slow",
            "api": "rdk:component:sensor",
            "model": "fake",
            "attributes": {"faults": [{"from_call": 1, "delay": "50ms"}]},
        },
    ],
}


class Tally(NamedTuple):
    seconds: list[float]
    errors: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of the steady part")
    arguments = parser.parse_args()
    with server(CONFIG, "slow") as (address, process), processes() as pool:
        kept = steady(address, process, pool, arguments.seconds)
        fair = greedy(address, pool, max(3.0, arguments.seconds / 6))
    return 0 if kept and fair else 1


def steady(
    address: str, process: psutil.Process, pool: ProcessPoolExecutor, seconds: float
) -> bool:
    _ask(pool, address, "quick", CLIENTS, min(5.0, seconds))  # warms up
    before = process.memory_info().rss
    tallies = _ask(pool, address, "quick", CLIENTS, seconds)
    after = process.memory_info().rss
    took = sorted(second for tally in tallies for second in tally.seconds)
    errors = [error for tally in tallies for error in tally.errors]
    growth = after / before - 1
    print(
        f"steady: {CLIENTS} clients, {seconds:g} s: {len(took)} calls "
        f"({len(took) / seconds:.0f}/s), "
        f"{len(errors)} errors, median {_ms(took, 0.5)}, p99 {_ms(took, 0.99)}, "
        f"memory {before >> 20} -> {after >> 20} MiB ({growth:+.1%})"
    )
    for error in sorted(set(errors))[:5]:
        print(f"  {error}")
    return not errors and growth <= MOST_GROWTH


def greedy(address: str, pool: ProcessPoolExecutor, seconds: float) -> bool:
    alone, names_alone = _others(pool, address, seconds)
    hog = pool.submit(_run, address, "slow", 1, GREEDY, seconds + 2)
    time.sleep(1.0)
    beside, names_beside = _others(pool, address, seconds)
    hogged = hog.result()
    median = statistics.median(beside) / statistics.median(alone)
    names = at(names_beside, 0.99) / at(names_alone, 0.99)
    rate = len(hogged.seconds) / (seconds + 2)
    print(
        f"greedy: {GREEDY} in flight ({rate:.0f}/s, {len(hogged.errors)} refused); the others' "
        f"median {_ms(alone, 0.5)} -> {_ms(beside, 0.5)} ({median:.2f}x, at most {MOST_MEDIAN}x), "
        f"names p99 {_ms(names_alone, 0.99)} -> {_ms(names_beside, 0.99)} "
        f"({names:.2f}x, at most {MOST_NAMES}x)"
    )
    return median <= MOST_MEDIAN and names <= MOST_NAMES


def _others(
    pool: ProcessPoolExecutor, address: str, seconds: float
) -> tuple[list[float], list[float]]:
    calls = pool.submit(_run, address, "slow", OTHERS, 1, seconds)
    names = pool.submit(_run, address, None, 1, 1, seconds)
    tallies = calls.result(), names.result()
    for tally in tallies:
        if tally.errors:
            raise RuntimeError(f"the others were refused: {tally.errors[0]}")
    return sorted(tallies[0].seconds), sorted(tallies[1].seconds)


def _ask(
    pool: ProcessPoolExecutor, address: str, name: str, clients: int, seconds: float
) -> list[Tally]:
    each = clients // PROCESSES
    asked = [pool.submit(_run, address, name, each, 1, seconds) for _ in range(PROCESSES)]
    return [work.result() for work in asked]


def _run(address: str, name: str | None, clients: int, in_flight: int, seconds: float) -> Tally:
    """In a process of its own. No name: ask for the names of all resources."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_call(address, name, clients, in_flight, seconds))


async def _call(
    address: str, name: str | None, clients: int, in_flight: int, seconds: float
) -> Tally:
    import grpc
    import grpc.aio

    tally = Tally([], [])
    path, request = small_request(name)

    async def ask(call: Any, end: float) -> None:
        while (started := time.perf_counter()) < end:
            try:
                await call(request, timeout=10)
                tally.seconds.append(time.perf_counter() - started)
            except grpc.aio.AioRpcError as error:
                tally.errors.append(f"{error.code().name}: {error.details()}")

    async with contextlib.AsyncExitStack() as stack:
        calls: list[Any] = []
        for number in range(clients):
            # Channels with the same options share a connection; a client has its own.
            options = (("grpc.use_local_subchannel_pool", 1), ("client", number))
            channel = grpc.aio.insecure_channel(address, options)
            calls.append((await stack.enter_async_context(channel)).unary_unary(path))
        end = time.perf_counter() + seconds
        await asyncio.gather(*(ask(call, end) for call in calls for _ in range(in_flight)))
    return tally


def small_request(name: str | None) -> tuple[str, bytes]:
    if name is None:
        return "/viam.robot.v1.RobotService/ResourceNames", b""
    data = name.encode()
    return "/viam.component.sensor.v1.SensorService/GetReadings", bytes([10, len(data)]) + data


def at(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _ms(ordered: list[float], share: float) -> str:
    return f"{1000 * at(ordered, share):.1f} ms"


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))


if __name__ == "__main__":
    sys.exit(main())
