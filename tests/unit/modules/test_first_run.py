from __future__ import annotations

import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.sizes import limit
from tests.support.waiting import advance_until, wait_until
from tests.unit.subprocesses.children import wait_until_gone

from cogwork.core.clock import Clock, ManualClock, SystemClock
from cogwork.modules.first_run import FirstRunFailed, perform_first_run
from cogwork.modules.meta import BadMeta
from cogwork.subprocesses.host import ProgramHost
from cogwork.subprocesses.process import LaunchSpec


@dataclass
class Package:
    """A module directory with a first-run script."""

    directory: Path
    messages: list[str] = field(default_factory=list)
    root: Path | None = None

    def write(self, script: str, meta: object = None) -> None:
        self.directory.mkdir(exist_ok=True)
        file = self.directory / "setup.sh"
        file.write_text(f"#!/bin/sh\n{script}\n")
        file.chmod(0o700)
        meta_value = {"first_run": "setup.sh"} if meta is None else meta
        (self.directory / "meta.json").write_text(
            meta_value if isinstance(meta_value, str) else json.dumps(meta_value)
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
            LaunchSpec((str(self.directory / "run"),), environment, self.directory),
            self.messages.append,
            ProgramHost(clock or SystemClock()),
            timeout=timeout,
        )


@pytest.fixture
def package(tmp_path: Path) -> Package:
    return Package(tmp_path / "acme")


async def test_first_run_runs_once_in_the_module_directory(package: Package) -> None:
    package.write('echo "$VIAM_MODULE_NAME in $(pwd)"; echo half >&2')

    assert await package.run()
    assert not await package.run()

    assert f"first run of acme: acme in {package.directory}" in package.messages
    assert package.messages.count("first run of acme: half") == 1
    assert package.marker.exists()


async def test_module_without_first_run_does_nothing(package: Package) -> None:
    package.directory.mkdir()
    assert not await package.run()
    package.write("exit 1", {"entrypoint": "run"})
    assert not await package.run()

    assert package.messages == []
    assert not package.marker.exists()


async def test_program_in_the_root_directory_has_no_first_run() -> None:
    messages: list[str] = []
    assert not await perform_first_run(
        "acme",
        LaunchSpec(("/run",), {}, Path("/")),
        messages.append,
        ProgramHost(SystemClock()),
    )
    assert messages == []


async def test_module_root_precedes_the_program_directory(package: Package, tmp_path: Path) -> None:
    package.write("exit 1")
    root = Package(tmp_path / "root")
    root.write("pwd")
    package.root = root.directory

    assert await package.run()

    assert package.messages[-1] == f"first run of acme: {root.directory}"


async def test_failed_first_run_reports_output_and_is_retried(package: Package) -> None:
    package.write("echo collecting >&2; echo 'no matching distribution' >&2; exit 3")

    with pytest.raises(FirstRunFailed) as caught:
        await package.run()

    assert str(caught.value) == (
        'the first run of module "acme" failed: its script exited with code 3; fix the problem '
        "that the script reports, and it runs again:\ncollecting\nno matching distribution"
    )
    assert not package.marker.exists()
    package.write("exit 0")
    assert await package.run()


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ("{", "cannot be read"),
        ({"first_run": "../other.sh"}, "it must name a file inside the folder"),
        ({"first_run": 5}, "is 5; it must name a file inside the folder"),
        ({"first_run": "none.sh"}, "none.sh does not exist"),
    ],
)
async def test_invalid_first_run_raises(package: Package, meta: object, words: str) -> None:
    package.write("exit 0", meta)

    with pytest.raises((FirstRunFailed, BadMeta), match=words):
        await package.run()


async def test_first_run_reports_progress_until_its_timeout(package: Package) -> None:
    clock = ManualClock()
    package.write("trap '' TERM; echo $$; while :; do sleep 1000; done")
    running = asyncio.create_task(package.run(clock, timeout=12))
    pid = await _wait_for_pid(package)

    for _ in range(4):
        await clock.advance(5)
    await advance_until(clock, running.done, 1)
    with pytest.raises(FirstRunFailed, match=r'timed out after 12s; .* "first_run_timeout"'):
        await running

    assert "first run of acme: still running after 5s" in package.messages
    assert "first run of acme: still running after 10s" in package.messages
    await wait_until_gone(pid)


async def test_cancelled_first_run_ends_its_process(package: Package) -> None:
    package.write("echo $$; exec sleep 1000")
    running = asyncio.create_task(package.run())
    pid = await _wait_for_pid(package)

    running.cancel()
    started = time.monotonic()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert time.monotonic() - started < limit(2)
    await wait_until_gone(pid)


async def _wait_for_pid(package: Package) -> int:
    await wait_until(lambda: len(package.messages) >= 2)
    return int(package.messages[1].rpartition(" ")[2])
