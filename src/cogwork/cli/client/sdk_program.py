"""A Python program that connects to a machine with the SDK."""

from __future__ import annotations

from collections.abc import Sequence


def render_program(
    address: str, key_id_variable: str, key_variable: str, dial_settings: Sequence[str]
) -> str:
    """Return a program that prints the resources of a machine.

    It reads its API key from environment variables, so that it can be shared. `dial_settings` are
    assignments to fields of the SDK's `DialOptions`, such as `insecure = True`.
    """
    settings = "".join(f"    options.dial_options.{each}\n" for each in dial_settings)
    return f"""\
import asyncio
import os

from viam.robot.client import RobotClient


async def main() -> None:
    key_id, key = os.environ["{key_id_variable}"], os.environ["{key_variable}"]
    options = RobotClient.Options.with_api_key(key, key_id)
{settings}    async with await RobotClient.at_address("{address}", options) as machine:
        print(machine.resource_names)


asyncio.run(main())
"""


def direct_dial_settings(address: str, *, is_encrypted: bool) -> list[str]:
    """Return the settings with which the SDK connects to a machine with a login.

    The control page writes the same (`web/src/views/control/code/python.ts`).
    """
    if is_encrypted:
        return ["disable_webrtc = True"]
    # With a key but without TLS, the SDK fails to connect directly if WebRTC is disabled.
    is_direct = address.startswith("localhost:")
    return ["insecure = True"] if is_direct else ["insecure = True", "force_p2p = True"]
