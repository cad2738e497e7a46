"""Overhead of the ML model service over the bare engine.

A convolutional network of about the size of a small YOLO runs on 320x320 and 640x640 images,
float and uint8, with one thread per run:

- in process: the service's `infer` against `session.run`, interleaved; the median difference.
- over gRPC: the same through a real server, against the bare run plus twice a bare grpc.aio echo of
  the same size.
- four concurrent callers: throughput of the service relative to four threads with the bare engine.

    python -m benchmarks.infer [--rounds 30]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmarks.parts.detector_model import make_network
from benchmarks.parts.server_process import running_server

SIZES = (320, 640)
DTYPES = ("float32", "uint8")
MIN_ALLOWED_OVERHEAD = 0.0005
ALLOWED_OVERHEAD_SHARE = 0.02
MIN_THROUGHPUT = 0.95
CALLERS = 4
PATH = "/viam.service.mlmodel.v1.MLModelService/Infer"


class Case(NamedTuple):
    size: int
    dtype: str
    file: str

    @property
    def name(self) -> str:
        return f"{self.dtype}_{self.size}"

    def make_input(self) -> Any:
        values = np.random.default_rng(1).random((1, 3, self.size, self.size))
        return (values * 255).astype(self.dtype) if self.dtype == "uint8" else values.astype("f4")


def main() -> int:
    os.environ["ORT_DISABLE_TELEMETRY"] = "1"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument(
        "--seconds", type=float, default=3.0, help="duration of each throughput measurement"
    )
    parser.add_argument("--echo", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    import uvloop

    if arguments.echo:
        return uvloop.run(_run_echo_server(arguments.echo))
    with tempfile.TemporaryDirectory() as directory:
        cases = [
            Case(size, dtype, make_network(Path(directory) / f"{dtype}_{size}.onnx", size, dtype))
            for size in SIZES
            for dtype in DTYPES
        ]
        return uvloop.run(measure(cases, arguments.rounds, arguments.seconds))


async def measure(cases: list[Case], rounds: int, seconds: float) -> int:
    with running_server(build_config(cases), cases[-1].name) as (address, _):
        kept = [await _measure_case(case, address, rounds, seconds) for case in cases]
    return 0 if all(kept) else 1


def build_config(cases: list[Case]) -> dict[str, Any]:
    return {
        "network": {"bind_address": "localhost:0"},
        "services": [
            {
                "name": case.name,
                "api": "rdk:service:mlmodel",
                "model": "onnx_cpu",
                "attributes": {"model_path": case.file, "num_threads": 1},
            }
            for case in cases
        ],
    }


async def _measure_case(case: Case, address: str, rounds: int, seconds: float) -> bool:
    import grpc.aio

    from cogwork.resource.sdk import clean_import as sdk

    assert sdk.VERSION
    from cogwork.resource.messages.tensors import write_infer_reply, write_infer_request
    from cogwork.resource.sdk.mlmodel_client import FastMLModelClient
    from cogwork.wire.clients.channel import SdkChannel

    bare = _create_session(case.file)
    model = await _create_service(case)
    tensors = {"images": case.make_input()}
    outputs = await model.infer(tensors)
    request, reply = write_infer_request(case.name, tensors), write_infer_reply(outputs)
    options = [("grpc.max_receive_message_length", -1)]
    with _start_echo_server(len(reply)) as echo_address:
        async with (
            grpc.aio.insecure_channel(address, options) as channel,
            grpc.aio.insecure_channel(echo_address, options) as echo_channel,
        ):
            remote = FastMLModelClient(case.name, SdkChannel(channel), channel)
            echo: Any = echo_channel.unary_unary("/echo/Echo")
            same = await remote.infer(tensors)
            assert all(np.array_equal(same[key], outputs[key]) for key in outputs)

            async def run_bare() -> object:
                return bare.run(None, tensors)

            ways: dict[str, Callable[[], Awaitable[object]]] = {
                "bare": run_bare,
                "in process": lambda: model.infer(tensors),
                "over gRPC": lambda: remote.infer(tensors),
                "echo": lambda: echo(request),
            }
            times = await _measure_interleaved(ways, rounds)
    ratio = await _measure_throughput(model, bare, tensors, seconds)
    await model.close()
    return print_report(case, times, ratio)


def print_report(case: Case, times: dict[str, list[float]], ratio: float) -> bool:
    bare = statistics.median(times["bare"])
    added = _median_difference(times["in process"], times["bare"])
    allowed = max(MIN_ALLOWED_OVERHEAD, ALLOWED_OVERHEAD_SHARE * bare)
    over = _median_difference(times["over gRPC"], times["bare"])
    echo = 2 * statistics.median(times["echo"])
    print(
        f"{case.name:12} bare {bare * 1e3:6.2f} ms; in process {added * 1e3:+.2f} ms "
        f"(at most {allowed * 1e3:+.2f}); over gRPC {over * 1e3:+.2f} ms (at most "
        f"{echo * 1e3:+.2f}); {CALLERS} callers {ratio:.2f} of the bare rate "
        f"(at least {MIN_THROUGHPUT})",
        flush=True,
    )
    return added <= allowed and over <= echo and ratio >= MIN_THROUGHPUT


async def _measure_interleaved(
    ways: dict[str, Callable[[], Awaitable[object]]], rounds: int
) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 3):
        for name in sorted(ways, reverse=bool(number % 2)):
            start = time.perf_counter()
            await ways[name]()
            if number >= 3:  # the first rounds are warm-up
                times[name].append(time.perf_counter() - start)
    return times


def _median_difference(ours: list[float], bare: list[float]) -> float:
    return statistics.median(mine - theirs for mine, theirs in zip(ours, bare, strict=True))


async def _measure_throughput(model: Any, bare: Any, tensors: Any, seconds: float) -> float:
    ratios = []
    for _ in range(3):
        theirs = await asyncio.to_thread(_measure_bare_rate, bare, tensors, seconds / 3)
        ratios.append(await _measure_service_rate(model, tensors, seconds / 3) / theirs)
    return statistics.median(ratios)


async def _measure_service_rate(model: Any, tensors: Any, seconds: float) -> float:
    count, start = 0, time.perf_counter()

    async def ask() -> None:
        nonlocal count
        while time.perf_counter() - start < seconds:
            await model.infer(tensors)
            count += 1

    await asyncio.gather(*(ask() for _ in range(CALLERS)))
    return count / (time.perf_counter() - start)


def _measure_bare_rate(bare: Any, tensors: Any, seconds: float) -> float:
    counts, start = [0] * CALLERS, time.perf_counter()

    def ask(number: int) -> None:
        while time.perf_counter() - start < seconds:
            bare.run(None, tensors)
            counts[number] += 1

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - start)


async def _create_service(case: Case) -> Any:
    from cogwork.core.clock import SystemClock
    from cogwork.drivers.mlmodel.attributes import OnnxAttributes
    from cogwork.drivers.mlmodel.model_cache import ModelCache
    from cogwork.drivers.mlmodel.onnx import OnnxModel
    from cogwork.graph.name import Api, ResourceName

    name = ResourceName(Api.parse("rdk:service:mlmodel"), case.name)
    attributes = OnnxAttributes(model_path=case.file, num_threads=1)
    return await OnnxModel.new(name, attributes, {}, ModelCache(SystemClock()))


def _create_session(file: str) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


@contextmanager
def _start_echo_server(size: int) -> Iterator[str]:
    """Start a bare grpc.aio server in a separate process, whose replies have this size."""
    command = [sys.executable, "-m", "benchmarks.infer", "--echo", str(size)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as process:
        assert process.stdout is not None
        try:
            yield f"127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


async def _run_echo_server(size: int) -> int:
    import grpc
    import grpc.aio

    from cogwork.core.malloc import tune_malloc

    tune_malloc()
    reply = bytes(size)

    async def echo(_: bytes, __: object) -> bytes:
        return reply

    handler = grpc.method_handlers_generic_handler(
        "echo", {"Echo": grpc.unary_unary_rpc_method_handler(echo)}
    )
    running = grpc.aio.server(options=[("grpc.max_receive_message_length", -1)])
    running.add_generic_rpc_handlers((handler,))
    port = running.add_insecure_port("127.0.0.1:0")
    await running.start()
    print(port, flush=True)
    await running.wait_for_termination()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
