"""The server is killed while it downloads, unpacks and switches a package, repeatedly."""

from __future__ import annotations

import hashlib
import random
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import make_archive
from tests.support.machine.modular import poll
from tests.support.machine.running import Server, run_server
from tests.support.network.file_server import FileServer, serve_files
from tests.support.sizes import size
from tests.support.waiting import pass_time

KILLS = size(ci=6, full=500)
SWITCHED_WITHIN = 1.5
"""Seconds after which a new version is surely used, on a computer that is not too busy."""


def make_files(version: int) -> dict[str, bytes]:
    rng = random.Random(version)
    return {
        "version.txt": str(version).encode(),
        "model.bin": rng.randbytes(1_200_000),
        **{f"parts/{at}/weights": rng.randbytes(2000) for at in range(40)},
    }


def machine(files: FileServer, version: int) -> dict[str, Any]:
    archive = make_archive(**make_files(version))
    path = f"/detector-{version}.tar.gz"
    files.files = {path: archive}
    return {
        "packages": [
            {
                "name": "detector",
                "package": "acme/detector",
                "version": str(version),
                "type": "archive",
                "url": files.url(path),
                "sha256": hashlib.sha256(archive).hexdigest(),
            }
        ],
        "components": [
            {
                "name": "eye",
                "api": "rdk:component:sensor",
                "model": "fake",
                "attributes": {"readings": {"at": "${packages.archive.detector}"}},
            }
        ],
        "network": {"bind_address": "localhost:0"},
    }


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serve_files() as found:
        yield found


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Create a directory for the server's private directories, with a short path."""
    directory = Path(tempfile.mkdtemp(dir="/tmp", prefix="cw"))
    yield directory
    shutil.rmtree(directory)


def find_versions(store: Path) -> set[int]:
    """Return the versions that are visible. Each must be complete."""
    found = set()
    for directory in store.glob("acme-detector-*/"):
        version = int(directory.name.split("-")[2])
        content = {
            str(each.relative_to(directory)): each.read_bytes()
            for each in directory.rglob("*")
            if each.is_file()
        }
        assert content == make_files(version), f"{directory} is not complete"
        found.add(version)
    return found


def describe(store: Path, versions: set[int], new: int) -> str:
    part = next((store / "part").glob("*/"), None)
    if new in versions:
        return "switched, the old one is still there" if len(versions) > 1 else "switched"
    if part is None:
        return "nothing has begun"
    return "unpacking" if (part / "unpacked").exists() else "downloading"


async def eye_of(server: Server) -> dict[str, Any]:
    return next(iter((await server.status())["resources"]), {})


async def wait_until_ready(server: Server) -> None:
    await poll(lambda: eye_of(server), lambda eye: eye.get("state") == "ready")


async def wait_until_settled(server: Server, store: Path, version: int) -> None:
    """Wait until only this version is there, and used."""

    async def list_versions() -> set[str]:
        return {each.name.split("-")[2] for each in store.glob("acme-detector-*/")}

    await poll(list_versions, lambda versions: versions == {str(version)})
    await wait_until_ready(server)


async def choose_moment(moments: random.Random, store: Path, new: int) -> None:
    """Return at any moment, or shortly after the new version is unpacked, or appears."""
    # The moment is the input here.
    match moments.choice(("any", "unpacking", "switch")):
        case "any":
            await pass_time(moments.uniform(0, SWITCHED_WITHIN))
        case "unpacking":
            await wait_for_path(store, f"part/acme-detector-{new}-*/unpacked")
            await pass_time(moments.uniform(0, 0.05))
        case "switch":
            await wait_for_path(store, f"acme-detector-{new}-*/")
            await pass_time(moments.uniform(0, 0.1))


async def wait_for_path(store: Path, pattern: str) -> None:
    for _ in range(round(SWITCHED_WITHIN / 0.001)):
        if any(store.glob(pattern)):
            return
        await pass_time(0.001)


@pytest.mark.timeout(size(ci=300, full=7200))
async def test_kill_leaves_the_old_or_the_new_version(
    files: FileServer, tmp_path: Path, sockets: Path
) -> None:
    moments, seen, began = random.Random(0), Counter[str](), time.monotonic()
    store = tmp_path / "home" / "packages" / "data" / "archive"
    content = machine(files, 0)
    for version in range(KILLS + 1):
        files.chunk_delay = 0.0
        around = {"TMPDIR": str(sockets)}
        async with run_server(content, tmp_path, exits=None, environment=around) as server:
            # With the old version or the new one, before the download goes on.
            await wait_until_ready(server)
            await wait_until_settled(server, store, version)
            if version == KILLS:
                break
            files.chunk_delay = moments.choice((0.0, 0.05, 0.2))
            content = machine(files, version + 1)
            server.save(content)
            await choose_moment(moments, store, version + 1)
            server.signal(signal.SIGKILL)
            await server.exit_code()
        versions = find_versions(store)
        assert versions, "neither version is there"
        assert versions <= {version, version + 1}
        seen[describe(store, versions, version + 1)] += 1
    assert not list((store / "part").iterdir())
    print(f"{KILLS} kills in {time.monotonic() - began:.0f} s: {dict(seen)}")
