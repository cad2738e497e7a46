"""Claim codes: a machine joins a real cloud with a code that its owner reads out."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.cloud.cloud_process import CloudProcess
from tests.support.machine.running import start_server
from tests.support.waiting import run_others

pytestmark = pytest.mark.asyncio(loop_scope="module")

AGENT = (sys.executable, "-m", "cogwork.agent.main")
CLI = (sys.executable, "-m", "cogwork.cli.main")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cloud(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CloudProcess]:
    async with run_cloud(tmp_path_factory.mktemp("claims")) as running:
        yield running


@contextlib.asynccontextmanager
async def run_cloud(directory: Path) -> AsyncIterator[CloudProcess]:
    cloud = CloudProcess(directory / "cloud")
    await cloud.initialize()
    async with cloud.serve():
        yield cloud


async def run(program: tuple[str, ...], *arguments: str, **variables: str) -> tuple[int, str]:
    async with start_server(list(arguments), variables, program=program) as process:
        code = await process.exit_code()
        await run_others()
        return code, "\n".join((*process.out.lines, *process.err.lines))


async def create_code(cloud: CloudProcess, part: str, home: Path) -> str:
    variables = {
        "COGWORK_HOME": str(home),
        "COGWORK_FLEET_ADDRESS": f"http://{cloud.address}",
        "COGWORK_FLEET_KEY_ID": cloud.key_id,
        "COGWORK_FLEET_KEY": cloud.key,
    }
    code, output = await run(CLI, "fleet", "claim", part, "--json", **variables)
    assert code == 0, output
    return str(json.loads(output)["code"])


async def test_machine_joins_with_a_code_once(cloud: CloudProcess, tmp_path: Path) -> None:
    part, secret = await cloud.create_machine("press")
    config = tmp_path / "etc" / "machine.json"
    text = await create_code(cloud, part, tmp_path)
    join = ("join", f"http://{cloud.address}", text.lower().replace("-", " "))
    code, output = await run(AGENT, *join, "--config", str(config))
    assert code == 0, output
    assert json.loads(config.read_bytes())["cloud"]["id"] == part
    assert json.loads(config.read_bytes())["cloud"]["secret"] == secret
    assert config.stat().st_mode & 0o777 == 0o600
    assert config.stat().st_uid == os.geteuid()
    code, output = await run(AGENT, *join, "--config", str(tmp_path / "second.json"))
    assert code == 1
    assert "was used" in output
    assert not (tmp_path / "second.json").exists()
