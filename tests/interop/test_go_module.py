"""A module in Go that speaks the module protocol with the public API alone."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
import pytest_asyncio
from tests.support.go_programs import build, needs_go
from tests.support.machine.running import Server, run_server
from tests.support.waiting import poll, wait_until
from viam.gen.common.v1.common_pb2 import DoCommandRequest, DoCommandResponse
from viam.utils import dict_to_struct, struct_to_dict

pytestmark = [needs_go, pytest.mark.asyncio(loop_scope="module")]

DO_COMMAND = "/viam.component.generic.v1.GenericService/DoCommand"
NAVIGATION = "/viam.service.navigation.v1.NavigationService"
GAUGE = "/acme.gauge.v1.GaugeService"
BOX = {"type": "box", "x": 120, "y": 20, "z": 30}
WAYPOINT = 2
"""The number of a mode of navigation."""


def make_config(program: Path, **lamp: Any) -> dict[str, Any]:
    return {
        "modules": [
            {"name": "lamps", "executable_path": str(program), "forward_headers": ["x-mine"]}
        ],
        "components": [
            {
                "name": "lamp",
                "api": "rdk:component:generic",
                "model": "acme:go:lamp",
                "frame": {"parent": "world", "geometry": BOX},
                **lamp,
            },
            {"name": "gauge", "api": "acme:component:gauge", "model": "acme:go:gauge"},
        ],
        "services": [{"name": "pilot", "api": "rdk:service:navigation", "model": "acme:go:pilot"}],
    }


@dataclass
class Site:
    server: Server
    program: Path
    channel: grpc.aio.Channel

    async def call(self, path: str, request: bytes, **options: Any) -> bytes:
        call: Any = self.channel.unary_unary(path)
        return bytes(await call(request, timeout=30, **options))

    async def command(self, values: dict[str, Any], **options: Any) -> dict[str, Any]:
        request = DoCommandRequest(name="lamp", command=dict_to_struct(values))
        reply = await self.call(DO_COMMAND, request.SerializeToString(), **options)
        return dict(struct_to_dict(DoCommandResponse.FromString(reply).result))

    def save(self, **lamp: Any) -> None:
        config = make_config(self.program, **lamp)
        config["network"] = {"bind_address": f"127.0.0.1:{self.server.port}"}
        self.server.file.write_text(json.dumps(config))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    program = build("module")
    async with run_server(make_config(program), tmp_path_factory.mktemp("go")) as server:
        for name in ("lamp", "gauge", "pilot"):
            await server.out.wait_for(f"{name} is ready")
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            await channel.channel_ready()
            yield Site(server, program, channel)


async def test_component_gets_its_geometry_and_the_headers_that_are_listed(site: Site) -> None:
    metadata = [("x-mine", "1"), ("x-other", "2"), ("viam-sid", "s"), ("opid", "o")]
    found = await site.command({}, metadata=metadata)
    headers = found.pop("headers")
    assert found == {"level": "info", "changes": 1, "width": 120}
    assert (headers["x-mine"], headers["opid"]) == ("1", "o")
    assert not {"x-other", "viam-sid", "authorization"} & headers.keys()


async def test_methods_of_its_version_of_the_api_are_called(site: Site) -> None:
    """The SDK of today knows neither of them."""
    named = b"\x0a\x05pilot"
    assert await site.call(f"{NAVIGATION}/SetMode", named + b"\x10%c" % WAYPOINT) == b""
    assert await site.call(f"{NAVIGATION}/GetMode", named) == b"\x08%c" % WAYPOINT
    done = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "cogwork.cli.main", "call"),
        *("--address", f"127.0.0.1:{site.server.port}", "pilot", "GetMode"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await done.communicate()
    assert json.loads(out) == {"mode": "MODE_WAYPOINT"}


async def test_api_of_its_own_is_called_and_streamed(site: Site) -> None:
    assert await site.call(f"{GAUGE}/Read", b"\x0a\x05gauge") == b"\x0a\x0dgauge reads 7"
    watch: Any = site.channel.unary_stream(f"{GAUGE}/Watch")
    streams = [watch(b"\x0a\x05gauge") for _ in range(150)]
    # They say nothing, and do not use up the places of the calls.
    assert await site.call(f"{GAUGE}/Read", b"\x0a\x05gauge")
    assert not any(each.done() for each in streams)
    for each in streams:
        each.cancel()


async def test_lines_of_a_resource_keep_what_they_carry(site: Site) -> None:
    await site.command({"log": "shines"})
    line = await site.server.out.wait_for(r"INFO\t(\S+)\t(\S+)\tshines\t(.*)")
    logger, place, fields = line.groups()
    assert logger == "rdk.resource_manager.rdk:component:generic/lamp"
    assert place == "lamp/lamp.go:42"
    assert json.loads(fields) == {"lux": 21.5, "on": True, "took": "1.5s", "where": "hall"}
    await wait_until(lambda: "goroutine 1 [running]" in site.server.output)


async def test_lower_level_of_a_resource_reaches_it_and_restarts_nothing(site: Site) -> None:
    status = await site.server.status()
    (before,) = status["modules"]
    site.save(log_configuration={"level": "debug"})

    async def read_level() -> str:
        return str((await site.command({}))["level"])

    await poll(read_level, lambda level: level == "debug")
    await site.command({"log": "whispers"})
    await site.server.out.wait_for(r"DEBUG\trdk\.resource_manager\S+lamp\t.*whispers")
    (after,) = (await site.server.status())["modules"]
    assert (before["pid"], before["starts"]) == (after["pid"], after["starts"])
