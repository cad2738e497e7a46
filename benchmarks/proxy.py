"""Cost of calling a module through our server, relative to calling the module directly.

A small call, a reply of 1 MB and a stream of 100 MB, by one and by eight callers, interleaved:
directly to the module's socket; through the public port; through the gRPC-only port; and through a
minimal grpc.aio proxy, which is the cost of the second hop itself. One module is written on
grpc.aio and replies at once, the other uses the SDK.

    python -m benchmarks.proxy [--rounds 15] [--quick]
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from benchmarks.parts.interleaved_rates import Call, Rates, cost_ratio, measure_interleaved
from benchmarks.parts.minimal_proxy import OPTIONS, running_proxy
from benchmarks.parts.server_process import free_port, running_server

MAX_RATIO = 2.6
CALLERS = (1, 8)
GENERIC = "viam.component.generic.v1.GenericService"
CAMERA = "viam.component.camera.v1.CameraService"
SLAM = "viam.service.slam.v1.SLAMService"
ROUTES = ("direct", "public", "grpc", "least")
MODULES = ("quick", "sdk")
PARTS_DIR = Path(__file__).parent / "parts"


class Case(NamedTuple):
    name: str
    callers: int
    resource: str

    def __str__(self) -> str:
        return f"{self.name:20} {self.callers:>7}"


def make_cases(megabytes: int) -> list[Case]:
    """Return the cases; eight callers share the stream size of one caller."""
    return [
        Case(name, callers, f"{resource}-{megabytes // callers}" if "map" in resource else resource)
        for name, resource in (
            ("small", "thing"),
            ("small, SDK's client", "thing"),
            ("1 MB", "camera"),
            ("stream of 64 KiB", "map-64"),
            ("stream of 1 MiB", "map-1024"),
        )
        for callers in CALLERS
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--seconds", type=float, default=0.2, help="duration of each case in each round"
    )
    parser.add_argument("--megabytes", type=int, default=100, help="size of a stream")
    parser.add_argument("--modules", default=",".join(MODULES))
    parser.add_argument("--case", default="", help="run only cases whose name starts with this")
    parser.add_argument("--quick", action="store_true", help="run a short version")
    parser.add_argument("--role", choices=("client",), help=argparse.SUPPRESS)
    parser.add_argument("--targets", default="{}", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.seconds, arguments.megabytes = 1, 0.1, 16
        arguments.modules = "quick"
    targets = json.loads(arguments.targets)
    if arguments.role == "client":
        return _run_on_loop(run_client(targets, arguments))
    kept = [measure(name, arguments) for name in arguments.modules.split(",")]
    # A short run cannot check the target, only that calls succeed.
    return 0 if all(kept) or arguments.quick else 1


def measure(module: str, arguments: argparse.Namespace) -> bool:
    asked = make_cases(arguments.megabytes)
    with tempfile.TemporaryDirectory() as directory:
        config = build_config(module, Path(directory), asked)
        with running_server(config, asked[-1].resource) as (public, process):
            direct = f"unix:{_find_module_socket(process)}"
            with running_proxy(direct, f"/{SLAM}/GetPointCloudMap") as least:
                ways = (direct, public, config["network"]["grpc_address"], least)
                report = _run_client_process(dict(zip(ROUTES, ways, strict=True)), arguments)
    return print_report(module, report)


def build_config(module: str, directory: Path, asked: list[Case]) -> dict[str, Any]:
    """Return a configuration with one module and a resource per case."""
    program = directory / module
    words = shlex.join([sys.executable, "-I", str(PARTS_DIR / f"{module}_module.py")])
    program.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    program.chmod(0o755)
    apis = {"thing": "component:generic", "camera": "component:camera"}
    resources = [
        {
            "name": name,
            "api": f"rdk:{apis.get(name, 'service:slam')}",
            "model": f"acme:bench:{module}",
            # Resources become ready in the order of their dependencies.
            "depends_on": before,
        }
        for name, before in _chain_dependencies(dict.fromkeys(case.resource for case in asked))
    ]
    return {
        "network": {
            "bind_address": "127.0.0.1:0",
            "grpc_address": f"127.0.0.1:{free_port()}",
        },
        "modules": [{"name": module, "executable_path": str(program)}],
        "components": [each for each in resources if ":component:" in each["api"]],
        "services": [each for each in resources if ":service:" in each["api"]],
    }


def _chain_dependencies(names: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    before: list[str] = []
    for name in names:
        yield name, before
        before = [name]


def print_report(module: str, report: dict[str, Rates]) -> bool:
    title = f"module on {'grpc.aio' if module == 'quick' else 'the SDK'}"
    print(f"{title:20} {'callers':>7} {'direct/s':>9} {'public':>7} {'grpc':>7} {'least':>7}")
    worst = 0.0
    for case, rates in report.items():
        public, grpc_only, least = (cost_ratio(rates["direct"], rates[way]) for way in ROUTES[1:])
        worst = max(worst, public, grpc_only)
        direct = statistics.median(rates["direct"])
        print(f"{case} {direct:9.0f} {public:7.2f} {grpc_only:7.2f} {least:7.2f}")
    print(f"at most {worst:.2f}; the target is {MAX_RATIO}", flush=True)
    return worst <= MAX_RATIO


async def run_client(targets: dict[str, str], arguments: argparse.Namespace) -> int:
    """Print rates: calls, or megabytes of a stream, per second."""
    report: dict[str, Rates] = {}
    for case in make_cases(arguments.megabytes):
        if case.name.startswith(arguments.case):
            async with AsyncExitStack() as stack:
                ways = {
                    way: await stack.enter_async_context(_open_caller(case, address))
                    for way, address in targets.items()
                }
                report[str(case)] = await measure_interleaved(
                    ways, case.callers, arguments.rounds, arguments.seconds
                )
    print(json.dumps(report))
    return 0


@asynccontextmanager
async def _open_caller(case: Case, address: str) -> AsyncIterator[Call]:
    if case.name.endswith("client"):
        async with _open_sdk_caller(case, address) as call:
            yield call
        return
    import grpc.aio

    # Each route has its own connection.
    async with grpc.aio.insecure_channel(address, OPTIONS) as channel:
        name = case.resource.encode()
        request = bytes([10, len(name)]) + name
        if case.resource.startswith("map"):
            yield _make_stream_call(channel.unary_stream(f"/{SLAM}/GetPointCloudMap"), request)
        elif case.resource == "camera":
            yield _make_unary_call(channel.unary_unary(f"/{CAMERA}/GetImages"), request)
        else:
            yield _make_unary_call(channel.unary_unary(f"/{GENERIC}/DoCommand"), request)


@asynccontextmanager
async def _open_sdk_caller(case: Case, address: str) -> AsyncIterator[Call]:
    from grpclib.client import Channel
    from viam.components.generic.client import GenericClient

    host, _, port = address.rpartition(":")
    async with Channel(path=port) if host == "unix" else Channel(host, int(port)) as channel:
        thing = GenericClient(case.resource, channel)

        async def call() -> float:
            await thing.do_command({})
            return 1.0

        yield call


def _make_unary_call(method: Any, request: bytes) -> Call:
    async def call() -> float:
        await method(request)
        return 1.0

    return call


def _make_stream_call(method: Any, request: bytes) -> Call:
    async def call() -> float:
        return sum([len(piece) async for piece in method(request)]) / 1e6

    return call


def _find_module_socket(server: psutil.Process) -> str:
    """Return the module's socket, which is its first command-line argument."""
    words = [word for child in server.children(recursive=True) for word in child.cmdline()]
    return next(word for word in words if word.endswith(".sock"))


def _run_client_process(targets: dict[str, str], arguments: argparse.Namespace) -> dict[str, Rates]:
    words = ("rounds", "seconds", "megabytes", "case")
    options = [f"--{word}={getattr(arguments, word)}" for word in words]
    done = subprocess.run(
        [*_own_command(targets), *options], check=True, stdout=subprocess.PIPE, text=True
    )
    report: dict[str, Rates] = json.loads(done.stdout)
    return report


def _own_command(targets: dict[str, str]) -> list[str]:
    module = [sys.executable, "-m", "benchmarks.proxy"]
    return [*module, "--role", "client", "--targets", json.dumps(targets)]


def _run_on_loop(work: Coroutine[Any, Any, int]) -> int:
    from cogwork.serving import process

    process.prepare(os.environ)
    return process.run(work)


if __name__ == "__main__":
    sys.exit(main())
