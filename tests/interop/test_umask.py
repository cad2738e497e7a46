"""With the umask 0, as in some containers, what a machine and a cloud store is still private."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.cloud import cloud_process
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine import running
from tests.support.machine.running import run_server

OPEN = ("sh", "-c", 'umask 0 && exec "$@"', "sh")
PUBLIC = {"ca.pem"}
"""The certificate that clients of the cloud's machines trust."""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    # Others may reach it, as they reach a home directory.
    tmp_path.chmod(0o755)
    return tmp_path


def list_open(*roots: Path) -> list[str]:
    """Return what other users may read, change or enter."""
    paths = [path for root in roots for path in (root, *root.rglob("*"))]
    return [
        f"{path.stat().st_mode & 0o777:o} {path}"
        for path in paths
        if path.stat().st_mode & 0o077 and path.name not in PUBLIC
    ]


async def test_joined_machine_and_its_cloud_keep_their_state_private(directory: Path) -> None:
    cloud = CloudProcess(directory / "srv" / "cloud", [*OPEN, *cloud_process.PROGRAM])
    await cloud.initialize_by_command()
    machine, home = directory / "machine", directory / "var" / "home"
    machine.mkdir()
    async with cloud.serve():
        part, secret = await cloud.create_machine("press")
        config = {
            "cloud": {"id": part, "secret": secret, "app_address": f"http://{cloud.address}"},
            "network": {"bind_address": "localhost:0"},
        }
        async with run_server(
            config,
            machine,
            program=[*OPEN, *running.PROGRAM],
            environment={"COGWORK_HOME": str(home)},
            arguments=["-no-tls"],
        ) as server:
            await server.out.wait_for("applied in")
            spools = [each.name for each in (home / "joined").iterdir()]
            assert spools, "the machine has joined"
    assert list_open(directory / "srv", directory / "var") == []


async def test_directories_that_an_earlier_version_left_open_are_closed(directory: Path) -> None:
    home = directory / "home"
    for each in (home, home / "joined", home / "joined" / "part"):
        each.mkdir()
        each.chmod(0o777)
    async with run_server({}, directory) as server:
        await server.out.wait_for("removed this permission from 3 directories")
    assert not [each for each in list_open(home) if int(each.split()[0], 8) & 0o022]
