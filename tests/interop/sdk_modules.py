r"""A client of modular resources that uses only the public SDK and one API of its own.

Run as `sdk_modules.py <port>`; it prints `report` with its observations as JSON.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import numpy as np
from grpclib import GRPCError
from viam.components.camera import Camera
from viam.components.motor import Motor
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions
from viam.services.mlmodel import MLModel

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.modules.sdk.echo.api import Echo, register


async def main(port: str) -> None:
    register()
    options = RobotClient.Options(
        dial_options=DialOptions(insecure=True, disable_webrtc=True), log_level=logging.ERROR
    )
    robot: Any = await RobotClient.at_address(f"localhost:{port}", options)
    report = {
        "names": sorted(f"{name.subtype}/{name.name}" for name in robot.resource_names),
        "models": sorted(each.model for each in await robot.get_models_from_modules()),
        "camera": await drive_camera(Camera.from_robot(robot, "camera")),
        "motor": await drive_motor(Motor.from_robot(robot, "motor")),
        "sensor": await Sensor.from_robot(robot, "sensor").get_readings(),
        "doubled": await drive_model(MLModel.from_robot(robot, "doubler")),
        "echo": await drive_echo(Echo.from_robot(robot, "echo")),
        "modules of ours": sorted(name for name in sys.modules if name.startswith("cogwork")),
    }
    await robot.close()
    print("report", json.dumps(report), flush=True)


async def drive_camera(camera: Camera) -> dict[str, Any]:
    images, metadata = await camera.get_images()
    return {
        "images": [[each.name, each.mime_type, each.width, each.height] for each in images],
        "is dated": metadata.captured_at.seconds > 0,
        "none of it": len((await camera.get_images(filter_source_names=["other"]))[0]),
        "mime types": list((await camera.get_properties()).mime_types),
        "point cloud": await outcome(camera.get_point_cloud()),
    }


async def drive_motor(motor: Motor) -> dict[str, Any]:
    await motor.set_power(1)
    moving = [await motor.is_moving()]
    await motor.stop()
    moving.append(await motor.is_moving())
    return {
        "moving": moving,
        "position": await motor.get_position(),
        "reports position": (await motor.get_properties()).position_reporting,
        "raised": await outcome(motor.do_command({"raise": "ouch"})),
        "too slow": (await outcome(motor.do_command({"hang": 30}, timeout=0.2)))[0],
    }


async def drive_model(model: MLModel) -> list[float]:
    result = await model.infer({"input": np.array([1.5, -2.0], np.float32)})
    assert (await model.metadata()).name == "doubler"
    return [float(each) for each in result["output"]]


async def drive_echo(echo: Any) -> dict[str, Any]:
    unary = await echo.unary("one", metadata={"x-mark": "here"})
    collected = await echo.client_stream(["a", "b", "c"], bytes(10))
    return {
        "unary": [unary.text, dict(unary.metadata)],
        "server stream": [each.number async for each in echo.server_stream(3)],
        "client stream": [collected.text, collected.number, collected.received],
        "both ways": [each.text async for each in echo.bidi(["x", "y"])],
        "refused": await outcome(echo.unary("no such thing", status=5)),
    }


async def outcome(call: Awaitable[Any]) -> list[str]:
    """Return the status and the message of the call."""
    try:
        answer = await asyncio.wait_for(call, 10)
    except GRPCError as error:
        # The SDK adds the location in its source.
        return [error.status.name, (error.message or "").partition(" - file_name=")[0]]
    except TimeoutError:
        return ["DEADLINE_EXCEEDED", ""]
    return ["OK", repr(answer)]


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
