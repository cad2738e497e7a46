"""Cost of logging: per record, and for calls during 10,000 messages per second.

`records`: a logger with our pipeline and a console on the null device, against a bare logger with a
formatter and a StreamHandler on the same. `calls`: the median latency of a small call to a running
server, before and while a client sends it 10,000 messages per second for one logger.

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

from benchmarks.clients import CONFIG, make_process_pool, percentile, small_request
from benchmarks.parts.server_process import running_server

from cogwork.core.clock import SystemClock
from cogwork.logs.console import descriptor_writer
from cogwork.logs.entry import as_text
from cogwork.logs.pipeline import Pipeline
from cogwork.logs.sink import Sink

MAX_KEPT_RATIO = 1.5
MAX_SUPPRESSED_RATIO = 1.0
MAX_MEDIAN_RATIO = 1.3
MAX_GROWTH = 0.05
RECORDS = 5000
BATCH = 100
MESSAGES_PER_SECOND = 10_000
FORMAT = "%(asctime)s\t%(levelname)s\t%(name)s\t%(filename)s:%(lineno)d\t%(message)s"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="duration of each half of the calls"
    )
    seconds = parser.parse_args().seconds
    return 0 if measure_records() and measure_calls(seconds) else 1


def measure_records(rounds: int = 15) -> bool:
    null = os.open(os.devnull, os.O_WRONLY)
    sink = Sink("null", descriptor_writer(null))
    pipeline = Pipeline(SystemClock(), [lambda entry: sink.put(f"{as_text(entry)}\n".encode())])
    ours = _make_logger("ours", pipeline)
    with open(os.devnull, "w") as stream:  # noqa: PTH123
        handler = logging.StreamHandler(stream)
        handler.setFormatter(logging.Formatter(FORMAT))
        bare = _make_logger("bare", handler)
        kept, suppressed = [], []
        for number in range(rounds):
            first = number * RECORDS
            theirs = _time_record(lambda i: bare.info("message %d", i), first)
            kept.append(_time_record(lambda i: ours.info("message %d", i), first) / theirs)
            theirs = _time_record(lambda _: bare.info("again"), 0)
            suppressed.append(_time_record(lambda _: ours.info("again"), 0) / theirs)
    sink.close()
    os.close(null)
    each = statistics.median(kept), statistics.median(suppressed)
    print(
        f"records: kept {each[0]:.2f}x a bare logger's (at most {MAX_KEPT_RATIO}), suppressed "
        f"{each[1]:.2f}x (at most {MAX_SUPPRESSED_RATIO})"
    )
    return each[0] <= MAX_KEPT_RATIO and each[1] <= MAX_SUPPRESSED_RATIO


def measure_calls(seconds: float) -> bool:
    with running_server(CONFIG, "slow") as (address, process), make_process_pool() as pool:
        alone: Future[list[float]] = pool.submit(_run_small_calls, address, seconds)
        before = alone.result()
        offering = pool.submit(_flood_log, address, seconds + 2)
        time.sleep(1)
        memory = process.memory_info().rss
        beside = pool.submit(_run_small_calls, address, seconds).result()
        grown = process.memory_info().rss / memory - 1
        offered = offering.result()
    ratio = statistics.median(beside) / statistics.median(before)
    print(
        f"calls: {offered:.0f} messages per second to one logger; median of a small call "
        f"{1000 * statistics.median(before):.2f} -> {1000 * statistics.median(beside):.2f} ms "
        f"({ratio:.2f}x, at most {MAX_MEDIAN_RATIO}x), p99 "
        f"{1000 * percentile(sorted(beside), 0.99):.1f} ms, "
        f"memory {grown:+.1%}"
    )
    return ratio <= MAX_MEDIAN_RATIO and grown <= MAX_GROWTH


def _make_logger(name: str, handler: logging.Handler) -> logging.Logger:
    logger = logging.getLogger(name)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    return logger


def _time_record(log: Callable[[int], None], first: int) -> float:
    started = time.thread_time()
    for number in range(first, first + RECORDS):
        log(number)
    return 1e6 * (time.thread_time() - started) / RECORDS


def _run_small_calls(address: str, seconds: float) -> list[float]:
    took: list[float] = _run_with_channel(
        lambda channel: _call_repeatedly(channel, seconds), address
    )
    return took


def _flood_log(address: str, seconds: float) -> float:
    """Return the number of messages accepted per second."""
    rate: float = _run_with_channel(lambda channel: _send_logs(channel, seconds), address)
    return rate


def _run_with_channel(work: Any, address: str) -> Any:
    import grpc.aio
    import uvloop

    async def run() -> Any:
        async with grpc.aio.insecure_channel(address) as channel:
            return await work(channel)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


async def _call_repeatedly(channel: Any, seconds: float) -> list[float]:
    path, request = small_request("quick")
    call = channel.unary_unary(path)
    took = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        await call(request, timeout=10)
        took.append(time.perf_counter() - started)
        await asyncio.sleep(0.002)
    return took


async def _send_logs(channel: Any, seconds: float) -> float:
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
        await asyncio.sleep(max(0.0, sent / MESSAGES_PER_SECOND - elapsed))
    return sent / (time.perf_counter() - started)


if __name__ == "__main__":
    sys.exit(main())
