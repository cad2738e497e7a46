"""`cogwork-cloud release`, beside a cloud that is served, and the download of releases."""

from __future__ import annotations

import asyncio
import hashlib
import json
import subprocess
import tarfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from grpclib.client import Channel
from tests.interop.test_packages import ask, run_program
from tests.support.agent.update_agent import UpdateAgent
from tests.support.archives import make_archive, write_release
from tests.support.cloud.cloud_process import PROGRAM
from tests.support.cloud.created_cloud import copy_new_cloud
from tests.support.cloud.fleet import Cloud, make_part

from cogwork.core.clock import SystemClock
from cogwork.wire.messages.update_method import Outcome


@pytest.fixture
async def cloud(tmp_path: Path) -> AsyncIterator[Cloud]:
    async with run_program(tmp_path) as running:
        yield running


@pytest.fixture
async def agent(cloud: Cloud) -> AsyncIterator[UpdateAgent]:
    connected = await cloud.connect()
    app = connected.app_client
    host, _, port = cloud.address.partition(":")
    channel = Channel(host, int(port))
    made = UpdateAgent(channel, await make_part(app))
    await made.log_in((await app.get_robot_part(made.part)).secret)
    yield made
    channel.close()
    connected.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A directory with a cloud that is not served."""
    copy_new_cloud(tmp_path / "cloud", "localhost", "Main", SystemClock())
    return tmp_path


async def release(directory: Path, *arguments: str, code: int = 0) -> str:
    """Run the command, and return what it prints: on standard error if it shall fail."""
    done = await asyncio.to_thread(
        subprocess.run,
        [*PROGRAM, "release", *arguments, "--data", str(directory / "cloud")],
        text=True,
        timeout=60,
        capture_output=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr if code else done.stdout


async def release_json(directory: Path, *arguments: str) -> Any:
    return json.loads(await release(directory, *arguments, "--json"))


async def test_release_reaches_a_machine(cloud: Cloud, agent: UpdateAgent, tmp_path: Path) -> None:
    content = bytes(range(256)) * 8000
    file = write_release(tmp_path, "2.0.0", content=content)
    data = file.read_bytes()
    printed = await release(tmp_path, "add", str(file), str(write_release(tmp_path, "1.0.0")))
    assert printed.splitlines()[0] == "added server 2.0.0 for linux/amd64"
    listed = await release_json(tmp_path, "list")
    assert [each["version"] for each in listed] == ["2.0.0", "1.0.0"]
    assert listed[0]["size"] == len(data)
    assert "server  2.0.0  linux/amd64" in await release(tmp_path, "list")

    printed = await release(tmp_path, "rollout", "stable", "server", "2.0.0", "--stages", "50,100")
    assert printed.startswith("stable rolls out server 2.0.0 to 50 % of the machines;")
    await release(tmp_path, "pause", "stable", "server")
    assert (await release_json(tmp_path, "status"))[0]["state"] == "paused"
    assert (await agent.poll_server()).version == "1.0.0"
    await release(tmp_path, "resume", "stable", "server")
    write_release(tmp_path, "2.0.1")
    await release(tmp_path, "add", str(tmp_path / "cogwork-server-2.0.1-linux-amd64.tar"))
    await release(tmp_path, "rollout", "dev", "server", "2.0.1")
    await release(tmp_path, "rollout", "stable", "server", "2.0.1", "--stages", "100")
    back = ["rollout", "stable", "server", "2.0.0", "--stages", "100"]
    assert "to take machines back to it, add --rollback" in await release(tmp_path, *back, code=1)
    printed = await release(tmp_path, *back, "--rollback")
    assert printed.startswith("stable takes 100 % of the machines back to server 2.0.0;")
    # It is offered to every machine, but nothing was updated yet.
    assert "stable  server 2.0.0  rollback, running" in await release(tmp_path, "status")

    info = await agent.poll_server()
    assert (info.version, info.sha256) == ("2.0.0", hashlib.sha256(data).digest())
    path = urlsplit(info.url).path
    status, headers, body = await ask(cloud, "GET", path, {})
    assert (status, body, headers["etag"]) == (200, data, f'"{info.sha256.hex()}"')
    resume = {"range": "bytes=1000-", "if-range": headers["etag"]}
    status, headers, body = await ask(cloud, "GET", path, resume)
    assert (status, body) == (206, data[1000:])
    status, headers, _ = await ask(cloud, "HEAD", path, {})
    assert (status, headers["content-length"]) == (200, str(len(data)))
    for wrong in (path.replace("2.0.0", "2.0.1"), f"/releases/{'0' * 64}/a.tar"):
        assert (await ask(cloud, "GET", wrong, {}))[0] == 404

    assert "rollback, running" in await release(tmp_path, "status")  # it has not reported yet
    await agent.report("2.0.0", Outcome.FAILED, "the disk\x1b is full")
    dev, stable = await release_json(tmp_path, "status")
    assert (dev["channel"], dev["share"], dev["state"]) == ("dev", 1, "running")
    assert (stable["state"], stable["failed"]) == ("paused", 1)
    shown = await release(tmp_path, "status")
    assert "  0 updated, 1 failed, 0 waiting" in shown.splitlines()
    failed = "  failed   press, part press-main (runs 1.0.0): the disk\\x1b is full"
    assert failed in shown.splitlines()


def write_tar(path: Path, manifest: bytes) -> Path:
    (path.parent / "manifest.json").write_bytes(manifest)
    with tarfile.open(path, "w") as archive:
        archive.add(path.parent / "manifest.json", "manifest.json")
    return path


async def test_what_is_no_release_is_refused(directory: Path) -> None:
    file = directory / "a.tar"
    refusals = {
        b"hello": "this is not a release: the archive is incomplete",
        make_archive(a=b""): "this is not a release",
        write_tar(file, b"{").read_bytes(): "the manifest.json is not JSON",
        write_tar(
            file, b'{"product": "car"}'
        ).read_bytes(): 'the product in the manifest.json is "car"',
        write_tar(file, b'{"product": "agent", "version": "latest"}').read_bytes(): (
            'the version in the manifest.json is "latest"'
        ),
        write_tar(
            file, b'{"product": "agent", "version": "1.0.0", "platform": "../etc"}'
        ).read_bytes(): 'the platform in the manifest.json is "../etc"',
        write_tar(
            file,
            b'{"product": "agent", "version": "1.0.0", "platform": "linux/amd64", '
            b'"minimum_version": 1}',
        ).read_bytes(): "the minimum_version in the manifest.json is 1;",
        write_tar(file, b" " * (2 << 20)).read_bytes(): "is larger than 1 MiB",
        write_tar(
            file, b'{"product": "agent", "version": "1.0.0", "platform": "linux/amd64"}'
        ).read_bytes(): "the release is not signed, so no machine would install it",
    }
    for content, expected in refusals.items():
        file.write_bytes(content)
        assert expected in await release(directory, "add", str(file), code=1)
    assert "cannot read" in await release(directory, "add", str(directory / "gone.tar"), code=1)
    assert await release_json(directory, "list") == []


async def test_releases_never_change(directory: Path) -> None:
    for content in (b"one", b"one"):
        await release(directory, "add", str(write_release(directory, "1.0.0", content=content)))
    changed = write_release(directory, "1.0.0", content=b"two")
    assert "publish your changes as a new version" in await release(
        directory, "add", str(changed), code=1
    )
    assert len(await release_json(directory, "list")) == 1


async def test_impossible_rollout_is_refused(directory: Path) -> None:
    await release(directory, "add", str(write_release(directory, "1.0.0")))
    refusals = {
        "rollout stable server 9.9.9": "there is no release of server 9.9.9",
        "rollout Stable! server 1.0.0": "not the name of a channel",
        "rollout stable server 1.0.0 --stages 50,10": "ascending",
        "rollout stable server 1.0.0 --stages 1,50": "last stage must be 100",
        "rollout stable server 1.0.0 --max-failures 101": "0 to 100",
        "pause stable server": "no version of server was rolled out on stable",
    }
    for command, expected in refusals.items():
        assert expected in await release(directory, *command.split(), code=1)
    for option in ("--stages=few", "--hours=nan", "--hours=-1", "--max-failures=x"):
        usage = await release(directory, "rollout", "stable", "server", "1.0.0", option, code=2)
        assert f"argument {option.partition('=')[0]}: " in usage
    assert await release_json(directory, "status") == []


async def test_installer_needs_both_products_and_a_public_key(directory: Path) -> None:
    key = directory / "key.pem"
    key.write_text("-----BEGIN PRIVATE KEY-----")
    installer = ("installer", "https://fleet.example", "--key", str(key))
    assert "no platform has a release of both" in await release(directory, *installer, code=1)
    await release(directory, "add", str(write_release(directory, "1.0.0")))
    await release(directory, "add", str(write_release(directory, "1.0.0", product="agent")))
    assert "is not a public key" in await release(directory, *installer, code=1)
    refused = await release(directory, "installer", "fleet", "--key", str(key), code=2)
    assert '"fleet" is not an address like https://fleet.example' in refused
