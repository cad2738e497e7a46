"""WebRTC clients that come and go, disappear, or send garbage."""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from pathlib import Path

import grpc.aio
import psutil
import pytest
from benchmarks.parts.webrtc_client import CallFailed, WebRtcClient
from tests.support.machine.running import Server, run_server
from tests.support.machine.watched import FAKES
from tests.support.sizes import size
from tests.support.waiting import pass_time, poll, wait_until

NAMES = "/viam.robot.v1.RobotService/ResourceNames"
CYCLES = size(12, 1000)
WARM_UP = size(5, 300)
GARBAGE = size(2000, 1_000_000)
MIB = 1 << 20


async def open_peer(channel: grpc.aio.Channel) -> WebRtcClient:
    client = WebRtcClient()
    try:
        await client.connect(channel, "machine")
    except BaseException:
        await client.close()
        raise
    return client


async def open_peer_in_time(channel: grpc.aio.Channel) -> WebRtcClient:
    """Try again while the machine refuses more clients, or starts the process for them."""
    opened: list[WebRtcClient] = []

    async def is_open() -> bool:
        with contextlib.suppress(grpc.aio.AioRpcError):
            opened.append(await open_peer(channel))
        return bool(opened)

    await poll(is_open, every=0.2)
    return opened[0]


def find_process(server: Server) -> psutil.Process:
    (found,) = [
        child
        for child in psutil.Process(server.pid).children()
        if "cogwork.webrtc.main" in child.cmdline()
    ]
    return found


async def settle(process: psutil.Process, descriptors: int) -> None:
    """Wait until the connections that were closed are gone."""
    await wait_until(lambda: process.num_fds() <= descriptors, every=0.1)


@pytest.mark.timeout(600)
async def test_clients_that_come_and_go_leave_nothing_behind(tmp_path: Path) -> None:
    async with (
        run_server(FAKES, tmp_path) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        await server.wait_for_status(state="running")
        for _ in range(WARM_UP):
            await (await open_peer(channel)).close()
        worker, main = find_process(server), psutil.Process(server.pid)
        await pass_time(4)  # connections linger
        counts = [(each.num_fds(), each.num_threads()) for each in (worker, main)]
        memory = [each.memory_info().rss for each in (worker, main)]
        for number in range(CYCLES):
            client = await open_peer(channel)
            if number % 10 == 0:
                await client.call(NAMES, b"")
            await client.close()
        for each, (descriptors, threads) in zip((worker, main), counts, strict=True):
            await settle(each, descriptors)
            assert each.num_threads() <= threads
        growth = [
            each.memory_info().rss - before
            for each, before in zip((worker, main), memory, strict=True)
        ]
        print(f"{CYCLES} cycles: memory +{growth[0] / MIB:.1f} and +{growth[1] / MIB:.1f} MiB")
        assert max(growth) < 30 * MIB


@pytest.mark.timeout(600)
async def test_garbage_ends_only_the_call_or_the_client_that_sent_it(tmp_path: Path) -> None:
    generator = random.Random(7)
    async with (
        run_server(FAKES, tmp_path) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        await server.wait_for_status(state="running")
        honest, hostile = await open_peer(channel), await open_peer(channel)
        disconnected = 0
        valid = [
            bytes.fromhex("0a001204") + b"\n\x02/x",
            bytes.fromhex("0a0208011a0408011a00"),
            bytes.fromhex("0a0208012001"),
        ]
        for number in range(GARBAGE):
            frame = bytearray(generator.choice(valid))
            for _ in range(generator.randrange(1, 4)):
                frame[generator.randrange(len(frame))] = generator.randrange(256)
            if number % 5 == 0:
                frame += generator.randbytes(generator.randrange(200))
            if hostile.data.readyState != "open":
                # The machine disconnects who sends faster than it reads.
                await hostile.close()
                hostile = await open_peer(channel)
                disconnected += 1
            hostile.data.send(bytes(frame))
            if number % 200 == 0:
                hostile.negotiation.send(generator.randbytes(20).hex())
                data = hostile.data
                await wait_until(lambda: data.bufferedAmount <= MIB or data.readyState != "open")  # noqa: B023 - it is awaited at once
                await honest.call(NAMES, b"")
        print(f"{GARBAGE} frames; disconnected {disconnected} times")
        await honest.call(NAMES, b"")
        await honest.close()
        await hostile.close()
        assert "Traceback" not in server.output


async def test_mutated_offers_are_refused_or_answered(tmp_path: Path) -> None:
    generator = random.Random(11)
    async with (
        run_server(FAKES, tmp_path) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        await server.wait_for_status(state="running")
        template = WebRtcClient()
        await template.connection.setLocalDescription(await template.connection.createOffer())
        lines = template.connection.localDescription.sdp.splitlines()
        outcomes = Counter[str]()
        for _ in range(size(60, 3000)):
            mutated = list(lines)
            for _ in range(generator.randrange(1, 4)):
                at = generator.randrange(len(mutated))
                match generator.randrange(3):
                    case 0:
                        del mutated[at]
                    case 1:
                        mutated.insert(at, generator.choice(lines))
                    case _:
                        text = bytearray(mutated[at].encode())
                        if text:
                            text[generator.randrange(len(text))] = generator.randrange(32, 127)
                        mutated[at] = text.decode()
                if not mutated:
                    break
            try:
                await template.offer(channel, "machine", "\r\n".join(mutated) + "\r\n")
            except grpc.aio.AioRpcError as error:
                outcomes[error.code().name] += 1
            else:
                outcomes["answered"] += 1
        print(outcomes)
        assert outcomes.keys() <= {"answered", "INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
        await template.close()
        # Honest clients connect when the others have timed out.
        client = await open_peer_in_time(channel)
        await client.call(NAMES, b"")
        await client.close()
        assert "Traceback" not in server.output


async def test_killed_process_is_replaced_and_its_calls_end(tmp_path: Path) -> None:
    async with (
        run_server(FAKES, tmp_path) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        await server.wait_for_status(state="running")
        client = await open_peer(channel)
        await client.call(NAMES, b"")
        os.kill(find_process(server).pid, 9)
        await server.out.wait_for("the WebRTC process ended; its clients are disconnected")
        other = await open_peer_in_time(channel)
        await other.call(NAMES, b"")
        with pytest.raises(CallFailed):
            await other.call("/viam.robot.v1.RobotService/Nothing", b"")
        await other.close()
        await client.close()
