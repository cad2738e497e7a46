"""Many clients of one server: error rate, memory growth and fairness.

`steady`: 64 clients, each with its own connection, make small calls for a while.
`greedy`: one client keeps 256 calls in flight on a method that sleeps 50 ms, while others call that
same resource one at a time and list the resource names, as every client does to check that its
machine is alive. The benchmark reports the others' latency with and without the greedy client.

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
from benchmarks.parts.server_process import running_server

CLIENTS = 64
PROCESSES = 4
GREEDY_CALLS = 256
OTHERS = 4
SLEEP = 0.05
MAX_MEDIAN_RATIO = 1.5
MAX_NAMES_RATIO = 5.0
MAX_GROWTH = 0.05

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


class CallTimes(NamedTuple):
    seconds: list[float]
    errors: list[str]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="duration of the steady part")
    arguments = parser.parse_args()
    with running_server(CONFIG, "slow") as (address, process), make_process_pool() as pool:
        kept = measure_steady(address, process, pool, arguments.seconds)
        fair = measure_greedy(address, pool, max(3.0, arguments.seconds / 6))
    return 0 if kept and fair else 1


def measure_steady(
    address: str, process: psutil.Process, pool: ProcessPoolExecutor, seconds: float
) -> bool:
    _run_clients(pool, address, "quick", CLIENTS, min(5.0, seconds))  # warm-up
    before = process.memory_info().rss
    tallies = _run_clients(pool, address, "quick", CLIENTS, seconds)
    after = process.memory_info().rss
    took = sorted(second for tally in tallies for second in tally.seconds)
    errors = [error for tally in tallies for error in tally.errors]
    growth = after / before - 1
    print(
        f"steady: {CLIENTS} clients, {seconds:g} s: {len(took)} calls "
        f"({len(took) / seconds:.0f}/s), "
        f"{len(errors)} errors, median {_format_ms(took, 0.5)}, p99 {_format_ms(took, 0.99)}, "
        f"memory {before >> 20} -> {after >> 20} MiB ({growth:+.1%})"
    )
    for error in sorted(set(errors))[:5]:
        print(f"  {error}")
    return not errors and growth <= MAX_GROWTH


def measure_greedy(address: str, pool: ProcessPoolExecutor, seconds: float) -> bool:
    alone, names_alone = _measure_others(pool, address, seconds)
    greedy_client = pool.submit(_run_client, address, "slow", 1, GREEDY_CALLS, seconds + 2)
    time.sleep(1.0)
    beside, names_beside = _measure_others(pool, address, seconds)
    greedy = greedy_client.result()
    median = statistics.median(beside) / statistics.median(alone)
    names = percentile(names_beside, 0.99) / percentile(names_alone, 0.99)
    rate = len(greedy.seconds) / (seconds + 2)
    print(
        f"greedy: {GREEDY_CALLS} in flight ({rate:.0f}/s, {len(greedy.errors)} refused); other "
        "clients' "
        f"median {_format_ms(alone, 0.5)} -> {_format_ms(beside, 0.5)} ({median:.2f}x, at most "
        f"{MAX_MEDIAN_RATIO}x), "
        f"names p99 {_format_ms(names_alone, 0.99)} -> {_format_ms(names_beside, 0.99)} "
        f"({names:.2f}x, at most {MAX_NAMES_RATIO}x)"
    )
    return median <= MAX_MEDIAN_RATIO and names <= MAX_NAMES_RATIO


def _measure_others(
    pool: ProcessPoolExecutor, address: str, seconds: float
) -> tuple[list[float], list[float]]:
    calls = pool.submit(_run_client, address, "slow", OTHERS, 1, seconds)
    names = pool.submit(_run_client, address, None, 1, 1, seconds)
    tallies = calls.result(), names.result()
    for tally in tallies:
        if tally.errors:
            raise RuntimeError(f"calls of other clients were refused: {tally.errors[0]}")
    return sorted(tallies[0].seconds), sorted(tallies[1].seconds)


def _run_clients(
    pool: ProcessPoolExecutor, address: str, name: str, clients: int, seconds: float
) -> list[CallTimes]:
    each = clients // PROCESSES
    asked = [pool.submit(_run_client, address, name, each, 1, seconds) for _ in range(PROCESSES)]
    return [work.result() for work in asked]


def _run_client(
    address: str, name: str | None, clients: int, in_flight: int, seconds: float
) -> CallTimes:
    """Run a client in its own process. Without a name, list the resource names."""
    import uvloop

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_call_repeatedly(address, name, clients, in_flight, seconds))


async def _call_repeatedly(
    address: str, name: str | None, clients: int, in_flight: int, seconds: float
) -> CallTimes:
    import grpc
    import grpc.aio

    tally = CallTimes([], [])
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
            # Channels with the same options share a connection, so give each client its own option.
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


def percentile(ordered: list[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _format_ms(ordered: list[float], share: float) -> str:
    return f"{1000 * percentile(ordered, share):.1f} ms"


def make_process_pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(PROCESSES, multiprocessing.get_context("spawn"))


if __name__ == "__main__":
    sys.exit(main())
