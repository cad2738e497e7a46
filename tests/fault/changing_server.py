"""A server of the SDK whose resources change ten times a second: `changing_server.py PORT`."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

import asyncio
import logging
import sys
from itertools import count
from typing import Any

from viam.components.sensor import Sensor
from viam.rpc.server import Server


class Scale(Sensor):
    async def get_readings(self, **_: Any) -> dict[str, Any]:
        return {"weight": 3}


async def change(server: Server) -> None:
    for number in count():
        extra = Scale(f"extra-{number % 7}")
        server.register(extra)
        await asyncio.sleep(0.1)
        await server.remove_resource(extra.get_resource_name(extra.name))


async def main(port: int) -> None:
    server = Server([Scale("scale")])
    await asyncio.gather(change(server), server.serve("127.0.0.1", port, logging.ERROR))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
