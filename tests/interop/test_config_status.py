"""The faults of a configuration file, as the log, `cogwork status` and the page show them."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.support.machine.commands import run_command
from tests.support.machine.running import Config, Server, run_server, with_free_port
from tests.support.waiting import poll

on_shared_loop = pytest.mark.asyncio(loop_scope="module")

SENSOR = {"api": "rdk:component:sensor", "model": "fake"}


def sensor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, **SENSOR, "attributes": attributes}


async def run_status(server: Server, *options: str) -> tuple[int | None, str]:
    result = await run_command("status", "--address", f"localhost:{server.port}", *options)
    assert result.err == ""
    return result.code, result.out


async def wait_for_config(server: Server, state: str) -> dict[str, Any]:
    async def ask() -> dict[str, Any]:
        report: dict[str, Any] = (await server.status())["configuration"]
        return report

    return await poll(ask, lambda report: report["state"] == state)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    async with run_server({}, tmp_path_factory.mktemp("server")) as running:
        await running.out.wait_for("applied in")
        yield running


async def apply(server: Server, config: Config) -> None:
    """Let the server of all tests run this configuration, which is not the one that it runs."""
    since = len(server.out.lines)
    server.save(with_free_port(config))
    await server.out.wait_for(" applied in ", since)


@on_shared_loop
async def test_refused_change_is_shown_until_it_is_fixed(server: Server) -> None:
    good = with_free_port({"components": [sensor("a")]})
    await apply(server, good)
    code, out = await run_status(server)
    assert code == 0
    assert "machine.json" not in out
    server.save('{"components": [')
    report = await wait_for_config(server, "refused")
    assert report["running"] == "earlier"
    code, out = await run_status(server)
    assert code == 1
    assert out.startswith("running, 1 of 1 resources ready")
    assert re.search(
        r"machine\.json has been refused for \d+s \(1 error\); the machine keeps its earlier "
        r"configuration\n  .*machine\.json:1:16  error  .*  \[E001\]\n",
        out,
    )
    server.save(' {"components": [')
    await server.out.wait_for("machine.json:1:17")
    assert (await wait_for_config(server, "refused"))["since"] == report["since"]
    page = (await server.get("/status"))[1]
    assert "machine.json has been refused for" in page
    assert "[E001]" in page
    code, out = await run_status(server, "--json")
    assert code == 1
    (found,) = json.loads(out)["configuration"]["diagnostics"]
    assert (found["code"], found["line"]) == ("E001", 1)
    server.save(good)
    await wait_for_config(server, "valid")
    assert await run_status(server, "--json")
    assert (await run_status(server))[0] == 0


async def test_start_on_a_broken_file_reports_it(tmp_path: Path) -> None:
    broken = '{"network": {"bind_address": "localhost:0"}, "components": [{]}'
    async with run_server({"components": [sensor("old")]}, tmp_path) as server:
        await server.wait_for_status(state="running")
        await server.out.wait_for(" applied in ")
    async with run_server(broken, tmp_path) as server:
        await server.wait_for_status(state="running")
        code, out = await run_status(server)
        assert code == 1
        assert "the machine runs the last good configuration instead" in out
        server.save("{")
        await server.out.wait_for("the changed configuration is refused")
        assert (await wait_for_config(server, "refused"))["running"] == "last_good"


@on_shared_loop
async def test_mistyped_attribute_of_a_ready_resource_is_shown_beside_it(server: Server) -> None:
    config = {"components": [sensor("a"), sensor("b", readngs={"x": 1}), sensor("c", colour=1)]}
    await apply(server, config)
    code, out = await run_status(server)
    assert code == 1
    lines = out.splitlines()
    assert lines[1].split()[:3] == ["ready", "rdk:component:sensor/a", "fake"]
    assert "ignored" not in lines[1]
    assert 'ignored: unknown key "readngs"; did you mean "readings"?' in lines[2]
    assert 'ignored: unknown key "colour"' in lines[3]
    assert re.search(r"machine\.json has had 2 errors for \d+s$", lines[4])
    assert "[E103]" in lines[5]
    assert lines[6].startswith("  for all of them, run: cogwork config check ")
    assert "ignored: unknown key &quot;readngs&quot;" in (await server.get("/status"))[1]


@on_shared_loop
async def test_unsupported_sections_are_warnings_in_log_and_status(server: Server) -> None:
    config = {
        "components": [sensor("a")],
        "enable_web_profile": True,
    }
    await apply(server, config)
    await server.out.wait_for(r"warning  this release does not have a profiler  \[W406\]")
    code, out = await run_status(server)
    assert code == 0
    assert "machine.json has had 1 warning for" in out
    assert "this release does not have a profiler" in out
    assert "this release does not have a profiler" in (await server.get("/status"))[1]


@on_shared_loop
async def test_secrets_are_masked_in_reported_diagnostics(server: Server) -> None:
    secret = "correct-horse-battery"
    network = {"bind_address": "localhost:0"}
    good = {"network": network, "components": [sensor("a", readings={"password": secret})]}
    await apply(server, good)
    server.save({**good, "debug": secret})
    await wait_for_config(server, "faulty")
    for path in ("/status", "/status.json"):
        body = (await server.get(path))[1]
        assert "E101" in body
        assert secret not in body


@on_shared_loop
async def test_applied_line_counts_ready_resources_as_the_status_does(server: Server) -> None:
    lost = {
        "name": "lost",
        "api": "rdk:component:camera",
        "model": "ffmpeg",
        "attributes": {"video_path": "rtsp://localhost:1/gone"},
    }
    await apply(server, {"components": [lost]})
    await server.out.wait_for("no frames: ")
    server.save(with_free_port({"components": [lost, sensor("a")]}))
    await server.out.wait_for("applied in .*: 1 ready, 1 not$")
    assert (await run_status(server))[1].startswith("running, 1 of 2 resources ready")


async def test_applied_line_names_the_modules_that_are_still_starting(tmp_path: Path) -> None:
    slow = tmp_path / "slow.sh"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    config = {
        "modules": [{"name": "slow", "executable_path": str(slow)}],
        "components": [
            sensor("a"),
            {"name": "m", "api": "rdk:component:sensor", "model": "acme:slow:one"},
        ],
    }
    async with run_server(config, tmp_path) as server:
        await server.out.wait_for("applied in .*: 1 ready, 1 not; still starting: module slow$")
