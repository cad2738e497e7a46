"""Every kind of client, over every kind of path, with each kind of signaling.

The computers are network namespaces. Where a relay is tested, the client and the machine have no
path to each other but TCP, for signaling.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.interop.test_typescript_sdk import run_node
from tests.interop.test_webrtc import MACHINE
from tests.support.machine.running import PROGRAM, Server, run_server
from tests.support.network.namespaces import Computer, local_network, needs_namespaces
from tests.support.network.signaling_server import SignalingServer
from tests.support.sizes import size
from tests.support.waiting import wait_until

from cogwork.wire.transports.ice_servers import with_temporary_credential

TURN = shutil.which("turnserver")
pytestmark = [
    needs_namespaces,
    pytest.mark.skipif(
        TURN is None or shutil.which("nft") is None, reason="needs coturn and nftables"
    ),
]
SECRET = "shared-with-the-machine"
HOST = "belt.factory"
ECHO_PORT = 7007
OPENS = size(2, 20)
"""Connections of each client; the first one also starts the machine's WebRTC process."""
QUICK = (("chromium", "udp", "direct"), ("sdk", "tcp", "external"))
"""What runs every time. The others differ little."""


@contextlib.asynccontextmanager
async def run_turn(computer: Computer) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *computer.prefix,
        *("turnserver", "-n", "--no-cli", "--no-tls", "--no-dtls", "--log-file=stdout"),
        *(f"--listening-ip={computer.address}", f"--relay-ip={computer.address}"),
        *("--use-auth-secret", f"--static-auth-secret={SECRET}", "--realm=cogwork.test"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        # It says nothing when it is ready.
        await wait_until(lambda: is_listening(process.pid))
        yield
    finally:
        process.kill()
        await process.wait()


def is_listening(pid: int) -> bool:
    """Return whether port 3478 is open in the network of a process."""
    tables = [Path(f"/proc/{pid}/net/{each}").read_text() for each in ("udp", "tcp")]
    return all(":0D96 " in each for each in tables)


def separate(first: Computer, second: Computer) -> None:
    """Let no UDP pass directly, as between two routers."""
    for here, there in ((first, second), (second, first)):
        here.run("nft", "add", "table", "inet", "wall")
        chain = "{ type filter hook output priority 0 ; }"
        here.run("nft", "add", "chain", "inet", "wall", "out", chain)
        rule = ("ip", "daddr", there.address, "ip", "protocol", "udp", "drop")
        here.run("nft", "add", "rule", "inet", "wall", "out", *rule)


@contextlib.asynccontextmanager
async def run_there(computer: Computer, ready: str, *command: str) -> AsyncIterator[None]:
    """Run a Python program on a computer, from the line on which it is ready."""
    process = await asyncio.create_subprocess_exec(
        *(*computer.prefix, sys.executable, *command), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert ready in (await process.stdout.readline()).decode()
        yield
    finally:
        process.kill()
        await process.communicate()


@dataclass
class Site:
    """A machine and a client that may have to use a relay or a signaling server."""

    machine: Computer
    client: Computer
    meeting: Computer
    server: Server
    is_direct: bool
    """Whether the machine is its own signaling server."""
    has_relay: bool

    def signaling_for(self, kind: str) -> str:
        if self.is_direct:
            return f"{self.machine.address}:8080"
        # The SDK calls the machine by the name that it dials.
        return f"{HOST if kind == 'sdk' else self.meeting.address}:9090"

    @property
    def page(self) -> str:
        if self.is_direct:
            return f"http://{self.machine.address}:8080/status.json"  # the front page reloads
        return f"http://{self.meeting.address}:9091/"

    async def connect(self, kind: str) -> Any:
        """Make calls of every kind, and return what happened."""
        if kind == "chromium":
            return await run_node(
                "calls.mjs", self.page, HOST, str(OPENS), prefix=self.client.prefix
            )
        options = json.dumps(
            {"host": HOST, "port": ECHO_PORT, "opens": OPENS, "relay": self.has_relay}
        )
        client = (sys.executable, "-m", "tests.interop.webrtc_client")
        found = await asyncio.to_thread(
            self.client.run, *client, kind, self.signaling_for(kind), options, check=False
        )
        assert found.returncode == 0, found.stderr[-2000:]
        return json.loads(found.stdout.splitlines()[-1])


@contextlib.asynccontextmanager
async def open_site(path: str, *, is_direct: bool, directory: Path) -> AsyncIterator[Site]:
    """`path`: `host`, or the transport to the relay."""
    async with contextlib.AsyncExitStack() as stack:
        machine, client, relay, meeting = stack.enter_context(local_network(4))
        network: dict[str, Any] = {
            "bind_address": ":8080",
            "fqdn": HOST,
            "insecure_without_auth": True,
            "traffic_tunnel_endpoints": [{"port": ECHO_PORT}],
        }
        cloud = {
            "id": "part-1",
            "api_key": {"id": "machine", "key": SignalingServer().key},
            "fqdn": HOST,
            "signaling_address": f"{meeting.address}:9090",
            "signaling_insecure": True,
        }
        ice_servers: list[list[str]] = []
        if path != "host":
            separate(machine, client)
            url = f"turn:{relay.address}:3478?transport={path}"
            network["ice_servers"] = [{"urls": [url], "shared_secret": SECRET}]
            login = with_temporary_credential((url,), SECRET, time.time())
            ice_servers = [[url, login.username, login.credential]]
            await stack.enter_async_context(run_turn(relay))
        if not is_direct:
            client.set_names({HOST: meeting.address})
            signaling = (
                "-m",
                "tests.support.network.signaling_server",
                meeting.address,
                json.dumps(ice_servers),
            )
            await stack.enter_async_context(run_there(meeting, "serving", *signaling))
        echo = str(Path(__file__).with_name("echo_server.py"))
        await stack.enter_async_context(run_there(machine, "listening", echo, str(ECHO_PORT)))
        server = await stack.enter_async_context(
            run_server(
                {**MACHINE, "network": network, **({} if is_direct else {"cloud": cloud})},
                directory,
                program=[*machine.prefix, *PROGRAM],
                arguments=["-disable-mdns", "-allow-insecure-creds"],
            )
        )
        await server.out.wait_for("applied in")
        if not is_direct:
            await server.out.wait_for("waiting for clients at the signaling server")
        yield Site(machine, client, meeting, server, is_direct, path != "host")


CELLS = [
    pytest.param(
        kind,
        path,
        signaling,
        id=f"{kind}-{path}-{signaling}",
        marks=() if (kind, path, signaling) in QUICK else pytest.mark.soak,
    )
    for path in ("host", "udp", "tcp")
    for signaling in ("direct", "external")
    for kind in ("sdk", "chromium", "aiortc")
]


@pytest.mark.parametrize(("kind", "path", "signaling"), CELLS)
async def test_clients_connect_and_call(
    tmp_path: Path, kind: str, path: str, signaling: str
) -> None:
    async with open_site(path, is_direct=signaling == "direct", directory=tmp_path) as site:
        found = await site.connect(kind)
        assert SECRET not in site.server.output
    times = sorted(found.pop("seconds to connect"))
    late = times[int(0.95 * (len(times) - 1))]
    print(f"{kind}, {path}, {signaling}: first {times[-1]:.2f} s, p95 {late:.2f} s", found)
    assert late < 20
    assert found.pop("unary")
    assert found.pop("server stream") > 1
    assert found.pop("megabytes up") == 5
    assert found.pop("megabytes down") > 1
    candidates = found.pop("candidates")
    if kind != "sdk":
        assert ("relay" in candidates) == (path != "host"), candidates
    if kind == "chromium":
        assert found == {"connection": "connected"}
        return
    assert found.pop("peer").startswith("webrtc:"), "it connected directly"
    assert "süß\nsüß\n" in found.pop("error")
    assert found == {
        "both streams": "abcdef",
        "deadline": "DEADLINE_EXCEEDED",
        "cancelled": "CANCELLED",
    }
