"""The package manager: tasks, states, progress, failures, clean-up."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import make_archive
from tests.support.network.file_server import FileServer, serve_files
from tests.support.waiting import pass_time, poll

from cogwork.config.check.packages import locate_package
from cogwork.config.schema.machine import PackageConfig
from cogwork.core.backoff import RetryPolicy
from cogwork.core.clock import SystemClock
from cogwork.packages import manager as manager_module
from cogwork.packages.manager import PackageManager
from cogwork.robot.hosts import PackageState as State
from cogwork.robot.hosts import PackageStatus


class Workshop:
    """A manager with its home, and a server with archives."""

    def __init__(self, home: Path, files: FileServer) -> None:
        self.home = home
        self.files = files
        self.changes = 0
        self.config_file = home / "machine.json"
        self.config_file.write_text("{}")
        self.manager = self.make_manager()

    def make_manager(self, config_file: Path | None = None) -> PackageManager:
        return PackageManager(
            self.home, config_file or self.config_file, SystemClock(), self._count
        )

    def _count(self) -> None:
        self.changes += 1

    def package(self, name: str, version: str = "1", **settings: Any) -> PackageConfig:
        url = self.files.url(f"/{name}-{version}")
        return PackageConfig.model_validate(
            {"name": name, "version": version, "type": "archive", "url": url, **settings}
        )

    def apply(self, *packages: PackageConfig) -> None:
        present = [each.name for each in packages if locate_package(each, self.home).is_dir()]
        self.manager.apply(packages, present, None)

    def status(self, name: str) -> PackageStatus:
        return next(each for each in self.manager.statuses() if each.name == name)

    async def wait_for(self, name: str, state: State) -> PackageStatus:
        async def find() -> PackageStatus:
            return self.status(name)

        return await poll(find, lambda status: status.state is state)


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serve_files() as found:
        for name in ("a-1", "a-2", "b-1"):
            content = random.Random(name).randbytes(600_000)
            found.files[f"/{name}"] = make_archive(f=content)
        yield found


@pytest.fixture
async def workshop(tmp_path: Path, files: FileServer) -> AsyncIterator[Workshop]:
    found = Workshop(tmp_path, files)
    yield found
    await found.manager.aclose()


async def test_packages_become_ready_and_broken_ones_do_not_matter(workshop: Workshop) -> None:
    workshop.apply(workshop.package("a"), workshop.package("broken"), workshop.package("b"))
    assert not workshop.manager.is_ready("a")
    for name in ("a", "b"):
        await workshop.wait_for(name, State.READY)
        assert workshop.manager.is_ready(name)
    failed = await workshop.wait_for("broken", State.FAILED)
    assert "does not have it (404" in failed.reason
    why = workshop.manager.describe_missing(["a", "broken"])
    assert why is not None
    assert not why.is_temporary
    assert why.reason.startswith('package "broken" 1 is not available: the server does not have')
    assert workshop.manager.describe_missing(["a", "b"]) is None
    assert not workshop.manager.all_ready
    assert workshop.changes >= 3


async def test_present_package_is_ready_at_once(workshop: Workshop) -> None:
    package = workshop.package("a")
    workshop.apply(package)
    await workshop.wait_for("a", State.READY)
    await workshop.manager.aclose()
    asked = len(workshop.files.requests)
    workshop.manager = workshop.make_manager()
    workshop.apply(package)
    assert workshop.manager.is_ready("a")
    assert len(workshop.files.requests) == asked


async def test_progress_is_shown(workshop: Workshop) -> None:
    workshop.files.chunk_delay = 0.6
    workshop.apply(workshop.package("a"))

    async def describe() -> str:
        why = workshop.manager.describe_missing(["a"])
        return why.reason if why is not None and why.is_temporary else ""

    await poll(describe, lambda text: text.endswith(" is being downloaded: 40 % of 600 kB"))
    status = workshop.status("a")
    assert status.total == len(workshop.files.files["/a-1"])  # type: ignore[arg-type]
    assert 0 < status.done < status.total
    await workshop.wait_for("a", State.READY)


async def test_many_cuts_are_not_a_failure(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_module, "_RETRY", RetryPolicy(0.01, 0.01))
    workshop.files.cuts = [50_000] * 10
    workshop.apply(workshop.package("a"))
    seen = set()

    async def find() -> State:
        seen.add(workshop.status("a").state)
        return workshop.status("a").state

    await poll(find, lambda state: state is State.READY)
    assert State.FAILED not in seen
    assert len(workshop.files.requests) == 11


async def test_two_names_of_one_package_are_downloaded_once(workshop: Workshop) -> None:
    url = workshop.files.url("/a-1")
    one, two = (workshop.package(name, url=url, package="acme/a") for name in ("one", "two"))
    workshop.apply(one, two)
    await workshop.wait_for("one", State.READY)
    await workshop.wait_for("two", State.READY)
    assert len(workshop.files.requests) == 1


async def test_package_that_is_not_wanted_any_more_is_given_up(workshop: Workshop) -> None:
    workshop.files.chunk_delay = 30.0
    workshop.apply(workshop.package("a"))
    await workshop.wait_for("a", State.DOWNLOADING)
    workshop.files.chunk_delay = 0.0
    workshop.apply(workshop.package("b"))
    await workshop.wait_for("b", State.READY)
    assert [each.name for each in workshop.manager.statuses()] == ["b"]
    workshop.apply(workshop.package("a"))
    workshop.files.cuts = []


async def test_error_of_the_cloud_is_passed_on(workshop: Workshop) -> None:
    broken = workshop.package("a", status={"error": "it is not shared"})
    workshop.apply(broken)
    failed = await workshop.wait_for("a", State.FAILED)
    assert failed.reason == "the cloud says: it is not shared"
    workshop.apply(workshop.package("a"))
    await workshop.wait_for("a", State.READY)


async def test_unused_versions_are_removed_and_others_stay(
    workshop: Workshop, tmp_path: Path
) -> None:
    store = tmp_path / "packages" / "data" / "archive"
    (store / "by-hand").mkdir(parents=True)
    other_file = tmp_path / "other.json"
    other_file.write_text("{}")
    other = workshop.make_manager(other_file)
    other.apply([workshop.package("b")], [], None)
    old, new = workshop.package("a"), workshop.package("a", "2")
    workshop.apply(old)
    await workshop.wait_for("a", State.READY)
    await poll(_readiness(other), bool)
    workshop.apply(new)
    await workshop.wait_for("a", State.READY)
    await workshop.manager.remove_unused()
    assert not locate_package(old, tmp_path).exists()
    assert locate_package(new, tmp_path).is_dir()
    assert locate_package(workshop.package("b"), tmp_path).is_dir()
    assert (store / "by-hand").is_dir()
    # The other machine is gone.
    await other.aclose()
    other_file.unlink()
    await workshop.manager.remove_unused()
    assert not locate_package(workshop.package("b"), tmp_path).exists()
    assert sorted(each.name for each in store.iterdir() if each.is_dir()) == [
        locate_package(new, tmp_path).name,
        "by-hand",
        "part",
    ]


def _readiness(manager: PackageManager) -> Any:
    async def is_ready() -> bool:
        return manager.all_ready

    return is_ready


async def test_going_back_while_a_version_is_removed_gets_it_again(workshop: Workshop) -> None:
    old, new = workshop.package("a"), workshop.package("a", "2")
    for package in (old, new):
        workshop.apply(package)
        await workshop.wait_for("a", State.READY)
    for _ in range(5):
        for package in (old, new):
            removing = asyncio.ensure_future(workshop.manager.remove_unused())
            await pass_time(random.uniform(0, 0.02))
            workshop.apply(package)
            await workshop.wait_for("a", State.READY)
            await removing
            assert (locate_package(package, workshop.home) / "f").is_file()
