"""Log lines of a part, field by field."""

from __future__ import annotations

import asyncio

from tests.interop.app_client.owner import Owner, at
from tests.interop.app_client.test_machines import make_machine
from tests.interop.test_robot_service import PartClient
from viam.gen.app.v1 import app_pb2 as pb
from viam.gen.app.v1.robot_pb2 import LogRequest
from viam.gen.common.v1.common_pb2 import LogEntry

DEADLINE = 60


async def test_lines(owner: Owner) -> None:
    _, _, part = await make_machine(owner)
    caller = PartClient(owner.cloud, part.id)
    await caller.log_in(part.secret)
    await owner.wait()
    lines = [make_line(number) for number in range(4)]
    await caller.call("Log", LogRequest(id=part.id, logs=lines))
    client, check = owner.client, owner.replies.check
    await client.get_robot_part_logs(part.id)
    check(pb.GetRobotPartLogsResponse(logs=lines[::-1]))
    await client.get_robot_part_logs(part.id, "ZEILE 2")
    check(pb.GetRobotPartLogsResponse(logs=[lines[2]]))
    await client.get_robot_part_logs(part.id, log_levels=["warn", "error"])
    check(pb.GetRobotPartLogsResponse(logs=[lines[3], lines[1]]))
    found = await client.get_robot_part_logs(
        part.id, start=at(-9).ToDatetime(), end=at(-8).ToDatetime()
    )
    check(pb.GetRobotPartLogsResponse(logs=[lines[1]]))
    assert [each.message for each in found] == [lines[1].message]
    caller.channel.close()


async def test_tail(owner: Owner) -> None:
    _, _, part = await make_machine(owner)
    caller = PartClient(owner.cloud, part.id)
    await caller.log_in(part.secret)
    tail = await owner.client.tail_robot_part_logs(part.id, errors_only=True, filter="zeile")
    first = asyncio.ensure_future(anext(aiter(tail)))
    lines = [make_line(number) for number in range(4)]
    async with asyncio.timeout(DEADLINE):
        while not first.done():
            await caller.call("Log", LogRequest(id=part.id, logs=lines))
            await asyncio.wait([first], timeout=0.1)
    assert [each.message for each in await first] == [lines[3].message]
    owner.replies.check(pb.TailRobotPartLogsResponse(logs=[lines[3]]))
    caller.channel.close()


def make_line(number: int) -> LogEntry:
    line = LogEntry(
        host="press.local",
        level=("debug", "warn", "info", "error")[number],
        time=at(number - 10),
        logger_name=f"rdk.motor.{number}",
        message=f"Zeile {number} – größer",
        stack=f'File "main.py", line {number}',
    )
    line.time.nanos = 123_456_789
    line.caller.update({"Defined": True, "File": "main.py", "Line": number, "Function": "run"})
    line.fields.add().update({"speed": 1.5, "tags": ["a", "b"]})
    return line
