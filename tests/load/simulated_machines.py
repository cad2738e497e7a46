"""Many machines of a cloud, as its clients see them: they watch, poll and log.

Run as `simulated_machines.py <address> <seconds> <interval>`, with lines of `part secret` on
standard input. The interval is the time between two polls of a machine: ours poll less while they
watch; others do not watch. It varies a little, because machines that waited for the same cloud
would else stay together. Prints a line of JSON for each second.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field

from google.protobuf.struct_pb2 import Struct
from tests.support.own_time import own_time
from tests.support.waiting import pass_time

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.app.v1.robot_pb2 import (  # noqa: E402
    ConfigRequest,
    ConfigResponse,
    LogRequest,
    LogResponse,
)

from cogwork.uplink.cloud_client import CloudClient  # noqa: E402
from cogwork.uplink.cloud_login import CloudLogin  # noqa: E402
from cogwork.uplink.errors import CloudUnavailable  # noqa: E402
from cogwork.wire.messages.follow_method import FOLLOW  # noqa: E402

CONFIG = "/viam.app.v1.RobotService/Config"
LOG = "/viam.app.v1.RobotService/Log"
TIMEOUT = 15.0


@dataclass
class Report:
    """What happened since the last line."""

    watching: set[str] = field(default_factory=set)
    polls: list[float] = field(default_factory=list)
    failed: int = 0

    def take(self) -> str:
        polls, self.polls = sorted(self.polls), []
        failed, self.failed = self.failed, 0
        return json.dumps({"watching": len(self.watching), "polls": polls, "failed": failed})


async def watch(client: CloudClient, part: str, report: Report) -> None:
    while True:
        try:
            request = Struct()
            request.update({"id": part})
            async for _ in client.stream(FOLLOW, request, Struct, 60):
                report.watching.add(part)
        except CloudUnavailable:
            report.failed += 1
        report.watching.discard(part)
        await pass_time(random.uniform(1, 10))


async def poll(client: CloudClient, part: str, report: Report, interval: float) -> None:
    await pass_time(random.uniform(0, interval))
    line = LogRequest(id=part)
    line.logs.add(level="info", logger_name="rdk", message="all is well")
    while True:
        try:
            began = own_time()
            await client.call(CONFIG, ConfigRequest(id=part), ConfigResponse, TIMEOUT)
            report.polls.append(max(0.0, own_time() - began))
            await client.call(LOG, line, LogResponse, TIMEOUT)
        except CloudUnavailable:
            report.failed += 1
        await pass_time(random.uniform(0.9, 1.1) * interval)


async def main(address: str, seconds: float, interval: float) -> None:
    report, tasks = Report(), []
    for line in sys.stdin:
        part, secret = line.split()
        client = CloudClient(f"http://{address}", CloudLogin(part, "robot-secret", secret))
        tasks.append(asyncio.create_task(watch(client, part, report)))
        tasks.append(asyncio.create_task(poll(client, part, report, interval)))
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        await pass_time(1)
        print(report.take(), flush=True)
    for task in tasks:
        task.cancel()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2]), float(sys.argv[3])))
