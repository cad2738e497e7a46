"""Clients abuse the log: too many lines, forged lines and wrong times."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from google.protobuf.timestamp_pb2 import Timestamp
from tests.support.machine.watched import LONGEST_TURN, WatchedServer, run_watched

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402

pytestmark = pytest.mark.asyncio(loop_scope="module")

KIB = 1 << 10
MOST_KEPT = 50.0
"""MiB that the server may have grown."""
FORGED = "2026-01-01T00:00:00.000Z\tERROR\trdk.activity\tserve.py:1\tforged"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    async with run_watched(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(watched: WatchedServer) -> WatchedServer:
    """A server that is calm, whatever was done to it before."""
    await watched.wait_until_calm()
    return watched


async def log(server: WatchedServer, *entries: common.LogEntry) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.server.port}") as channel:
        call: Any = channel.unary_unary("/viam.robot.v1.RobotService/Log")
        await call(robot.LogRequest(logs=entries).SerializeToString(), timeout=60)


async def test_many_and_long_lines_are_bounded(server: WatchedServer) -> None:
    await log(server, common.LogEntry(level="info", message="first"))

    async def attack() -> None:
        await log(server, *[common.LogEntry(level="info", message="again")] * 10_000)
        for number in range(50):
            await log(server, common.LogEntry(level="info", message=f"{number}{'x' * 200 * KIB}"))

    phase = await server.attack("lines", attack)
    assert phase.bystander.failed == 0
    assert phase.busy < LONGEST_TURN
    assert phase.growth < MOST_KEPT
    longest = max(map(len, server.server.out.lines))
    assert longest < 34 * KIB
    assert "characters]" in server.server.out.lines[-1]


async def test_client_messages_cannot_forge_log_lines(server: WatchedServer) -> None:
    mark = "\x1b]0;title\x07\u202e"
    await log(
        server,
        common.LogEntry(level="info", logger_name="a", message=f"b\n{FORGED}{mark}"),
        common.LogEntry(level="info", logger_name=f"rdk.{mark}\n{FORGED}", message="c"),
        common.LogEntry(level="info", message="future", time=Timestamp(seconds=1 << 37)),
        common.LogEntry(level="info", logger_name="a", message="the last"),
    )
    await server.server.out.wait_for("the last")
    lines = server.server.out.lines
    assert not any(line.startswith("2026-01-01") for line in lines)
    assert "\x1b" not in "".join(lines)
    assert "\u202e" not in "".join(lines)
    _, kept = await server.server.get("/logs.jsonl?text=future")
    (entry,) = (json.loads(line) for line in kept.splitlines() if line.startswith("{"))
    assert re.match("6325-", entry["fields"]["client_time"])
    assert not entry["time"].startswith("6325")
