"""A server made with the public SDK only. Run as `sdk_server.py PORT`."""

# The SDK's own classes are not all typed.
# mypy: disable-error-code="no-untyped-call,misc"

import asyncio
import logging
import sys
from typing import Any

from viam.components.sensor import Sensor
from viam.rpc.server import Server


class Thermometer(Sensor):
    async def get_readings(self, **_: Any) -> dict[str, Any]:
        return {"celsius": 21.5}


async def main(port: int) -> None:
    server = Server([Thermometer("thermometer")])
    await server.serve("127.0.0.1", port, logging.ERROR)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
