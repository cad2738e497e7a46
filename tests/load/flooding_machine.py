"""A machine that logs 10,000 lines a second, whether it may send them or not.

Run as `flooding_machine.py <address> <directory>`, with a line `part secret` on standard input, and
then commands: `upload` sends as our machines do, `ignore` sends 1,000 lines ten times a second
whatever the cloud answers, `pause` sends nothing, and `drain` logs no more and sends the newest. It
logs to its disk all the time, so that its own work is the same beside each of them. Prints a line
of JSON for each second.
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import time
from pathlib import Path

from google.protobuf.message import Message
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.v1.robot_pb2 import LogRequest, LogResponse  # noqa: E402

from cogwork.core.clock import SystemClock  # noqa: E402
from cogwork.logs.entry import Entry  # noqa: E402
from cogwork.logs.spool import Spool  # noqa: E402
from cogwork.logs.upload import KEPT_LINES  # noqa: E402
from cogwork.uplink.cloud_client import CloudClient, Reply  # noqa: E402
from cogwork.uplink.cloud_login import CloudLogin  # noqa: E402
from cogwork.uplink.errors import CloudUnavailable  # noqa: E402
from cogwork.uplink.log_link import LogLink  # noqa: E402

LINES_PER_SECOND = 10_000
TURN = 0.02
MESSAGE = "the conveyor reports position %d and waits for the next item of the belt"
LOG = "/viam.app.v1.RobotService/Log"


class PausedClient(CloudClient):
    """A client whose calls begin while it is open. A call that has begun is never cut off, because
    its lines would be sent, and counted, twice."""

    def __init__(self, address: str, login: CloudLogin) -> None:
        super().__init__(address, login)
        self.is_open = asyncio.Event()
        self._turn = asyncio.Lock()

    async def call(self, path: str, request: Message, reply: type[Reply], timeout: float) -> Reply:
        await self.is_open.wait()
        async with self._turn:
            return await super().call(path, request, reply, timeout)

    async def pause(self) -> None:
        """Begin no more calls, and wait for the one that has begun."""
        self.is_open.clear()
        async with self._turn:
            pass


class FloodingMachine:
    def __init__(self, address: str, directory: Path, part: str, secret: str) -> None:
        self._part = part
        login = CloudLogin(part, "robot-secret", secret)
        self._client = CloudClient(f"http://{address}", login)
        self._paused = PausedClient(f"http://{address}", login)
        self._spool = Spool(directory)
        self._link = LogLink(self._spool, self._paused, part, SystemClock())
        self._logging = asyncio.create_task(self._log())
        self._uploading = asyncio.create_task(self._link.run())
        self._ignoring: asyncio.Task[None] | None = None
        self._ignored = 0
        """Refusals that it ignored."""

    async def run(self, command: str) -> None:
        await self._paused.pause()
        await end(self._ignoring)
        if command == "drain":
            await end(self._logging)
            await end(self._uploading)
            await asyncio.to_thread(self._spool.drop_older, KEPT_LINES)
            self._uploading = asyncio.create_task(self._link.run())
        if command in ("upload", "drain"):
            self._paused.is_open.set()
            self._link.retry_now()
        elif command == "ignore":
            self._ignoring = asyncio.create_task(self._ignore_refusals())

    async def report(self) -> str:
        counts = await asyncio.to_thread(self._spool.counts)
        return json.dumps({**counts._asdict(), "ignored": self._ignored})

    async def _log(self) -> None:
        """Put lines into the queue, as many as should be there by now."""
        began, put = time.monotonic(), 0
        while True:
            due = int((time.monotonic() - began) * LINES_PER_SECOND)
            for number in range(put, due):
                self._link.put(Entry(time.time(), logging.INFO, "rdk", "x.py:1", MESSAGE % number))
            put = due
            await pass_time(TURN)

    async def _ignore_refusals(self) -> None:
        request = LogRequest(id=self._part)
        for number in range(1000):
            request.logs.add(level="info", logger_name="rdk", message=MESSAGE % number)
        due = time.monotonic()
        while True:
            due = max(due + 0.1, time.monotonic() - 1)
            try:
                await self._client.call(LOG, request, LogResponse, 15)
            except CloudUnavailable:
                self._ignored += 1
            await pass_time(due - time.monotonic())


async def end(task: asyncio.Task[None] | None) -> None:
    if task is not None:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def main(address: str, directory: str) -> None:
    part, secret = (await asyncio.to_thread(sys.stdin.readline)).split()
    machine = FloodingMachine(address, Path(directory), part, secret)
    commands: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    loop.add_reader(sys.stdin, lambda: commands.put_nowait(sys.stdin.readline().strip()))
    while True:
        while not commands.empty():
            await machine.run(commands.get_nowait())
        print(await machine.report(), flush=True)
        await pass_time(1)


if __name__ == "__main__":
    logging.basicConfig(stream=sys.stderr)
    asyncio.run(main(*sys.argv[1:]))
