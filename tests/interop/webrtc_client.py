"""Makes calls of every kind over WebRTC, and prints what happened as JSON.

Run as `python -m tests.interop.webrtc_client sdk|aiortc ADDRESS OPTIONS`, with the options as JSON.
It is a process of its own because the SDK's Rust dialer prints its errors.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
from aiortc import RTCIceServer
from benchmarks.parts.webrtc_client import WebRtcClient
from grpclib import GRPCError
from tests.support.network.webrtc_channel import WebRtcChannel
from viam.components.audio_in.client import AudioInClient
from viam.components.audio_out.client import AudioOutClient
from viam.components.camera.client import CameraClient
from viam.components.motor.client import MotorClient
from viam.components.sensor.client import SensorClient
from viam.gen.proto.rpc.webrtc.v1.signaling_pb2 import (
    OptionalWebRTCConfigRequest,
    OptionalWebRTCConfigResponse,
)
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import GetSessionsRequest, StartSessionRequest, TunnelRequest
from viam.proto.common import AudioInfo
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

Options = dict[str, Any]

MEGABYTE = 1_000_000
CONFIG = "/proto.rpc.webrtc.v1.SignalingService/OptionalWebRTCConfig"


@contextlib.asynccontextmanager
async def dial_with_sdk(address: str, given: Options) -> AsyncIterator[tuple[Any, str]]:
    """Yield a channel, and what is known of the connection."""
    # The SDK ignores relays if it is to connect directly, and asks public servers if it is not;
    # there are none in the namespace of a test with a relay.
    options = DialOptions(insecure=True, force_p2p=not given.get("relay"), timeout=15)
    robot = await RobotClient.at_address(
        address, RobotClient.Options(dial_options=options, refresh_interval=0)
    )
    try:
        yield robot._channel, ""
    finally:
        await robot.close()  # type: ignore[no-untyped-call]


@contextlib.asynccontextmanager
async def dial_with_aiortc(address: str, given: Options) -> AsyncIterator[tuple[Any, str]]:
    host = given.get("host", address)
    async with grpc.aio.insecure_channel(address) as channel:
        read: Any = channel.unary_unary(
            CONFIG,
            request_serializer=OptionalWebRTCConfigRequest.SerializeToString,
            response_deserializer=OptionalWebRTCConfigResponse.FromString,
        )
        found = await read(OptionalWebRTCConfigRequest(), metadata=[("rpc-host", host)])
        servers = [
            RTCIceServer(list(each.urls), each.username, each.credential)
            for each in found.config.additional_ice_servers
        ]
        client = WebRtcClient(servers)
        try:
            await client.connect(channel, host)
            transport = client.connection.sctp.transport.transport  # type: ignore[union-attr]
            (pair,) = transport._connection._nominated.values()
            yield WebRtcChannel(client), f"{pair.local_candidate.type} {pair.remote_candidate.type}"
        finally:
            await client.close()


async def run(kind: str, address: str, options: Options) -> dict[str, Any]:
    dial = dial_with_sdk if kind == "sdk" else dial_with_aiortc
    times = []
    for _ in range(options.get("opens", 1) - 1):
        start = time.monotonic()
        async with dial(address, options):
            times.append(time.monotonic() - start)
    start = time.monotonic()
    async with dial(address, options) as (channel, candidates):
        times.append(time.monotonic() - start)
        return {
            "seconds to connect": times,
            "candidates": candidates,
            "peer": await find_own_address(channel),
            "unary": await SensorClient("sensor", channel).get_readings(),
            "server stream": await hear(channel),
            "both streams": await tunnel(channel, options["port"]),
            "megabytes up": await speak(channel),
            "megabytes down": await look(channel),
            "deadline": await wait_too_long(channel),
            "cancelled": await cancel(channel),
            "error": await fail(channel),
        }


async def find_own_address(channel: Any) -> str:
    """Return the address of this client as the machine sees it."""
    stub = RobotServiceStub(channel)
    session_id = (await stub.StartSession(StartSessionRequest())).id
    found = (await stub.GetSessions(GetSessionsRequest())).sessions
    addresses = [
        each.peer_connection_info.remote_address for each in found if each.id == session_id
    ]
    return str(addresses[0])


async def hear(channel: Any) -> int:
    sound = await AudioInClient("microphone", channel).get_audio("pcm16", 0.2, 0)
    return len([chunk async for chunk in sound])


async def speak(channel: Any) -> float:
    data = bytes(5 * MEGABYTE)
    info = AudioInfo(codec="pcm16", sample_rate_hz=384_000, num_channels=2)
    await AudioOutClient("speaker", channel).play(data, info, timeout=30)
    return len(data) / MEGABYTE


async def look(channel: Any) -> float:
    cloud, _ = await CameraClient("camera", channel).get_point_cloud(timeout=30)
    return len(cloud) / MEGABYTE


async def tunnel(channel: Any, port: int) -> str:
    async with RobotServiceStub(channel).Tunnel.open(timeout=60) as stream:
        await stream.send_message(TunnelRequest(destination_port=port, data=b"abc"))
        received = b""
        while len(received) < 6:
            reply = await stream.recv_message()
            assert reply is not None
            if not received:
                await stream.send_message(TunnelRequest(destination_port=port, data=b"def"))
            received += reply.data
        await stream.end()
    return received.decode()


async def wait_too_long(channel: Any) -> str:
    try:
        await MotorClient("motor", channel).go_for(1, 1000, timeout=0.5)
    except GRPCError as error:
        return error.status.name
    except TimeoutError:
        return "DEADLINE_EXCEEDED"
    return "OK"


async def cancel(channel: Any) -> str:
    call = asyncio.create_task(MotorClient("motor", channel).go_for(1, 1000))
    await asyncio.sleep(0.2)
    call.cancel()
    try:
        await call
    except asyncio.CancelledError:
        return "CANCELLED"
    return "OK"


async def fail(channel: Any) -> str:
    try:
        await SensorClient("süß\n" * 1000, channel).get_readings()
    except GRPCError as error:
        return str(error.message)[:80]
    return "OK"


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2], json.loads(sys.argv[3])))))
