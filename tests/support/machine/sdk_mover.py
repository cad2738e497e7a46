r"""A client that sets things in motion and stays connected, using only the public SDK.

Run as `sdk_mover.py <port> <subtype>,<subtype>…`; each is the name of a component, too. It prints
`moving` when all of them move.
"""

import asyncio
import logging
import sys
from typing import Any

from viam.components.arm import Arm
from viam.components.arm.client import ArmClient
from viam.components.base import Base
from viam.components.base.client import BaseClient
from viam.components.gantry import Gantry
from viam.components.gantry.client import GantryClient
from viam.components.gripper import Gripper
from viam.components.gripper.client import GripperClient
from viam.components.motor import Motor
from viam.components.motor.client import MotorClient
from viam.components.servo import Servo
from viam.components.servo.client import ServoClient
from viam.proto.component.arm import JointPositions
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

CLIENTS: dict[str, Any] = {
    "arm": ArmClient,
    "base": BaseClient,
    "gantry": GantryClient,
    "gripper": GripperClient,
    "motor": MotorClient,
    "servo": ServoClient,
}
MOVES: dict[str, Any] = {
    "arm": lambda robot: Arm.from_robot(robot, "arm").move_to_joint_positions(
        JointPositions(values=[60, 0, 0, 0, 0, 0])
    ),
    "base": lambda robot: Base.from_robot(robot, "base").move_straight(100_000, 100),
    "gantry": lambda robot: Gantry.from_robot(robot, "gantry").move_to_position([90_000], [100]),
    "gripper": lambda robot: Gripper.from_robot(robot, "gripper").grab(),
    "motor": lambda robot: Motor.from_robot(robot, "motor").set_power(1),
    "servo": lambda robot: Servo.from_robot(robot, "servo").move(170),
}


async def main(port: str, subtypes: list[str]) -> None:
    options = RobotClient.Options(
        dial_options=DialOptions(insecure=True, disable_webrtc=True), log_level=logging.ERROR
    )
    robot: Any = await RobotClient.at_address(f"localhost:{port}", options)
    for subtype in subtypes:
        asyncio.ensure_future(MOVES[subtype](robot))  # noqa: RUF006 - it ends with the process
    # Of a remote, the name has a prefix.
    names = [each for each in robot.resource_names if each.name.rpartition(":")[2] in subtypes]
    stubs = [robot.get_component(name) for name in names]
    async with asyncio.timeout(60):
        while not all([await each.is_moving() for each in stubs]):
            pass
    print("moving", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2].split(",")))
