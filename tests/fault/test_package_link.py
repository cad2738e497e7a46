"""A large package over a link that is cut again and again."""

from __future__ import annotations

import hashlib
import os
import random
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.machine.modular import poll
from tests.support.machine.running import run_server
from tests.support.network.file_server import FileServer, serve_files
from tests.support.sizes import size

MB = 1_000_000
SIZE = size(ci=40, full=2000) * MB
CUTS = size(ci=10, full=50)


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serve_files() as found:
        yield found


@pytest.mark.timeout(size(ci=240, full=1800))
async def test_large_package_arrives_whole_over_a_link_that_is_cut(
    files: FileServer, tmp_path: Path
) -> None:
    model = tmp_path / "model.bin"
    digest = hashlib.sha256()
    with model.open("wb") as made:
        for _ in range(SIZE // MB):
            block = os.urandom(MB)
            digest.update(block)
            made.write(block)
    archive = tmp_path / "large.tar"
    with tarfile.open(archive, "w") as packed:
        packed.add(model, "model.bin")
    model.unlink()
    files.files["/large.tar"] = archive
    rng = random.Random(0)
    files.cuts = [rng.randrange(2 * SIZE // CUTS) for _ in range(CUTS)]
    files.cuts = [min(each, SIZE // (CUTS + 1)) for each in files.cuts]
    with archive.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    config = {
        "packages": [
            {
                "name": "large",
                "type": "archive",
                "url": files.url("/large.tar"),
                "sha256": sha256,
            }
        ]
    }
    async with run_server(config, tmp_path) as server:
        began = time.monotonic()

        async def find_state() -> str:
            (package,) = (await server.status())["packages"]
            return str(package["state"])

        await poll(find_state, lambda state: state == "ready", within=size(ci=200, full=1700))
        seconds = time.monotonic() - began
    assert not files.cuts
    (directory,) = (tmp_path / "home" / "packages" / "data" / "archive").glob("large-*/")
    with (directory / "model.bin").open("rb") as file:
        assert hashlib.file_digest(file, "sha256").digest() == digest.digest()
    ranges = files.ranges("/large.tar")
    assert ranges[0] is None
    print(f"{SIZE // MB} MB over {CUTS} cuts in {seconds:.0f} s, {len(ranges)} requests")
