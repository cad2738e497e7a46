"""Access that is removed ends within two seconds: in the cloud, and on every connected machine."""

from __future__ import annotations

import asyncio
import contextlib
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from benchmarks.parts.webrtc_client import CallFailed, WebRtcClient
from google.protobuf.struct_pb2 import Struct
from tests.support.cloud.joined_fleet import (
    Fleet,
    JoinedMachine,
    Login,
    Metadata,
    call_raw,
    log_in,
    log_in_to,
    measure_until_refused,
    run_fleet,
    wait_for_login,
    webrtc_client,
)
from tests.support.machine.running import DEADLINE
from tests.support.sizes import limit, size
from viam.app.app_client import APIKeyAuthorization
from viam.gen.app.v1.app_pb2 import GetRobotRequest
from viam.gen.app.v1.robot_pb2 import ConfigRequest

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROUNDS = size(ci=1, full=50)
NAMES = "/viam.robot.v1.RobotService/ResourceNames"
GET_ROBOT = "/viam.app.v1.AppService/GetRobot"
CONFIG = "/viam.app.v1.RobotService/Config"
OWNERS_ONLY = "/viam.service.shell.v1.ShellService/DoCommand"
SENSOR = {"components": [{"name": "scale", "api": "rdk:component:sensor", "model": "fake"}]}
REFUSALS = (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED)

Probe = Callable[[], Awaitable[bool]]
End = Callable[[], Awaitable[object]]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Fleet]:
    async with run_fleet(tmp_path_factory.mktemp("fleet")) as fleet:
        await fleet.channel.channel_ready()
        yield fleet


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def machine(fleet: Fleet) -> AsyncIterator[JoinedMachine]:
    location = await fleet.app.create_location(fleet.organization, "Hall")
    async with fleet.run_machine("press", location.id, SENSOR) as machine:
        await machine.channel.channel_ready()
        yield machine


def call_probe(channel: grpc.aio.Channel, path: str, metadata: Metadata, request: bytes) -> Probe:
    async def probe() -> bool:
        try:
            await call_raw(channel, path, metadata, request)
        except grpc.aio.AioRpcError as error:
            return error.code() not in REFUSALS and error.code() is not grpc.StatusCode.NOT_FOUND
        return True

    return probe


def owner_probe(channel: grpc.aio.Channel, metadata: Metadata) -> Probe:
    """A call that only owners may make; there is no shell, which they are told."""

    async def probe() -> bool:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await call_raw(channel, OWNERS_ONLY, metadata, b"")
        return refused.value.code() not in REFUSALS

    return probe


def webrtc_probe(client: WebRtcClient, path: str = NAMES) -> Probe:
    async def probe() -> bool:
        call = asyncio.ensure_future(client.call(path, b""))
        try:
            async with asyncio.timeout(DEADLINE):
                # A call on a connection that was closed is never answered.
                while client.data.readyState == "open" and not call.done():
                    await asyncio.wait({call}, timeout=0.01)
            if client.data.readyState != "open":
                return False
            await call
        except CallFailed as error:
            return error.code not in (7, 16)
        finally:
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
        return True

    return probe


def http_probe(machine: JoinedMachine, metadata: Metadata) -> Probe:
    request = urllib.request.Request(f"{machine.server.url}/status.json", headers=dict(metadata))

    def ask() -> bool:
        try:
            with urllib.request.urlopen(request, timeout=5) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError as error:
            return error.code not in (401, 403)
        except ConnectionError:  # the server has ended it
            return False

    return lambda: asyncio.to_thread(ask)


async def open_clients(
    fleet: Fleet, machine: JoinedMachine, login: Login, stack: contextlib.AsyncExitStack
) -> dict[str, Probe]:
    """Connect in every way with one login, and return the calls to make."""
    at_cloud = await log_in(fleet.channel, login)
    at_machine = await wait_for_login(machine.channel, login)
    token = await log_in_to(fleet.channel, machine.part.fqdn, at_cloud)
    host = machine.part.fqdn
    through_cloud = await stack.enter_async_context(webrtc_client(fleet.channel, host, at_cloud))
    direct = await stack.enter_async_context(webrtc_client(machine.channel, host, at_machine))
    return {
        "gRPC": call_probe(machine.channel, NAMES, at_machine, b""),
        "gRPC with a token of the cloud": call_probe(machine.channel, NAMES, token, b""),
        "WebRTC through the cloud": webrtc_probe(through_cloud),
        "WebRTC": webrtc_probe(direct),
        "HTTP": http_probe(machine, at_machine),
    }


async def end_and_measure(
    probes: dict[str, Probe], end: End, figures: dict[str, list[float]], kind: str
) -> None:
    for way, probe in probes.items():
        assert await probe(), f"{way} does not work before"
    await end()
    began = asyncio.get_running_loop().time()
    found = await asyncio.gather(
        *(measure_until_refused(probe, began) for probe in probes.values())
    )
    for way, (seconds, served) in zip(probes, found, strict=True):
        assert served == 0, f"{way}: {served} calls were served after the first refusal"
        figures[f"{kind}, {way}"].append(seconds)


def report(figures: dict[str, list[float]]) -> None:
    for what, seconds in figures.items():
        print(f"=> {what}: {len(seconds)} times, refused after {max(seconds):.3f} s at most")
        assert max(seconds) < limit(2), what


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_everything_of_a_key_ends(fleet: Fleet, machine: JoinedMachine) -> None:
    figures: dict[str, list[float]] = defaultdict(list)
    robot = machine.part.robot
    role = APIKeyAuthorization("operator", "robot", robot)
    for _ in range(ROUNDS):
        for kind in ("deleted key", "replaced key", "removed role"):
            key, key_id = await fleet.app.create_key(fleet.organization, [role], "visitor")
            login = Login(key_id, "api-key", key)
            async with contextlib.AsyncExitStack() as stack:
                probes = await open_clients(fleet, machine, login, stack)
                request = GetRobotRequest(id=robot).SerializeToString()
                metadata = await log_in(fleet.channel, login)
                probes["cloud"] = call_probe(fleet.channel, GET_ROBOT, metadata, request)
                ends: dict[str, End] = {
                    "deleted key": partial(fleet.app.delete_key, key_id),
                    "replaced key": partial(fleet.app.rotate_key, key_id),
                    "removed role": partial(
                        fleet.app.remove_role,
                        *(fleet.organization, key_id, "operator", "robot", robot),
                    ),
                }
                await end_and_measure(probes, ends[kind], figures, kind)
    report(figures)


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_owner_that_becomes_an_operator_is_one_at_once(
    fleet: Fleet, machine: JoinedMachine
) -> None:
    figures: dict[str, list[float]] = defaultdict(list)
    robot = machine.part.robot
    owner = APIKeyAuthorization("owner", "robot", robot)
    for _ in range(ROUNDS):
        key, key_id = await fleet.app.create_key(fleet.organization, [owner], "visitor")
        login = Login(key_id, "api-key", key)
        at_cloud = await log_in(fleet.channel, login)
        at_machine = await wait_for_login(machine.channel, login)
        token = await log_in_to(fleet.channel, machine.part.fqdn, at_cloud)
        async with webrtc_client(fleet.channel, machine.part.fqdn, at_cloud) as client:
            probes = {
                "gRPC": owner_probe(machine.channel, at_machine),
                "gRPC with a token of the cloud": owner_probe(machine.channel, token),
                "WebRTC through the cloud": webrtc_probe(client, OWNERS_ONLY),
            }

            async def change(key_id: str = key_id) -> None:
                await fleet.app.add_role(fleet.organization, key_id, "operator", "robot", robot)

            await end_and_measure(probes, change, figures, "lower role")
            assert await wait_for_login(machine.channel, login)
            names = call_probe(machine.channel, NAMES, at_machine, b"")
            assert await names(), "an operator may still look"
    report(figures)


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_everything_of_a_location_secret_ends(fleet: Fleet, machine: JoinedMachine) -> None:
    figures: dict[str, list[float]] = defaultdict(list)
    for _ in range(ROUNDS):
        auth = await fleet.app.create_location_secret(machine.part.location_id)
        (secret,) = auth.secrets
        login = Login(machine.part.fqdn, "robot-location-secret", secret.secret)
        async with contextlib.AsyncExitStack() as stack:
            probes = await open_clients(fleet, machine, login, stack)

            async def delete(secret_id: str = secret.id) -> None:
                location = machine.part.location_id
                await fleet.app.delete_location_secret(secret_id, location)

            await end_and_measure(probes, delete, figures, "location secret")
    report(figures)


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_roles_end_that_are_not_inherited_at_another_place(
    fleet: Fleet, machine: JoinedMachine
) -> None:
    """A machine leaves the location on which a key has its role, or its location leaves it."""
    figures: dict[str, list[float]] = defaultdict(list)
    app, robot, hall = fleet.app, machine.part.robot, machine.part.location_id
    out = machine.server.out
    yard = (await app.create_location(fleet.organization, "Yard")).id
    role = APIKeyAuthorization("operator", "location", yard)
    key, key_id = await app.create_key(fleet.organization, [role], "visitor")
    login = Login(key_id, "api-key", key)
    for _ in range(ROUNDS):
        # It gets other names, with which it waits for clients again.
        since = len(out.lines)
        await app.update_robot(robot, "press", yard)
        await out.wait_for("waiting for clients", since)
        since = len(out.lines)
        async with contextlib.AsyncExitStack() as stack:
            probes = await open_clients(fleet, machine, login, stack)
            move = partial(app.update_robot, robot, "press", hall)
            await end_and_measure(probes, move, figures, "moved machine")
        await out.wait_for("waiting for clients", since)
        await app.update_location(hall, parent_location_id=yard)
        async with contextlib.AsyncExitStack() as stack:
            probes = await open_clients(fleet, machine, login, stack)
            lift = partial(app.update_location, hall, parent_location_id="")
            await end_and_measure(probes, lift, figures, "moved location")
    report(figures)


@pytest.mark.timeout(size(ci=240, full=3600))
async def test_everything_of_a_part_secret_ends(fleet: Fleet) -> None:
    """Its calls, and the streams with which a machine listens and waits for clients."""
    figures: dict[str, list[float]] = defaultdict(list)
    location = await fleet.app.create_location(fleet.organization, "Hall")
    for number in range(ROUNDS):
        machine = await fleet.app.new_robot(f"saw {number}", location.id)
        (part,) = await fleet.app.get_robot_parts(machine)
        metadata = await log_in(fleet.channel, Login(part.id, "robot-secret", part.secret))
        request = ConfigRequest(id=part.id).SerializeToString()
        probes = {
            "cloud": call_probe(fleet.channel, CONFIG, metadata, request),
            "Follow": await stream_probe(fleet, "Follow", part.id, part.fqdn, metadata),
            "Answer": await stream_probe(fleet, "Answer", part.id, part.fqdn, metadata),
        }

        async def delete(machine: str = machine) -> None:
            await fleet.app.delete_robot(machine)

        await end_and_measure(probes, delete, figures, "part secret")
    report(figures)


async def stream_probe(fleet: Fleet, name: str, part: str, host: str, metadata: Metadata) -> Probe:
    """Open a stream of a machine, and return whether it is still open."""
    if name == "Follow":
        request = Struct()
        request.update({"id": part})
        follow: Any = fleet.channel.unary_stream("/cogwork.cloud.v1.FollowService/Follow")
        stream = follow(request.SerializeToString(), metadata=metadata)
    else:
        answer: Any = fleet.channel.stream_stream("/proto.rpc.webrtc.v1.SignalingService/Answer")
        extra = [("rpc-host", host), ("heartbeats-allowed", "true")]
        stream = answer(metadata=[*metadata, *extra])
    await stream.read()

    async def probe() -> bool:
        return not stream.done()

    return probe
