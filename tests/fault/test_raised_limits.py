"""Limits that well-behaved clients need, used up by others.

By someone without a login, and by a viewer.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from tests.support.machine.login import config, log_in
from tests.support.machine.watched import WatchedServer, run_watched
from tests.support.network import http2_frames as frames
from tests.support.network.http2_client import connected
from tests.support.sizes import size
from tests.support.waiting import pass_time

from cogwork.core.limits.byte_budget import request_budget, upload_budget
from cogwork.core.memory import total_memory
from cogwork.resource.sdk import clean_import as sdk
from cogwork.wire.table.event_streams import EventStreamLimits

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.component.board.v1.board_pb2 import StreamTicksRequest  # noqa: E402

pytestmark = pytest.mark.alone

TICKS = "/viam.component.board.v1.BoardService/StreamTicks"
ECHO = "/viam.component.generic.v1.GenericService/DoCommand"
NAMES = "/viam.robot.v1.RobotService/ResourceNames"
MIB = 1 << 20
INTERRUPT = {"digital_interrupts": [{"name": "i", "pin": "1"}]}
CONNECTIONS = size(3, 9)
HOLD = 1.0
"""Seconds for which an attacker holds what it has got."""
LONGEST_WAIT = 1000.0
"""Milliseconds for 99 of a hundred calls of the bystander."""
STREAM_SIZE = 0.06
"""MiB that an open stream may take, in all processes."""
SLACK = 150.0
"""MiB that gRPC and the allocator keep."""

Headers = list[tuple[str, str]]


@dataclass
class Attack:
    """An attack in progress."""

    server: WatchedServer
    headers: Headers
    outcomes: dict[str, int] = field(default_factory=dict)

    @property
    def port(self) -> int:
        return self.server.server.port

    def count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1

    @contextlib.asynccontextmanager
    async def connections(self) -> AsyncIterator[list[grpc.aio.Channel]]:
        options = [("grpc.use_local_subchannel_pool", 1)]  # or they would share a connection
        channels = [
            grpc.aio.insecure_channel(f"127.0.0.1:{self.port}", options) for _ in range(CONNECTIONS)
        ]
        try:
            yield channels
        finally:
            await asyncio.gather(*(each.close() for each in channels))

    async def call(self, channel: grpc.aio.Channel, path: str, request: bytes) -> None:
        start: Any = channel.unary_unary(path)
        try:
            await start(request, metadata=self.headers)
        except grpc.aio.AioRpcError as error:
            self.count(error.code().name)
        else:
            self.count("OK")

    async def open_stream(self, channel: grpc.aio.Channel, headers: Headers) -> None:
        """Open a stream of ticks, and count whether it stays open."""
        request = StreamTicksRequest(name="b", pin_names=["i"]).SerializeToString()
        start: Any = channel.unary_stream(TICKS)
        call = start(request, metadata=[*self.headers, *headers])
        try:
            await call.read()
        except grpc.aio.AioRpcError as error:
            self.count(error.code().name)
        else:
            self.count("OPEN")


async def hold_event_streams(attack: Attack) -> float:
    """Open more streams than there are places, and hold them."""
    async with attack.connections() as channels:
        each = EventStreamLimits().per_client + 10
        for channel in channels:
            await asyncio.gather(*(attack.open_stream(channel, []) for _ in range(each)))
        return await measure_held(attack)


async def hold_metadata(attack: Attack) -> float:
    """Hold as much metadata as the calls in flight may have."""
    large: Headers = [("x-large", "x" * 60_000)]
    async with attack.connections() as channels:
        for channel in channels:
            await asyncio.gather(*(attack.open_stream(channel, large) for _ in range(256)))
        return await measure_held(attack)


async def hold_incomplete_requests(attack: Attack) -> float:
    """Send requests of 31 MiB without their last bytes."""
    async with contextlib.AsyncExitStack() as stack:
        sending = [
            asyncio.ensure_future(
                send_partly(attack, await stack.enter_async_context(connected(attack.port)))
            )
            for _ in range(CONNECTIONS)
            for _ in range(4)
        ]
        await asyncio.wait(sending, timeout=3)
        held = await measure_held(attack)
        for each in sending:
            each.cancel()
        await asyncio.gather(*sending, return_exceptions=True)
    return held


async def send_partly(attack: Attack, client: Any) -> None:
    body = frames.message(bytes(31 * MIB))[: 30 * MIB]
    await client.call(ECHO, body, besides=attack.headers, framed=False, ends=False)


async def parse_empty_values(attack: Attack) -> float:
    """Send commands of 32 MiB that consist of empty values."""
    value = b"\x0a\x05\x0a\x01a\x12\x00"
    request = b"\x0a\x01g" + b"\x12" + varint(31 * MIB) + value * (31 * MIB // len(value))
    async with attack.connections() as channels:
        await asyncio.gather(*(attack.call(channel, ECHO, request) for channel in channels))
        return await measure_held(attack)


async def ping_for_replies(attack: Attack) -> float:
    """Make calls as fast as possible: gRPC sends pings for what it receives."""
    async with attack.connections() as channels:
        for channel in channels:
            await asyncio.gather(*(attack.call(channel, NAMES, b"") for _ in range(500)))
        return await measure_held(attack)


def varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*found, number])


async def measure_held(attack: Attack) -> float:
    await pass_time(HOLD)
    return await attack.server.size()


MEMORY = total_memory()
ATTACKS: dict[Callable[[Attack], Awaitable[float]], float] = {
    hold_event_streams: STREAM_SIZE * EventStreamLimits().total + SLACK,
    hold_metadata: request_budget(MEMORY).total / MIB + SLACK,
    hold_incomplete_requests: upload_budget(MEMORY).most / MIB + SLACK,
    parse_empty_values: request_budget(MEMORY).most / MIB + SLACK,
    ping_for_replies: SLACK,
}
"""With the MiB that the server may grow meanwhile."""


@pytest.mark.timeout(size(ci=180, full=900))
@pytest.mark.parametrize("role", ["", "viewer"], ids=["nobody", "viewer"])
async def test_limits_hold_for_memory_and_others(tmp_path: Path, role: str) -> None:
    machine = config("owner", "viewer")
    machine["components"] = [
        each if each["name"] != "b" else {**each, "attributes": INTERRUPT}
        for each in machine["components"]
    ]
    faults: list[str] = []
    async with run_watched(tmp_path, machine, lambda port: log_in(port, "viewer")) as server:
        token = log_in(server.server.port, role) if role else ""
        headers = [("authorization", f"Bearer {token}")] if token else []
        await server.wait_until_calm()
        for run, most in ATTACKS.items():
            before = await server.size()
            attack = Attack(server, headers)
            await server.begin()
            held = await run(attack) - before
            phase = await server.end(run.__name__)
            print(f"  {role or 'nobody'}: held {held:.0f} of {most:.0f} MiB, {attack.outcomes}")
            if held > most:
                faults.append(f"{run.__name__}: the server grew by {held:.0f} MiB")
            if phase.bystander.failed:
                faults.append(f"{run.__name__}: the bystander: {phase.bystander.failures}")
            if phase.bystander.p99 > LONGEST_WAIT:
                faults.append(f"{run.__name__}: it waited {phase.bystander.p99:.0f} ms")
    assert faults == []
