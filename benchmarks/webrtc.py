"""Calls over WebRTC relative to a bare pair of data channels, and their cost for other clients.

The bare server is an aiortc peer that answers the same frames in its own process, without a handler
table and without a socket to another process. A client in a third process calls both alternately.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

from benchmarks.rpc import (
    LARGE,
    SERVICE,
    make_methods,
    run_on_loop,
    start_process,
    wait_for_stop,
)

CASES = (("small", 1), ("small", 32), ("large", 1), ("large", 32))
AIM = 0.8
BUSY_AIM = 1.5
"""Maximum latency of gRPC calls during a transfer, relative to the latency without a transfer."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="duration of each measurement")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--targets", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    targets = json.loads(arguments.targets or "{}")
    match arguments.role:
        case "bare":
            return run_on_loop(run_bare_server())
        case "ours":
            return run_on_loop(run_our_server())
        case "client":
            return run_on_loop(run_client(targets, arguments.rounds, arguments.seconds))
        case "puller":
            return run_on_loop(pull(targets["ours"]))
    with ExitStack() as stack:
        addresses = {
            **stack.enter_context(start_process(__file__, "bare")),
            **stack.enter_context(start_process(__file__, "ours")),
        }
        report = subprocess.run(
            [
                *own_command("client"),
                *("--rounds", str(arguments.rounds), "--seconds", str(arguments.seconds)),
                *("--targets", json.dumps(addresses)),
            ],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
        )
    print_report(json.loads(report.stdout.splitlines()[-1]))
    return 0


def own_command(role: str) -> list[str]:
    return [sys.executable, "-m", "benchmarks.webrtc", "--role", role]


def print_report(found: dict[str, Any]) -> None:
    print(f"{'case':12} {'bare/s':>8} {'ours/bare':>10} {'aim':>5} {'gRPC/s':>8}")
    for kind, at_once in CASES:
        rates = found["rates"][f"{kind} {at_once}"]
        pairs = zip(rates["ours"], rates["bare"], strict=True)
        ratio = statistics.median(ours / bare for ours, bare in pairs)
        bare, grpc = statistics.median(rates["bare"]), statistics.median(rates["gRPC"])
        print(f"{kind:>6} {at_once:>5} {bare:8.0f} {ratio:10.2f} {AIM:5.1f} {grpc:8.0f}")
    print("small gRPC calls, one at a time, while another client pulls 1 MB replies over WebRTC:")
    for name, at in (("p50", 0.5), ("p99", 0.99)):
        idle, busy = (quantile(found["latency"][each], at) for each in ("idle", "busy"))
        print(
            f"  {name} {idle * 1e3:.2f} ms alone, {busy * 1e3:.2f} ms during it: {busy / idle:.2f} "
            f"(aim {BUSY_AIM})"
        )
    print(f"  the transfer: {found['pulled']:.1f} MB/s")


def quantile(values: list[float], at: float) -> float:
    return sorted(values)[int(at * (len(values) - 1))]


async def run_client(targets: dict[str, str], rounds: int, seconds: float) -> int:
    import grpc.aio
    from benchmarks.parts.webrtc_client import WebRtcClient

    options = (("grpc.max_receive_message_length", -1),)
    channels = {
        name: grpc.aio.insecure_channel(address, options) for name, address in targets.items()
    }
    peers = {name: WebRtcClient() for name in targets}
    for name, peer in peers.items():
        await peer.connect(channels[name], "bench")
    rates: dict[str, dict[str, list[float]]] = {
        f"{kind} {at_once}": {name: [] for name in ("bare", "ours", "gRPC")}
        for kind, at_once in CASES
    }
    for number in range(rounds + 1):
        for kind, at_once in CASES:
            path = f"/{SERVICE}/{kind.capitalize()}"
            calls: dict[str, Callable[[], Awaitable[object]]] = {
                "bare": partial(peers["bare"].call, path, REQUEST),
                "ours": partial(peers["ours"].call, path, REQUEST),
                "gRPC": partial(unary(channels["ours"], path), REQUEST),
            }
            for name in sorted(calls, reverse=bool(number % 2)):
                rate = await measure_rate(calls[name], at_once, seconds)
                if number:  # the first round is warm-up
                    rates[f"{kind} {at_once}"][name].append(rate)
    latency, pulled = await measure_latency(channels["ours"], targets, rounds, seconds)
    for peer in peers.values():
        await peer.close()
    for channel in channels.values():
        await channel.close()
    print(json.dumps({"rates": rates, "latency": latency, "pulled": pulled}))
    return 0


def unary(channel: Any, path: str) -> Any:
    return channel.unary_unary(path)


REQUEST = b"\n\x04belt"
"""A serialized StringValue."""


async def measure_rate(
    call: Callable[[], Awaitable[object]], at_once: int, seconds: float
) -> float:
    count = 0
    start = time.perf_counter()
    end = start + seconds

    async def ask() -> None:
        nonlocal count
        while time.perf_counter() < end:
            await call()
            count += 1

    await asyncio.gather(*(ask() for _ in range(at_once)))
    return count / (time.perf_counter() - start)


async def measure_latency(
    channel: Any, targets: dict[str, str], rounds: int, seconds: float
) -> tuple[dict[str, list[float]], float]:
    """Return the latencies of small gRPC calls with and without a transfer, and the transfer's
    MB/s."""
    latency: dict[str, list[float]] = {"idle": [], "busy": []}
    call = channel.unary_unary(f"/{SERVICE}/Small")
    count = 0
    for _ in range(rounds):
        await measure_calls(call, seconds, latency["idle"])
        process = await asyncio.create_subprocess_exec(
            *own_command("puller"),
            *("--targets", json.dumps(targets)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdout.readline()
        await measure_calls(call, seconds, latency["busy"])
        process.stdin.close()
        count += int(await process.stdout.readline())
        await process.wait()
    return latency, count * LARGE / 1e6 / (rounds * seconds)


async def measure_calls(call: Any, seconds: float, found: list[float]) -> None:
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        await call(REQUEST)
        found.append(time.perf_counter() - start)
        await asyncio.sleep(0.002)


async def pull(address: str) -> int:
    """Pull large replies until standard input ends, and print their number."""
    import grpc.aio
    from benchmarks.parts.webrtc_client import WebRtcClient

    async with grpc.aio.insecure_channel(address) as channel:
        peer = WebRtcClient()
        await peer.connect(channel, "bench")
        stop = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        print("started", flush=True)
        count = 0
        while not stop.done():
            await peer.call(f"/{SERVICE}/Large", REQUEST)
            count += 1
        print(count, flush=True)
        await peer.close()
    return 0


async def run_our_server() -> int:
    from cogwork.core.clock import SystemClock
    from cogwork.graph.provider import Providers
    from cogwork.robot.handler_table import build_handler_table
    from cogwork.robot.machine import Machine
    from cogwork.server.webrtc import WebRtc
    from cogwork.wire.transports.grpc import grpc_server

    clock = SystemClock()
    webrtc = WebRtc(lambda *_: None, clock)
    table = build_handler_table(
        Machine(Providers(), clock), clock, print, find_peers=webrtc.find_peers
    )
    table.add(SERVICE, make_methods)
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await wait_for_stop({"ours": f"127.0.0.1:{port}"})
    await webrtc.aclose()
    await server.stop(None)
    return 0


async def run_bare_server() -> int:
    """Answer frames with aiortc alone. Only the offer is sent over gRPC."""
    import aioice.ice
    import grpc
    import grpc.aio
    from aiortc import RTCConfiguration, RTCPeerConnection, RTCSessionDescription
    from benchmarks.parts.webrtc_client import CALL
    from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
        CallRequest,
        CallResponse,
        CallResponseInitStage,
    )

    from cogwork.net import session_description
    from cogwork.webrtc.host_addresses import host_addresses

    aioice.ice.get_host_addresses = host_addresses
    peers = []

    async def answer(request: CallRequest, _: Any) -> Any:
        peer = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        peers.append(peer)
        peer.createDataChannel("negotiation", negotiated=True, id=1)
        BareChannel(peer.createDataChannel("data", negotiated=True, id=0))
        offer = session_description.decode(request.sdp, "offer")
        await peer.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await peer.setLocalDescription(await peer.createAnswer())
        sdp = session_description.encode("answer", peer.localDescription.sdp)
        yield CallResponse(uuid="bare", init=CallResponseInitStage(sdp=sdp))

    async def ignore_update(*_: Any) -> bytes:
        return b""

    service, _, method = CALL.strip("/").partition("/")
    handler = grpc.unary_stream_rpc_method_handler(
        answer, CallRequest.FromString, CallResponse.SerializeToString
    )
    server = grpc.aio.server()
    done: Any = grpc.unary_unary_rpc_method_handler(ignore_update)
    handlers = {method: handler, "CallUpdate": done}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    await wait_for_stop({"bare": f"127.0.0.1:{port}"})
    for peer in peers:
        await peer.close()
    await server.stop(None)
    return 0


class BareChannel:
    """Replies to every call with the same bytes."""

    def __init__(self, channel: Any) -> None:
        self._channel = channel
        self._picture = os.urandom(LARGE)
        self._paths: dict[int, str] = {}
        self._low = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        channel.bufferedAmountLowThreshold = 1 << 19
        channel.on("message", self._on_message)
        channel.on("bufferedamountlow", self._low.set)

    def _on_message(self, message: bytes) -> None:
        from viam.gen.proto.rpc.webrtc.v1.grpc_pb2 import Request

        request = Request.FromString(message)
        if request.WhichOneof("type") == "headers":
            self._paths[request.stream.id] = request.headers.method
        elif request.message.eos:
            path = self._paths.pop(request.stream.id)
            task = asyncio.ensure_future(self._reply(request.stream.id, path))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _reply(self, number: int, path: str) -> None:
        from grpclib.const import Status

        from cogwork.wire.transports.channel_frames import (
            encode_headers,
            encode_message,
            encode_trailers,
        )

        size = 60_000 if len(self._tasks) == 1 else 16_384
        data = self._picture if path.endswith("Large") else REQUEST
        self._channel.send(encode_headers(number, {}))
        for frame in encode_message(number, data, size):
            if self._channel.bufferedAmount > 1 << 20:
                self._low.clear()
                await self._low.wait()
            self._channel.send(frame)
        self._channel.send(encode_trailers(number, Status.OK, "", {}, quoted=False))


if __name__ == "__main__":
    sys.exit(main())
