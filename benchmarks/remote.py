"""Cost of calling a resource through one and two remotes, relative to bare proxies.

One and eight callers make small calls and fetch a picture of 1 MB, interleaved over these routes:
directly, through one and two machines that have the next machine as a remote, and through one and
two proxies on grpc.aio that only forward bytes. The proxies show the cost of the hops themselves.
The machines are called at their public port, which a front process relays, and at their gRPC-only
port.

    python -m benchmarks.remote [--rounds 15] [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import grpc.aio
from benchmarks.parts.interleaved_rates import Call, Rates, cost_ratio, measure_interleaved
from benchmarks.parts.minimal_proxy import OPTIONS, running_proxy
from benchmarks.parts.server_process import free_port, running_server

AIM = 1.25
MAX_RATIO = 1.6
"""The ratio above which the performance has regressed."""
HOPS = (1, 2)
PORTS = ("public", "grpc")
CALLERS = (1, 8)
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
            # Serve the same picture each time, without compression.
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
    """Yield the address and the prefix of resource names for each route."""
    with contextlib.ExitStack() as stack:
        direct, _ = stack.enter_context(running_server(LINE, SENSOR))
        ways = {"direct": (direct, "")}
        machines, prefix, proxy = dict.fromkeys(PORTS, direct), "", direct
        for hops in HOPS:
            prefix = f"next:{prefix}"
            for port in PORTS:
                machines[port] = stack.enter_context(running_machine(machines[port], prefix, port))
                ways[f"{port} {hops}"] = (machines[port], prefix)
            proxy = stack.enter_context(running_proxy(proxy))
            ways[f"proxy {hops}"] = (proxy, "")
        yield ways


@contextlib.contextmanager
def running_machine(remote: str, prefix: str, port: str) -> Iterator[str]:
    """Run a machine with a remote, and yield its address."""
    grpc_address = f"127.0.0.1:{free_port()}"
    config = {
        "network": {"bind_address": "127.0.0.1:0", "grpc_address": grpc_address},
        "remotes": [{"name": "next", "address": remote, "insecure": True}],
    }
    with running_server(config, f"{prefix}{SENSOR}") as (public, _):
        yield public if port == "public" else grpc_address


async def measure(ways: dict[str, tuple[str, str]], rounds: int, seconds: float) -> bool:
    worst = 0.0
    print("time through remotes / through as many proxies, at the public and the gRPC-only port")
    print(f"{'':8} callers  direct/s  1 public  1 grpc  2 public  2 grpc")
    for kind, (resource, path) in METHODS.items():
        for callers in CALLERS:
            rates = await measure_routes(ways, resource, path, callers, rounds, seconds)
            ratios = [
                cost_ratio(rates[f"proxy {hops}"], rates[f"{port} {hops}"])
                for hops in HOPS
                for port in PORTS
            ]
            worst = max(worst, *ratios)
            direct = statistics.median(rates["direct"])
            columns = " ".join(f"{ratio:8.2f}" for ratio in ratios)
            print(f"{kind:8} {callers:7} {direct:9.0f} {columns}")
    print(f"at most {worst:.2f}; the aim is {AIM}, the limit {MAX_RATIO}", flush=True)
    return worst <= MAX_RATIO


async def measure_routes(
    ways: dict[str, tuple[str, str]],
    resource: str,
    path: str,
    callers: int,
    rounds: int,
    seconds: float,
) -> Rates:
    async with contextlib.AsyncExitStack() as stack:
        calls: dict[str, Call] = {}
        for way, (address, prefix) in ways.items():
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(address, OPTIONS))
            calls[way] = make_call(channel.unary_unary(path), f"{prefix}{resource}")
        return await measure_interleaved(calls, callers, rounds, seconds)


def make_call(method: Any, name: str) -> Call:
    encoded = name.encode()
    request = bytes([10, len(encoded)]) + encoded

    async def call() -> float:
        await method(request)
        return 1.0

    return call


if __name__ == "__main__":
    sys.exit(main())
