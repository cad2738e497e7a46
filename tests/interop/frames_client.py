"""Makes one call for each rule of data channels, with the unmodified SDK.

Run as `frames_client.py ADDRESS`. It is a process of its own because the SDK's Rust dialer prints
its errors.
"""

import asyncio
import contextlib
import sys

from grpclib import GRPCError
from viam.components.audio_in import AudioIn
from viam.components.audio_out import AudioOut
from viam.components.sensor.client import SensorClient
from viam.gen.robot.v1.robot_grpc import RobotServiceStub
from viam.gen.robot.v1.robot_pb2 import TunnelRequest
from viam.proto.common import AudioInfo
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions


async def run(address: str) -> None:
    options = DialOptions(insecure=True, force_p2p=True, timeout=10)
    robot = await RobotClient.at_address(
        address, RobotClient.Options(dial_options=options, refresh_interval=0)
    )
    sensor = SensorClient("sensor", robot._channel)
    await sensor.get_readings()
    await sensor.get_readings(timeout=7)
    with contextlib.suppress(GRPCError):
        await SensorClient("süß\n", robot._channel).get_readings()
    await robot.get_operations()
    sound = await AudioIn.from_robot(robot, "microphone").get_audio("pcm16", 0.1, 0)
    async for _ in sound:
        pass
    info = AudioInfo(codec="pcm16", sample_rate_hz=384_000, num_channels=2)
    await AudioOut.from_robot(robot, "speaker").play(bytes(20_000), info)
    async with RobotServiceStub(robot._channel).Tunnel.open(timeout=20) as stream:
        await stream.send_message(TunnelRequest(destination_port=1, data=b"abc"))
        await stream.send_message(TunnelRequest(data=b"def"))
        await stream.end()
        with contextlib.suppress(GRPCError):
            await stream.recv_message()
            await stream.recv_trailing_metadata()
    await robot.close()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1]))
