"""Call rate of our server relative to a bare grpc.aio server.

Both serve the same function on the same event loop with the same malloc settings, in separate
processes, and a client in a third process calls them alternately. Absolute figures of a shared
computer mean little; ratios of adjacent measurements do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cogwork.wire.table.handlers import Method

SERVICE = "cogwork.bench.Bench"
LARGE = 1_000_000
CASES = (("small", 1), ("small", 32), ("large", 1), ("large", 32))
WAYS = ("public", "in process", "bypass")
"""The routes: the public port with a front process, the public port on the server's event loop, and
the gRPC-only port."""
AIMS = {
    ("small", 1): (0.90, 0.80, 0.90),
    ("small", 32): (0.95, 0.80, 0.90),
    ("large", 1): (0.75, 0.75, 0.90),
    ("large", 32): (0.75, 0.60, 0.90),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--seconds", type=float, default=0.5, help="duration of each case in each round"
    )
    parser.add_argument("--role", choices=("bare", "ours", "client"), help=argparse.SUPPRESS)
    parser.add_argument("--targets", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    match arguments.role:
        case "bare":
            return run_on_loop(run_bare_server())
        case "ours":
            return run_on_loop(run_our_server())
        case "client":
            targets = json.loads(arguments.targets)
            return run_on_loop(run_client(targets, arguments.rounds, arguments.seconds))
    with ExitStack() as stack:
        bare = stack.enter_context(start_process(__file__, "bare"))
        ours = stack.enter_context(start_process(__file__, "ours"))
        memory = ours.pop("front_memory")
        targets = {"bare": bare["grpc"], **ours}
        words = ["--rounds", str(arguments.rounds), "--seconds", str(arguments.seconds)]
        report = subprocess.run(
            [*_own_command("client"), *words, "--targets", json.dumps(targets)],
            check=True,
            capture_output=True,
            text=True,
        )
    print_report(json.loads(report.stdout))
    print(f"memory of the front process: {memory}")
    return 0


def print_report(rates: dict[str, dict[str, list[float]]]) -> None:
    print(f"{'case':12} {'bare/s':>8}", *(f"{way:>11} {'aim':>5}" for way in WAYS))
    for kind, at_once in CASES:
        case = rates[f"{kind} {at_once}"]
        shown = [
            f"{_median_ratio(case[way], case['bare']):11.2f} {aim:5.2f}"
            for way, aim in zip(WAYS, AIMS[kind, at_once], strict=True)
        ]
        print(f"{kind:>6} {at_once:>5} {statistics.median(case['bare']):8.0f}", *shown)


def _median_ratio(ours: list[float], bare: list[float]) -> float:
    return statistics.median(mine / theirs for mine, theirs in zip(ours, bare, strict=True))


async def run_client(targets: dict[str, str], rounds: int, seconds: float) -> int:
    import grpc.aio

    options = (("grpc.max_receive_message_length", -1),)
    channels = {
        name: grpc.aio.insecure_channel(address, options) for name, address in targets.items()
    }
    rates: dict[str, dict[str, list[float]]] = {
        f"{kind} {at_once}": {name: [] for name in targets} for kind, at_once in CASES
    }
    for number in range(rounds + 1):
        for kind, at_once in CASES:
            # Rotate the order, so that no server always runs first.
            for name in sorted(targets, reverse=bool(number % 2)):
                rate = await _measure_rate(channels[name], kind, at_once, seconds)
                if number:  # the first round is warm-up
                    rates[f"{kind} {at_once}"][name].append(rate)
    for channel in channels.values():
        await channel.close()
    print(json.dumps(rates))
    return 0


async def _measure_rate(channel: Any, kind: str, at_once: int, seconds: float) -> float:
    from google.protobuf.wrappers_pb2 import BytesValue, StringValue

    reply = BytesValue if kind == "large" else StringValue
    call = channel.unary_unary(
        f"/{SERVICE}/{kind.capitalize()}",
        request_serializer=StringValue.SerializeToString,
        response_deserializer=reply.FromString,
    )
    count = 0
    end = time.perf_counter() + seconds

    async def ask() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await call(StringValue(value="belt"))
            count += 1

    started = time.perf_counter()
    await asyncio.gather(*(ask() for _ in range(at_once)))
    return count / (time.perf_counter() - started)


def make_handlers() -> dict[str, Callable[[Any, Any], Coroutine[Any, Any, Any]]]:
    from google.protobuf.wrappers_pb2 import BytesValue, StringValue

    picture = os.urandom(LARGE)

    async def small(request: Any, _: Any) -> Any:
        return StringValue(value=request.value)

    async def large(_: Any, __: Any) -> Any:
        return BytesValue(value=picture)

    return {"Small": small, "Large": large}


def make_bare_server() -> Any:
    """Return a bare grpc.aio server that is neither started nor listening."""
    import grpc
    import grpc.aio
    from google.protobuf.wrappers_pb2 import StringValue

    from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
        name: grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=StringValue.FromString,
            response_serializer=lambda reply: reply.SerializeToString(),
        )
        for name, answer in make_handlers().items()
    }
    server = grpc.aio.server(options=GRPC_OPTIONS)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    return server


def make_methods() -> list[Method]:
    """Return the same functions as methods of a handler table."""
    from google.protobuf.wrappers_pb2 import StringValue
    from grpclib.const import Cardinality

    from cogwork.wire.table.handlers import Method

    def method(name: str, answer: Any) -> Method:
        async def handle(stream: Any) -> None:
            await stream.send_message(await answer(await stream.recv_message(), None))

        return Method(
            f"/{SERVICE}/{name}", Cardinality.UNARY_UNARY, handle, StringValue, StringValue
        )

    return [method(name, answer) for name, answer in make_handlers().items()]


async def run_bare_server() -> int:
    server = make_bare_server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await wait_for_stop({"grpc": f"127.0.0.1:{port}"})
    await server.stop(None)
    return 0


async def run_our_server() -> int:
    import psutil

    from cogwork.core.clock import SystemClock
    from cogwork.front.peer_name import parse_socket_name
    from cogwork.graph.provider import Providers
    from cogwork.robot.handler_table import build_handler_table
    from cogwork.robot.machine import Machine
    from cogwork.serving.front import FrontProcess, InProcessFront, ServerSockets
    from cogwork.serving.public_port import PublicPort
    from cogwork.wire.transports.grpc import grpc_server

    clock = SystemClock()
    table = build_handler_table(Machine(Providers(), clock), clock, print)

    table.add(SERVICE, make_methods)
    with tempfile.TemporaryDirectory() as directory:
        sockets = ServerSockets(Path(directory) / "grpc", Path(directory) / "http")
        server = grpc_server(table, parse_socket_name)
        server.add_insecure_port(f"unix:{sockets.grpc}")
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        process, on_loop = FrontProcess(lambda *_: None), InProcessFront(lambda *_: None)
        addresses = {"bypass": f"127.0.0.1:{port}"}
        ports = []
        for way, front in (("public", process), ("in process", on_loop)):
            front.use_sockets(sockets)
            ports.append(PublicPort(front))
            await ports[-1].listen("127.0.0.1", 0)
            addresses[way] = "{}:{}".format(*ports[-1].addresses[0])
        await asyncio.sleep(1.0)  # wait for the front process to start
        memory = psutil.Process(process.process_id).memory_full_info()
        addresses["front_memory"] = (
            f"{memory.uss / 1e6:.1f} MB of its own, {memory.rss / 1e6:.1f} MB resident"
        )
        await wait_for_stop(addresses)
        await server.stop(None)
        for each in ports:
            await each.aclose()
    return 0


async def wait_for_stop(addresses: dict[str, str]) -> None:
    print(json.dumps(addresses), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def run_on_loop(work: Coroutine[Any, Any, int]) -> int:
    from cogwork.serving import process

    process.prepare(os.environ)
    return process.run(work)


def _own_command(role: str) -> list[str]:
    return [sys.executable, __file__, "--role", role]


@contextmanager
def start_process(program: str, role: str, words: Sequence[str] = ()) -> Iterator[dict[str, str]]:
    """Start a server, and yield the addresses that it prints."""
    # Start it as a module, so that it finds the other modules of this folder.
    name = f"benchmarks.{Path(program).stem}"
    with subprocess.Popen(
        [sys.executable, "-m", name, "--role", role, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        yield json.loads(child.stdout.readline())
        child.stdin.close()


if __name__ == "__main__":
    sys.exit(main())
