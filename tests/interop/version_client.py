r"""A client of a cloud and of one of its machines that uses only the public SDK.

Run as `version_client.py OPTIONS`, with the options as JSON. It configures the machine through the
cloud, edits that, calls the machine, and prints `report` with its observations as JSON.
"""

import asyncio
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from viam.app.viam_client import ViamClient
from viam.components.generic.client import GenericClient
from viam.components.sensor import Sensor
from viam.proto.common import DoCommandRequest
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

DEADLINE = 60.0
UNKNOWN_FIELD = b"\xc2\x3e\x05hello"
"""Number 1000, with a text."""


async def main(options: dict[str, Any]) -> None:
    key = DialOptions.with_api_key(options["key"], options["key_id"])
    key.insecure = True
    fleet = await ViamClient.create_from_dial_options(key, options["cloud"])
    app: Any = fleet.app_client
    part = await app.get_robot_part(options["part"])
    await app.update_robot_part(part.id, part.name, options["config"])
    saved = (await app.get_robot_part(part.id)).robot_config
    robot = await connect(options)
    await wait_for(robot, {"scale", "echo"})
    readings = await Sensor.from_robot(robot, "scale").get_readings()
    unknown = await echo_unknown_field(robot)

    edited = {**saved, "components": [*saved["components"], options["added"]]}
    await app.update_robot_part(part.id, part.name, edited)
    await wait_for(robot, {"scale", "echo", options["added"]["name"]})

    async def find_software() -> Any:
        part = await app.get_robot_part(options["part"])
        found = part.user_supplied_info.get("software", {}) if part.user_supplied_info else {}
        return {product: each.get("running") for product, each in found.items()}

    report = {
        "saved": saved,
        "edited": (await app.get_robot_part(part.id)).robot_config,
        "readings": readings,
        "unknown": unknown,
        "software": await until(find_software, lambda found: found == options["software"]),
        "version": (await robot.get_version()).version,
    }
    print("report", json.dumps(report), flush=True)
    await robot.close()
    fleet.close()


async def connect(given: dict[str, Any]) -> Any:
    """Return the machine, once it has the certificate and the keys of its cloud."""
    key = DialOptions.with_api_key(given["key"], given["key_id"])
    key.disable_webrtc = True
    options = RobotClient.Options(dial_options=key, log_level=logging.CRITICAL)

    async def dial() -> Any:
        try:
            return await RobotClient.at_address(f"localhost:{given['machine']}", options)
        except Exception as error:
            return error

    return await until(dial, lambda found: isinstance(found, RobotClient))


async def echo_unknown_field(robot: Any) -> bool:
    """Return whether a field that no one knows comes back from a module."""
    request = DoCommandRequest(name="echo")
    request.MergeFromString(UNKNOWN_FIELD)
    client: Any = GenericClient.from_robot(robot, "echo").client
    reply = await client.DoCommand(request, timeout=DEADLINE)
    return UNKNOWN_FIELD in reply.SerializeToString()


async def wait_for(robot: Any, names: set[str]) -> None:
    async def list_names() -> set[str]:
        await robot.refresh()
        return {each.name for each in robot.resource_names}

    await until(list_names, names.issubset)


async def until(ask: Callable[[], Awaitable[Any]], is_wanted: Callable[[Any], bool]) -> Any:
    try:
        async with asyncio.timeout(DEADLINE):
            while True:
                found = await ask()
                if is_wanted(found):
                    return found
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise SystemExit(f"still {found!r} after {DEADLINE:g} s") from None


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
