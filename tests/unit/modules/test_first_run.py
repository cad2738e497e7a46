from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.unit.modules.children import DEADLINE, gone

from cogwork.core.clock import Clock, ManualClock, SystemClock
from cogwork.modules.first_run import FirstRunFailed, perform_first_run
from cogwork.modules.meta import BadMeta


@dataclass
class Package:
    """A module's directory, with a script that is to run first."""

    directory: Path
    said: list[str] = field(default_factory=list)
    root: Path | None = None

    def write(self, script: str, meta: object = None) -> None:
        self.directory.mkdir(exist_ok=True)
        file = self.directory / "setup.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o700)
        asked = {"first_run": "setup.sh"} if meta is None else meta
        (self.directory / "meta.json").write_text(
            asked if isinstance(asked, str) else json.dumps(asked)
        )

    @property
    def marker(self) -> Path:
        return self.directory.parent / "acme.first_run_succeeded"

    async def run(self, clock: Clock | None = None, timeout: float = 3600) -> bool:
        environment = {**os.environ, "VIAM_MODULE_NAME": "acme"}
        if self.root is not None:
            environment["VIAM_MODULE_ROOT"] = str(self.root)
        return await perform_first_run(
            "acme",
            self.directory / "run",
            environment,
            self.said.append,
            clock or SystemClock(),
            timeout=timeout,
        )


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path / "acme")


async def test_it_runs_once_in_the_modules_directory_and_environment(package: Package) -> None:
    package.write('echo "$VIAM_MODULE_NAME in $(pwd)"; echo half >&2')

    assert await package.run()
    assert not await package.run()

    assert f"first run of acme: acme in {package.directory}" in package.said
    assert package.said.count("first run of acme: half") == 1
    assert package.marker.exists()


async def test_a_module_without_one_has_nothing_to_do(package: Package) -> None:
    package.directory.mkdir()
    assert not await package.run()
    package.write("exit 1", {"entrypoint": "run"})
    assert not await package.run()

    assert package.said == []
    assert not package.marker.exists()


async def test_the_root_comes_before_the_programs_own_directory(
    package: Package, tmp_path: Path
) -> None:
    package.write("exit 1")
    root = Package(tmp_path / "root")
    root.write("pwd")
    package.root = root.directory

    assert await package.run()

    assert package.said[-1] == f"first run of acme: {root.directory}"


async def test_a_failure_tells_the_last_lines_and_is_tried_again(package: Package) -> None:
    package.write("echo collecting >&2; echo 'no matching distribution' >&2; exit 3")

    with pytest.raises(FirstRunFailed) as caught:
        await package.run()

    assert str(caught.value) == (
        'the first run of module "acme" failed: it exited with code 3; fix what it reports, '
        "and it runs again:\ncollecting\nno matching distribution"
    )
    assert not package.marker.exists()
    package.write("exit 0")
    assert await package.run()


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ("{", "cannot be read"),
        ({"first_run": "../other.sh"}, "it must name a file in that folder"),
        ({"first_run": 5}, "is 5; it must name a file in that folder"),
        ({"first_run": "none.sh"}, "none.sh does not exist"),
    ],
)
async def test_what_cannot_be_run_is_told(package: Package, meta: object, words: str) -> None:
    package.write("exit 0", meta)

    with pytest.raises((FirstRunFailed, BadMeta), match=words):
        await package.run()


async def test_progress_is_told_until_it_takes_too_long(package: Package) -> None:
    clock = ManualClock()
    package.write("trap '' TERM; echo $$; while :; do sleep 1000; done")
    running = asyncio.create_task(package.run(clock, timeout=12))
    pid = await _pid(package)

    for _ in range(4):
        await clock.advance(5)
    async with asyncio.timeout(DEADLINE):
        while not running.done():
            await clock.advance(1)
            await asyncio.sleep(0.01)
    with pytest.raises(FirstRunFailed, match=r'timed out after 12s; .* "first_run_timeout"'):
        await running

    assert "first run of acme: still running after 5s" in package.said
    assert "first run of acme: still running after 10s" in package.said
    await gone(pid)


async def test_whoever_gives_up_ends_it(package: Package) -> None:
    package.write("echo $$; exec sleep 1000")
    running = asyncio.create_task(package.run())
    pid = await _pid(package)

    running.cancel()
    began = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert time.monotonic() - began < 2
    await gone(pid)


async def _pid(package: Package) -> int:
    async with asyncio.timeout(DEADLINE):
        while len(package.said) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
    return int(package.said[1].rpartition(" ")[2])
