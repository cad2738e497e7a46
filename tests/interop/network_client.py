"""Watches a camera and makes calls over WebRTC, and prints what happens as JSON.

Run as `network_client.py ADDRESS`; it ends with its standard input. Each line that it reads names a
sensor of which it reads, without waiting, with a deadline only on the server's side: `SENSOR
[SECONDS]`. Run as `network_client.py --observe ADDRESS` it prints the operations of the machine
instead. Times are those of the monotonic clock, which all processes share.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import sys
import time
from typing import Any

import aioice.ice
import grpc.aio
from aiortc.jitterbuffer import JitterBuffer
from benchmarks.parts.webrtc_client import CallFailed
from tests.interop.video_client import VideoClient
from viam.gen.common.v1.common_pb2 import GetReadingsRequest
from viam.gen.robot.v1.robot_pb2 import GetOperationsResponse
from viam.gen.stream.v1.stream_pb2 import AddStreamRequest

DEADLINE = 2.0
"""Seconds that a call may take."""
CALL_INTERVAL = 0.25
STALLED = 1.0
"""Seconds without a frame after which a key frame is requested."""
CONNECT_TIMEOUT = 2.0
RETRY_DELAY = 0.5
MAX_UNANSWERED = 4
"""Checks of the connection, one in 5 seconds, that fail before it counts as lost. Most clients give
up before the machine does, after 25 s or less."""
ADD = "/proto.stream.v1.StreamService/AddStream"
READINGS = "/viam.component.sensor.v1.SensorService/GetReadings"
OPERATIONS = "/viam.robot.v1.RobotService/GetOperations"


class NetworkClient(VideoClient):
    def __init__(self) -> None:
        super().__init__()
        self.ended = asyncio.Event()

    async def begin(self, address: str) -> None:
        async with grpc.aio.insecure_channel(address) as channel:
            await self.connect(channel, "machine")
        self.connection.on("connectionstatechange", self._on_state)
        self.start(self.watch())
        await self.call(ADD, AddStreamRequest(name="belt").SerializeToString())
        self.start(self.make_calls())

    def _on_state(self) -> None:
        if self.connection.connectionState in ("failed", "closed"):
            self.ended.set()

    def stop(self) -> None:
        """Drop the connection without closing it, for nobody would hear of it."""
        for task in self.tasks:
            task.cancel()

    async def watch(self) -> None:
        """Print each frame of the video."""
        track = await self.tracks.get()
        awaits_key, last = False, time.monotonic()
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STALLED):
                    frame = await track.recv()
                    awaits_key = awaits_key and not frame.key_frame
                    if not awaits_key:
                        last = time.monotonic()
                        report(frame=last)
            if time.monotonic() - last > STALLED:
                awaits_key, last = True, time.monotonic()
                await self._request_key()

    async def _request_key(self) -> None:
        """Request a key frame, and forget the packets that wait for lost ones, as browsers do.

        aiortc itself waits until its buffer is full, which takes as long as 512 packets.
        """
        receiver: Any
        for receiver in self.connection.getReceivers():
            receiver._RTCRtpReceiver__jitter_buffer = JitterBuffer(512, is_video=True)
            for each in receiver.getSynchronizationSources():
                await receiver._send_rtcp_pli(each.source)

    async def make_calls(self) -> None:
        """Make short calls, one after the other, and print what became of them."""
        while self.data.readyState == "open":
            start = time.monotonic()
            try:
                async with asyncio.timeout(DEADLINE):
                    await self.read("quick", DEADLINE)
                outcome = "OK"
            except TimeoutError:
                outcome = "deadline"
            except CallFailed as error:
                outcome = str(error)
            report(call=outcome, start=start, end=time.monotonic())
            await asyncio.sleep(CALL_INTERVAL)

    async def hold(self, sensor: str, deadline: float | None) -> None:
        """Make a call, and print how it ended."""
        try:
            await self.read(sensor, deadline)
        except CallFailed as error:
            report(held=str(error), end=time.monotonic())

    async def read(self, sensor: str, deadline: float | None) -> None:
        with self.open(READINGS, timeout=deadline) as call:
            await call.send(GetReadingsRequest(name=sensor).SerializeToString(), end=True)
            while await call.receive() is not None:
                pass


async def watch(address: str) -> None:
    """Watch, and connect again whenever the connection is lost."""
    clients: list[NetworkClient] = []
    commands = asyncio.ensure_future(obey_commands(clients))
    while not commands.done():
        client = NetworkClient()
        try:
            start = time.monotonic()
            async with asyncio.timeout(CONNECT_TIMEOUT):
                await client.begin(address)
            report(connected=time.monotonic() - start)
            clients.append(client)
            await client.ended.wait()
            report(lost=time.monotonic())
        except (TimeoutError, CallFailed, grpc.aio.AioRpcError) as error:
            report(failed=f"{type(error).__name__}: {error}", at=time.monotonic())
            await asyncio.sleep(RETRY_DELAY)
        client.stop()


async def obey_commands(clients: list[NetworkClient]) -> None:
    """Make the calls that standard input asks for, until it ends."""
    while line := await asyncio.to_thread(sys.stdin.readline):
        sensor, *seconds = line.split()
        clients[-1].start(clients[-1].hold(sensor, float(seconds[0]) if seconds else None))
    # Without closing the connection, as a client that loses its network.
    os._exit(0)


async def observe(address: str) -> None:
    """Print the operations of the machine whenever they change."""
    before = None
    end = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    async with grpc.aio.insecure_channel(address) as channel:
        get: Any = channel.unary_unary(
            OPERATIONS, response_deserializer=GetOperationsResponse.FromString
        )
        while not end.done():
            found = [each.method for each in (await get(b"", timeout=5)).operations]
            found = [each for each in found if "GetReadings" in each]
            if found != before:
                report(operations=len(found), at=time.monotonic())
            before = found
            await asyncio.sleep(0.1)


def report(**event: object) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    # Packets that are lost leave pictures that cannot be decoded.
    logging.disable()
    aioice.ice.CONSENT_FAILURES = MAX_UNANSWERED
    asyncio.run(observe(sys.argv[2]) if sys.argv[1] == "--observe" else watch(sys.argv[1]))
