"""Dials a machine once with the unmodified SDK, and prints what happened as JSON.

Run as `login_client.py <address> <options as JSON>`. It is a process of its own because the SDK's
Rust dialer reads the environment (`SSL_CERT_FILE`) once, and prints its errors.
"""

import asyncio
import json
import logging
import sys
from typing import Any

from grpclib import GRPCError
from viam.components.motor import Motor
from viam.robot.client import RobotClient
from viam.rpc.dial import Credentials, DialOptions


async def dial(address: str, options: dict[str, Any]) -> dict[str, Any]:
    kind, payload = options.pop("type", None), options.pop("payload", None)
    credentials = Credentials(kind, payload) if kind else None
    dial_options = DialOptions(
        credentials=credentials, force_p2p=True, max_reconnect_attempts=0, timeout=10, **options
    )
    try:
        robot = await RobotClient.at_address(
            address,
            RobotClient.Options(
                dial_options=dial_options, log_level=logging.CRITICAL, refresh_interval=0
            ),
        )
    except Exception as error:
        return {"dial": type(error).__name__, "error": str(error)}
    try:
        motor = Motor.from_robot(robot, "m")
        return {
            "dial": "OK",
            "reads": await outcome(motor.is_moving()),
            "moves": await outcome(motor.set_power(0.5)),
        }
    finally:
        await robot.close()  # type: ignore[no-untyped-call]


async def outcome(call: Any) -> str:
    try:
        await asyncio.wait_for(call, 10)
    except GRPCError as error:
        return error.status.name
    return "OK"


if __name__ == "__main__":
    print(json.dumps(asyncio.run(dial(sys.argv[1], json.loads(sys.argv[2])))))
