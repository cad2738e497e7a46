"""The unmodified Python SDK over WebRTC, and what ends a connection."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from benchmarks.parts.webrtc_client import WebRtcClient
from tests.interop.test_typescript_sdk import fake
from tests.support.machine.login import ROLES, config, log_in
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.waiting import wait_until

MACHINE = {
    "components": [
        fake("sensor", "component:sensor"),
        fake("motor", "component:motor"),
        fake("microphone", "component:audio_in"),
        fake("speaker", "component:audio_out"),
        fake("camera", "component:camera", scene="conveyor"),
    ]
}


async def call_everything(server: Server, port: int) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.interop.webrtc_client", "sdk"),
        # The SDK uses WebRTC for numbers, and connects directly to "localhost".
        f"127.0.0.1:{server.port}",
        json.dumps({"port": port}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), 60)
    assert process.returncode == 0, err.decode()
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


async def list_peers(server: Server) -> list[str]:
    """Return the WebRTC clients that have connected."""
    events = json.loads((await server.get("/history.json"))[1])
    return [
        each["peer"]
        for each in events
        if each["event"] == "client"
        and each["state"] == "connected"
        and each["peer"].startswith("webrtc:")
    ]


@pytest.fixture
async def echo_port() -> AsyncIterator[int]:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(1000):
            writer.write(data)
            await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]


async def test_sdk_makes_calls_of_every_kind(tmp_path: Path, echo_port: int) -> None:
    tunnels = {"traffic_tunnel_endpoints": [{"port": echo_port}]}
    async with run_server({**MACHINE, "network": tunnels}, tmp_path) as server:
        await server.wait_for_status(state="running")
        found = await call_everything(server, echo_port)
        print(json.dumps(found))
        assert max(found.pop("seconds to connect")) < 10
        assert found.pop("candidates") == ""
        assert found.pop("peer").startswith("webrtc:")
        assert found.pop("unary")
        assert found.pop("server stream") > 1
        assert found.pop("megabytes down") > 1
        assert "süß\nsüß\n" in found.pop("error")
        assert found == {
            "both streams": "abcdef",
            "megabytes up": 5,
            "deadline": "DEADLINE_EXCEEDED",
            "cancelled": "CANCELLED",
        }
        assert len(await list_peers(server)) == 1
    # Neither the dialer's attempt to use TLS nor the end of the connection is an error.
    assert "Traceback" not in server.output
    assert "Invalid HTTP request" not in server.output


async def test_without_webrtc_clients_connect_directly(tmp_path: Path, echo_port: int) -> None:
    tunnels = {"traffic_tunnel_endpoints": [{"port": echo_port}]}
    async with run_server(
        {**MACHINE, "network": tunnels}, tmp_path, arguments=["-webrtc=false"]
    ) as server:
        await server.wait_for_status(state="running")
        found = await call_everything(server, echo_port)
        assert found["both streams"] == "abcdef"
        assert await list_peers(server) == []


async def test_client_ends_with_its_key(tmp_path: Path) -> None:
    """Also what is not a call, such as video."""
    async with run_server(config(*ROLES), tmp_path) as server:
        await server.out.wait_for("applied in")
        client = WebRtcClient()
        try:
            async with grpc.aio.insecure_channel(f"localhost:{server.port}") as channel:
                login = [("authorization", f"Bearer {log_in(server.port, 'viewer')}")]
                await client.connect(channel, "machine", login)
            await client.call("/viam.robot.v1.RobotService/ResourceNames", b"")
            server.save(with_free_port(config("owner", "operator")))
            await wait_until(lambda: client.data.readyState != "open")
        finally:
            await client.close()
