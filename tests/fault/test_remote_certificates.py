"""A remote whose certificate changes: to another authority's, and back, or to a valid one."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trustme
from tests.fault.local_calls import LOCAL, compare, run_twin
from tests.fault.test_certificate_replacement import replace_pair, wait_until_served
from tests.interop.test_remotes import LINE, wait_for_state
from tests.support.machine.running import Server, run_server
from tests.support.machine.sdk_robot import connect_sdk
from tests.support.media.rtsp_server import free_port
from tests.support.sizes import limit, size
from tests.support.waiting import pass_time, poll
from viam.components.sensor import Sensor

REPLACEMENTS = size(ci=3, full=20)
RESTARTS = size(ci=1, full=5)
DISTRUST = size(ci=1, full=3)
"""Seconds for which the remote is not trusted."""
RECONNECT_INTERVAL = 1.0
SCALE = "rdk:component:sensor/line:scale"


def line_config(directory: Path, port: int) -> dict[str, Any]:
    network = {
        "bind_address": f"localhost:{port}",
        "tls_cert_file": str(directory / "cert.pem"),
        "tls_key_file": str(directory / "key.pem"),
    }
    return {**LINE, "network": network}


@contextlib.asynccontextmanager
async def run_cell(authority: trustme.CA, directory: Path, port: int) -> AsyncIterator[Server]:
    """Run a machine that trusts the authority, with a remote at the port."""
    trusted = directory / "ca.pem"
    authority.cert_pem.write_to_path(str(trusted))
    remote = {"name": "line", "address": f"localhost:{port}"}
    config = {"remotes": [remote], "components": [LOCAL]}
    async with run_server(config, directory, environment={"SSL_CERT_FILE": str(trusted)}) as cell:
        yield cell


async def test_certificate_of_another_authority(tmp_path: Path) -> None:
    line_files, cell_files = tmp_path / "line", tmp_path / "cell"
    line_files.mkdir()
    cell_files.mkdir()
    trusted, other = trustme.CA(), trustme.CA()
    port = free_port()
    config = line_config(line_files, port)
    async with run_cell(trusted, cell_files, port) as cell, run_twin(tmp_path) as twin:

        async def change_authority() -> None:
            for _ in range(RESTARTS):
                replace_pair(other, line_files)
                async with run_server(config, line_files):
                    reason = await wait_for_reason(cell, "not trusted")
                    assert "name its authority in the variable SSL_CERT_FILE" in reason
                    await pass_time(DISTRUST)
                replace_pair(trusted, line_files)
                async with run_server(config, line_files):
                    began = time.monotonic()
                    await wait_for_state(cell, SCALE, "ready")
                    took = time.monotonic() - began
                    print(f"back {took:.2f} s after it has a certificate that is trusted")
                    assert took < RECONNECT_INTERVAL + limit(2)

        await compare(cell, twin, change_authority, "certificate of another authority")


async def wait_for_reason(cell: Server, text: str) -> str:
    """Wait until the remote cannot be used for a reason that contains this text."""
    away = await poll(
        lambda: wait_for_state(cell, "rdk:remote:/line", "unhealthy"),
        lambda found: text in found["reason"],
        limit(10),
    )
    return str(away["reason"])


async def test_certificate_that_is_renewed_disturbs_no_call(tmp_path: Path) -> None:
    line_files, cell_files = tmp_path / "line", tmp_path / "cell"
    line_files.mkdir()
    cell_files.mkdir()
    authority = trustme.CA()
    port = free_port()
    replace_pair(authority, line_files)
    async with (
        run_server(line_config(line_files, port), line_files),
        run_cell(authority, cell_files, port) as cell,
    ):
        await wait_for_state(cell, SCALE, "ready")
        async with connect_sdk(cell.port) as robot:
            scale = Sensor.from_robot(robot, "line:scale")
            renewing = asyncio.ensure_future(renew(authority, line_files, port))
            calls = 0
            while not renewing.done():
                assert await scale.get_readings() == {"weight": 3}
                calls += 1
                await pass_time(0.01)
            await renewing
        print(f"{REPLACEMENTS} certificates, {calls} calls")
        assert "remote line cannot be used" not in cell.output


async def renew(authority: trustme.CA, directory: Path, port: int) -> None:
    for _ in range(REPLACEMENTS):
        new = replace_pair(authority, directory)
        await asyncio.to_thread(wait_until_served, port, new)
