"""Reports what moves on a machine, from a process that may be on another network than the test.

Run as `python -m tests.interop.motion_observer <port> <subtype>,<subtype>…`; each is the name of a
component, too. It prints a line of JSON with the monotonic time whenever something starts or stops,
and when it had looked before that; it ends with its standard input.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from grpclib.client import Channel
from tests.support.machine.sdk_mover import CLIENTS

INTERVAL = 0.01


async def observe(port: int, subtypes: list[str]) -> None:
    channel = Channel("localhost", port)
    clients = {each: CLIENTS[each](each, channel) for each in subtypes}
    before, looked = None, time.monotonic()
    while True:
        states = await asyncio.gather(*(client.is_moving() for client in clients.values()))
        moving = [name for name, moves in zip(clients, states, strict=True) if moves]
        now = time.monotonic()
        if moving != before:
            print(json.dumps({"at": now, "looked": looked, "moving": moving}), flush=True)
        before, looked = moving, now
        await asyncio.sleep(INTERVAL)


async def main(port: str, subtypes: str) -> None:
    observing = asyncio.ensure_future(observe(int(port), subtypes.split(",")))
    ending = asyncio.ensure_future(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait([observing, ending], return_when=asyncio.FIRST_COMPLETED)
    if observing.done():
        observing.result()
    observing.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
