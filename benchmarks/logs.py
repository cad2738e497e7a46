"""What the log costs: a record beside a bare logger's, and calls beside ten thousand a second.

`records`: a logger with our pipeline and a console that leads to the null device, beside a bare
logger with a formatter and a StreamHandler to the same. `calls`: the median of a small call of a
running server, before and while a client offers it 10,000 messages a second for one logger.

    python -m benchmarks.logs [--seconds 10]
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from benchmarks.clients import CONFIG, at, processes, small_request
from benchmarks.parts.executable import server

from cogwork.core.clock import SystemClock
from cogwork.logs.console import descriptor_writer
from cogwork.logs.entry import as_text
from cogwork.logs.pipeline import Pipeline
from cogwork.logs.sink import Sink

MOST_KEPT = 1.5
MOST_SUPPRESSED = 1.0
MOST_MEDIAN = 1.3
MOST_GROWTH = 0.05
RECORDS = 5000
BATCH = 100
A_SECOND = 10_000
FORMAT = "%(asctime)s\t%(levelname)s\t%(name)s\t%(filename)s:%(lineno)d\t%(message)s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each half of the calls")
    seconds = parser.parse_args().seconds
    return 0 if records() and calls(seconds) else 1


def records(rounds: int = 15) -> bool:
    null = os.open(os.devnull, os.O_WRONLY)
    sink = Sink("null", descriptor_writer(null))
    pipeline = Pipeline(SystemClock(), [lambda entry: sink.put(f"{as_text(entry)}\n".encode())])
    ours = _logger("ours", pipeline)
    with open(os.devnull, "w") as stream:  # noqa: PTH123
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter(FORMAT))
        bare = _logger("bare", handler)
        kept, suppressed = [], []
        for number in range(rounds):
            first = number * RECORDS
            theirs = _microseconds(lambda i: bare.info("message %d", i), first)
            kept.append(_microseconds(lambda i: ours.info("message %d", i), first) / theirs)
            theirs = _microseconds(lambda _: bare.info("again"), 0)
            suppressed.append(_microseconds(lambda _: ours.info("again"), 0) / theirs)
    sink.close()
    os.close(null)
    each = statistics.median(kept), statistics.median(suppressed)
    print(
        f"records: kept {each[0]:.2f}x a bare logger's (at most {MOST_KEPT}), suppressed "
        f"{each[1]:.2f}x (at most {MOST_SUPPRESSED})"
    )
    return each[0] <= MOST_KEPT and each[1] <= MOST_SUPPRESSED


def calls(seconds: float) -> bool:
    with server(CONFIG, "slow") as (address, process), processes() as pool:
        alone: Future[list[float]] = pool.submit(_small_calls, address, seconds)
        before = alone.result()
        offering = pool.submit(_offer, address, seconds + 2)
        time.sleep(1)
        memory = process.memory_info().rss
        beside = pool.submit(_small_calls, address, seconds).result()
        grown = process.memory_info().rss / memory - 1
        offered = offering.result()
    ratio = statistics.median(beside) / statistics.median(before)
    print(
        f"calls: {offered:.0f} messages a second to one logger; median of a small call "
        f"{1000 * statistics.median(before):.2f} -> {1000 * statistics.median(beside):.2f} ms "
        f"({ratio:.2f}x, at most {MOST_MEDIAN}x), p99 {1000 * at(sorted(beside), 0.99):.1f} ms, "
        f"memory {grown:+.1%}"
    )
    return ratio <= MOST_MEDIAN and grown <= MOST_GROWTH


def _logger(name: str, handler: logging.Handler) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    return logger


def _microseconds(log: Callable[[int], None], first: int) -> float:
    started = time.thread_time()
    for number in range(first, first + RECORDS):
        log(number)
    return 1e6 * (time.thread_time() - started) / RECORDS


def _small_calls(address: str, seconds: float) -> list[float]:
    took: list[float] = _on_a_loop(lambda channel: _ask(channel, seconds), address)
    return took


def _offer(address: str, seconds: float) -> float:
    """How many were taken in a second."""
    rate: float = _on_a_loop(lambda channel: _log(channel, seconds), address)
    return rate


def _on_a_loop(work: Any, address: str) -> Any:
    import grpc.aio
    import uvloop

    async def run() -> Any:
        async with grpc.aio.insecure_channel(address) as channel:
            return await work(channel)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


async def _ask(channel: Any, seconds: float) -> list[float]:
    path, request = small_request("quick")
    call = channel.unary_unary(path)
    took = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        await call(request, timeout=10)
        took.append(time.perf_counter() - started)
        await asyncio.sleep(0.002)
    return took


async def _log(channel: Any, seconds: float) -> float:
    from viam.gen.common.v1.common_pb2 import LogEntry
    from viam.gen.robot.v1.robot_pb2 import LogRequest

    entry = LogEntry(level="info", logger_name="rdk.noisy", message="the belt slips")
    entry.time.GetCurrentTime()
    request = LogRequest(logs=[entry] * BATCH).SerializeToString()
    call = channel.unary_unary("/viam.robot.v1.RobotService/Log")
    started = time.perf_counter()
    sent = 0
    while (elapsed := time.perf_counter() - started) < seconds:
        await call(request, timeout=10)
        sent += BATCH
        await asyncio.sleep(max(0.0, sent / A_SECOND - elapsed))
    return sent / (time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(main())
