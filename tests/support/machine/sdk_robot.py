"""A machine as the SDK's own client shows it."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any

from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions


@contextlib.asynccontextmanager
async def connect_sdk(port: int) -> AsyncIterator[Any]:
    options = RobotClient.Options(
        dial_options=DialOptions(insecure=True, disable_webrtc=True),
        log_level=logging.ERROR,
        disable_sessions=True,
    )
    robot: Any = await RobotClient.at_address(f"localhost:{port}", options)
    try:
        yield robot
    finally:
        await robot.close()
