"""An upgrade of a cloud that is killed at any line goes on at the next start, and loses nothing."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.support.cloud.cloud_at_rest import identify, open_plane
from tests.support.cloud.first_version_cloud import FirstVersionCloud
from tests.support.sizes import size

from cogwork.cloud.control_plane.cloud_directory import CloudDirectory

EVERY = size(ci=50, full=3)
"""Lines of code from one kill to the next."""
WITHIN = size(ci=120, full=1700)
"""Seconds."""
KILLS = size(ci=5, full=100)


@pytest.mark.timeout(WITHIN + 120)
async def test_upgrade_survives_kills(tmp_path: Path) -> None:
    former = FirstVersionCloud(tmp_path / "first")
    former.write(secrets=3)
    work = tmp_path / "work"
    work.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.fault.upgrade_kills"),
        *(str(former.path), str(work), str(EVERY)),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN):
            output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0
    killed = int(output)
    assert killed >= KILLS
    token = former.token("p", "robot-secret", "secret 0")
    for number in range(killed):
        async with open_plane(CloudDirectory(work / str(number))) as plane:
            await plane.login.log_in("k", "api-key", "key of k", "::1")
            assert (await identify(plane, token)).id == "p"
