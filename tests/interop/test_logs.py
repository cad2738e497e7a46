"""The log of a running server follows its configuration without rebuilding resources."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import grpc.aio
from tests.support.machine.running import DEADLINE, Server, run_server

from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1.common_pb2 import LogEntry  # noqa: E402
from viam.gen.robot.v1.robot_pb2 import LogRequest  # noqa: E402

LOGGER = "rdk.resource_manager.rdk:component:switch/lamp"


def config(switch: Any = None, position: int = 0, **more: Any) -> dict[str, Any]:
    lamp = {
        "name": "lamp",
        "api": "rdk:component:switch",
        "model": "fake",
        "attributes": {"position": position},
        **(switch or {}),
    }
    return {"network": {"bind_address": "localhost:0"}, "components": [lamp], **more}


async def wait_for_changes(server: Server, number: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while len(await read_lines(server, "text=applied%20in")) < number:
            pass


async def read_levels(server: Server) -> list[str]:
    return [line["level"] for line in await read_lines(server, f"logger={LOGGER}")]


async def read_lines(server: Server, query: str = "") -> list[dict[str, Any]]:
    body = (await server.get(f"/logs.jsonl?{query}"))[1]
    # The reply is chunked; only the lines of the log are JSON.
    return [json.loads(line) for line in body.splitlines() if line.startswith("{")]


async def log(server: Server, message: str, times: int = 1) -> None:
    entry = LogEntry(level="info", logger_name="talker", message=message)
    async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
        call: Any = channel.unary_unary("/viam.robot.v1.RobotService/Log")
        await call(LogRequest(logs=[entry] * times).SerializeToString(), timeout=DEADLINE)


async def test_log_levels_change_live(tmp_path: Path) -> None:
    """Each change of the position rebuilds the switch, which its logger reports."""
    async with run_server(config(), tmp_path) as server:
        await wait_for_changes(server, 1)
        assert await read_levels(server) == ["info"]
        server.save(config(switch={"log_configuration": {"level": "error"}}, position=1))
        await wait_for_changes(server, 2)
        assert await read_levels(server) == ["info"]
        server.save(config(log=[{"pattern": "rdk.resource_manager.*", "level": "debug"}]))
        await wait_for_changes(server, 3)
        assert await read_levels(server) == ["info", "debug", "info"]


async def test_changed_log_level_rebuilds_nothing(tmp_path: Path) -> None:
    async with run_server(config(), tmp_path) as server:
        await wait_for_changes(server, 1)
        since = (await server.status())["resources"][0]["since"]
        server.save(config(switch={"log_configuration": {"level": "debug"}}, debug=True))
        await wait_for_changes(server, 2)
        assert (await server.status())["resources"][0]["since"] == since


async def test_repeated_messages_are_suppressed_until_deduplication_is_disabled(
    tmp_path: Path,
) -> None:
    async with run_server(config(), tmp_path) as server:
        await wait_for_changes(server, 1)
        await log(server, "drip", 50)
        assert [line["message"] for line in await read_lines(server, "text=drip")] == [
            "drip",
            "drip",
            "drip",
            "repeated; suppressing for 10s: drip",
        ]
        server.save(config(disable_log_deduplication=True))
        await wait_for_changes(server, 2)
        await log(server, "drip", 50)
        told = [line["message"] for line in await read_lines(server, "text=drip")]
        assert told[4] == "suppressed 47 repeats of: drip"
        assert told[5:] == ["drip"] * 50


async def test_followed_log_streams_new_lines(tmp_path: Path) -> None:
    async with run_server(config(), tmp_path) as server:
        reader, writer = await asyncio.open_connection("localhost", server.port)
        writer.write(b"GET /logs.jsonl?text=hello&follow=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await log(server, "hello there")
        heard = await asyncio.wait_for(reader.readuntil(b"hello there"), DEADLINE)
        assert heard
        writer.close()
        await writer.wait_closed()
