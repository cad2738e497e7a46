"""Every method accepts its largest legal request without blocking the loop, and none larger."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from grpclib.const import Status
from tests.fault.largest import large_requests
from tests.fault.requests import Method, public_methods
from tests.support.machine.watched import ATTEMPTS, LONGEST_TURN, WatchedServer, run_watched
from tests.support.network.http2_client import Client, connected
from tests.support.sizes import FULL

COMPONENTS = (
    "arm", "audio_in", "audio_out", "base", "board", "button", "camera", "encoder", "gantry",
    "generic", "gripper", "input_controller", "motor", "movement_sensor", "pose_tracker",
    "power_sensor", "sensor", "servo", "switch",
)  # fmt: skip
SERVICES = {
    "discovery": "fake",
    "generic": "fake",
    "motion": "builtin",
    "navigation": "fake",
    "slam": "fake",
    "vision": "fake",
    "world_state_store": "fake",
}
RAW = ("MLModelService/Infer", "VisionService/GetClassifications", "VisionService/GetDetections")
"""They take the bytes as they come, and have limits of their own."""
REFUSED = (Status.RESOURCE_EXHAUSTED.value, Status.UNIMPLEMENTED.value)
DEADLINE = 1.0
"""Seconds after which a call counts as one that goes on."""


def machine() -> dict[str, Any]:
    """Return a machine with a resource of every API, each named after it."""
    frame = {"frame": {"parent": "world"}}
    return {
        "components": [
            {"name": kind, "api": f"rdk:component:{kind}", "model": "fake", **frame}
            for kind in COMPONENTS
        ],
        "services": [
            {
                "name": f"{kind}-service",
                "api": f"rdk:service:{kind}",
                "model": model,
                "attributes": {"camera_name": "camera"} if kind == "vision" else {},
            }
            for kind, model in SERVICES.items()
        ],
    }


def names(method: Method) -> dict[str, str]:
    """Return the resource name for each field that names it."""
    _, kind, subtype, *_ = method.path[1:].split(".")
    found = subtype
    for each in (*COMPONENTS, *SERVICES):
        if each.replace("_", "") == subtype:
            found = f"{each}-service" if kind == "service" else each
    return dict.fromkeys(("name", "controller", "board_name"), found)


async def status(client: Client, method: Method, request: bytes) -> int | None:
    """Return the status of the call; None if it goes on."""
    try:
        async with asyncio.timeout(DEADLINE):
            return (await client.call(method.path, request)).status
    except TimeoutError:
        return None


class Sizes:
    def __init__(self, server: WatchedServer, client: Client) -> None:
        self._server = server
        self._client = client
        self.requests = 0
        self.slow: list[str] = []
        self.accepted: list[str] = []

    async def try_all(self, method: Method) -> None:
        for shape in large_requests(method.request, names(method)):
            what = f"{method.path.rpartition('.')[2]} {shape.label}"
            busy = await self._longest_turn(method, shape.largest)
            if busy > LONGEST_TURN:
                self.slow.append(f"{what}: {busy:.0f} ms")
            answer = await status(self._client, method, shape.over)
            if answer not in REFUSED and not method.path.endswith(RAW):
                self.accepted.append(f"{what}: {answer}")
            self.requests += 2

    async def _longest_turn(self, method: Method, request: bytes) -> float:
        """Return milliseconds, from several attempts, as in WatchedServer.attack."""
        for _ in range(ATTEMPTS):
            await self._server.reset_longest_turn()
            await status(self._client, method, request)
            busy = await self._server.read_longest_turn()
            if busy <= LONGEST_TURN:
                break
        return busy


@pytest.mark.timeout(300)
async def test_largest_requests_do_not_block_the_loop_and_larger_are_refused(
    tmp_path: Path,
) -> None:
    methods = [method for method in public_methods() if method.served]
    if not FULL:
        # Equal messages are parsed alike, whatever the service; a third of them shows the rest.
        methods = list({method.request.full_name: method for method in methods}.values())[::2]
    async with run_watched(tmp_path, machine()) as server:
        await server.begin()
        async with connected(server.server.port) as client:
            sizes = Sizes(server, client)
            for method in methods:
                await sizes.try_all(method)
        phase = await server.end(f"{sizes.requests} large requests")
    assert sizes.requests > (800 if FULL else 200)
    assert not sizes.slow, sizes.slow
    assert not sizes.accepted, sizes.accepted
    assert phase.bystander.failed == 0
