"""A client on Go's stacks, over every transport: it behaves unlike those in Python and C++."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from tests.support.cloud.joined_fleet import run_fleet
from tests.support.go_programs import build, needs_go, read_lines
from tests.support.machine.login import KEYS, config, key_of
from tests.support.machine.running import Server, run_server
from tests.support.sizes import size
from tests.support.waiting import poll, wait_until
from viam.app.app_client import APIKeyAuthorization
from viam.gen.component.motor.v1.motor_pb2 import IsPoweredRequest, IsPoweredResponse

from cogwork import __version__
from cogwork.cli.main import main

pytestmark = [needs_go, pytest.mark.asyncio(loop_scope="module")]

BURSTS = size(5, 50)
"""Connections of each transport: 20 in all, and 200 at full size."""
CALLS = 32
CANCELLED = size(500, 5000)
CANCELLED_PER_SECOND = 500
"""Calls that a slow computer takes, starts and cancels."""
EVENTS = 200
IS_POWERED = "/viam.component.motor.v1.MotorService/IsPowered"


def component(name: str, kind: str, **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": f"rdk:component:{kind}",
        "model": "fake",
        "attributes": attributes,
    }


MACHINE: dict[str, Any] = {
    "components": [
        component("sensor", "sensor"),
        component("motor", "motor", max_rpm=100),
        component("arm", "arm"),
        component("camera", "camera", width=320, height=240),
        component("other", "camera", width=160, height=120),
        component("board", "board", digital_interrupts=[{"name": "interrupt", "pin": "1"}]),
    ],
    "services": [{"name": "vision", "api": "rdk:service:vision", "model": "fake"}],
}


@dataclass
class Site:
    """A machine, and how clients reach it."""

    server: Server
    address: str
    program: Path
    options: dict[str, list[str]] = field(default_factory=dict)
    """Of the client, by the transport."""

    async def run(self, transport: str, *scenario: str) -> list[Any]:
        """Run a scenario, and return what the client reports."""
        async with asyncio.timeout(90):
            client = await self.start(transport, *scenario)
            out, err = await client.communicate()
        assert client.returncode == 0, err.decode()
        return read_lines(out)

    async def start(self, transport: str, *scenario: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(str(self.program), "-transport", transport, "-address", self.address),
            *(*self.options.get(transport, ()), *scenario),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )


@pytest.fixture(scope="module")
def program() -> Path:
    return build("client")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(program: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A machine without a login."""
    async with run_server(MACHINE, tmp_path_factory.mktemp("alone")) as server:
        await server.wait_for_status(state="running")
        # Its library connects to "localhost" without WebRTC.
        yield Site(server, f"127.0.0.1:{server.port}", program)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def encrypted(program: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A machine with a certificate and a login."""
    directory = tmp_path_factory.mktemp("encrypted")
    certs = directory / "certs"
    assert main(["certs", "local", "machine.local", "--directory", str(certs)]) == 0
    login = config("owner")
    files = {"tls_cert_file": str(certs / "cert.pem"), "tls_key_file": str(certs / "key.pem")}
    with_tls = {**MACHINE, "auth": login["auth"], "network": {**login["network"], **files}}
    async with run_server(with_tls, directory) as server:
        await server.out.wait_for("applied in")
        site = Site(server, f"localhost:{server.port}", program)
        site.options = {"tls": ["-key-id", KEYS["owner"], "-key", key_of("owner")]}
        yield site


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def joined(program: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A machine that has joined a cloud, which knows the keys of its clients."""
    async with run_fleet(tmp_path_factory.mktemp("joined")) as fleet:
        location = await fleet.app.create_location(fleet.organization, "Hall 1")
        async with fleet.run_machine("press", location.id, MACHINE) as machine:
            authorization = APIKeyAuthorization("owner", "robot", machine.part.robot)
            key, key_id = await fleet.app.create_key(fleet.organization, [authorization], "go")
            login = ["-key-id", key_id, "-key", key]
            site = Site(machine.server, f"localhost:{machine.server.port}", program)
            name = ["-address", machine.part.fqdn, "-signaling", fleet.cloud.address]
            site.options = {"cloud": [*login, *name]}
            yield site


@pytest.fixture(params=["plain", "webrtc", "tls", "cloud"])
def way(
    request: pytest.FixtureRequest, alone: Site, encrypted: Site, joined: Site
) -> tuple[Site, str]:
    return {"tls": encrypted, "cloud": joined}.get(request.param, alone), request.param


async def test_calls_of_every_kind(way: tuple[Site, str]) -> None:
    site, transport = way
    (found,) = await site.run(transport, "calls")
    assert found.pop("image") > 1000
    assert found == {
        "version": f"cogwork-{__version__}",
        "missing": "NotFound",
        "overdue": "DeadlineExceeded",
        "moved": 1,
        "capture has an image": True,
    }


async def test_calls_at_the_same_moment_right_after_connecting(way: tuple[Site, str]) -> None:
    site, transport = way
    for _ in range(BURSTS):
        assert await site.run(transport, "burst", str(CALLS)) == [{"failed": {}}]


async def test_cancelled_calls_do_not_delay_the_next(way: tuple[Site, str]) -> None:
    site, transport = way
    (found,) = await site.run(transport, "cancel", str(CANCELLED))
    print(f"{transport}: the next call takes {found['seconds']:.2f} s")
    # It waits for the work on those before, as the connection delivers them in order.
    assert found["seconds"] < max(5, CANCELLED / CANCELLED_PER_SECOND)


async def test_many_streams_of_ticks_get_the_next_one(way: tuple[Site, str]) -> None:
    site, transport = way
    (found,) = await site.run(transport, "events", str(EVENTS))
    assert found["ticks"] == EVENTS


async def test_metadata_may_have_64_kilobytes(way: tuple[Site, str]) -> None:
    site, transport = way
    (found,) = await site.run(transport, "headers", "60000")
    assert found["status"] == "OK", found


async def test_larger_metadata_is_refused_with_the_limit(alone: Site) -> None:
    """By the client itself, which knows the limit of the server."""
    (found,) = await alone.run("plain", "headers", "80000")
    assert found["status"] == "Internal"
    assert "violates the maximum size (69632 bytes) set by server" in found["message"]


@pytest.mark.parametrize("transport", ["webrtc", "cloud"])
async def test_videos_come_again_on_the_same_connection(
    alone: Site, joined: Site, transport: str
) -> None:
    site = joined if transport == "cloud" else alone
    steps = ["+camera", "-camera", "+camera", "-camera", "+other", "+camera", "-other", "+other"]
    found = await site.run(transport, "videos", *steps)
    asked = [step[1:] for step in steps if step[0] == "+"]
    assert found == [{"asked": name, "track": name} for name in asked]


async def test_motor_stops_when_the_client_is_killed(alone: Site) -> None:
    async with grpc.aio.insecure_channel(alone.address) as channel:

        async def is_powered() -> bool:
            request = IsPoweredRequest(name="motor").SerializeToString()
            ask: Any = channel.unary_unary(IS_POWERED)
            return IsPoweredResponse.FromString(await ask(request, timeout=10)).is_on

        for transport in ("plain", "webrtc"):
            client = await alone.start(transport, "move")
            assert client.stdout is not None
            async with asyncio.timeout(60):
                assert read_lines(await client.stdout.readline()) == [{"window": 2}]
            assert await is_powered()
            client.send_signal(signal.SIGKILL)
            await client.wait()
            await poll(is_powered, lambda moves: not moves, 10)


async def test_client_connects_again_after_a_restart(program: Path, tmp_path: Path) -> None:
    found: list[Any] = []

    async def read(client: asyncio.subprocess.Process) -> None:
        assert client.stdout is not None
        async for line in client.stdout:
            found.extend(read_lines(line))

    async with run_server(MACHINE, tmp_path) as server:
        await server.wait_for_status(state="running")
        site = Site(server, f"127.0.0.1:{server.port}", program)
        client = await site.start("plain", "follow", "60")
        reading = asyncio.ensure_future(read(client))
        await wait_until(lambda: found == [{"works": True}])
        server.signal(signal.SIGTERM)
        assert await server.exit_code() == 0
    await wait_until(lambda: found == [{"works": True}, {"works": False}])
    network = {"bind_address": site.address}
    async with run_server({**MACHINE, "network": network}, tmp_path):
        await wait_until(lambda: found[2:] == [{"works": True}])
    client.kill()
    await client.wait()
    await reading
