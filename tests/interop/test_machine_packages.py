"""Packages of a real machine: from an address, a file or a folder, while it runs."""

from __future__ import annotations

import asyncio
import contextlib
import io
import random
import shutil
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import make_archive
from tests.support.machine.running import Server, run_server, with_free_port
from tests.support.network.file_server import FileServer, serve_files
from tests.support.sizes import limit
from tests.support.waiting import poll
from viam.components.generic import Generic
from viam.components.sensor import Sensor
from viam.robot.client import RobotClient
from viam.rpc.dial import DialOptions

CONTENT = random.Random(1).randbytes(2_000_000)


@pytest.fixture
def files() -> Iterator[FileServer]:
    with serve_files() as found:
        for version in ("1", "2"):
            found.files[f"/detector-{version}.tar.gz"] = make_archive(
                **{"version.txt": version.encode(), "model.bin": CONTENT}
            )
        yield found


def package(files: FileServer, version: str, name: str = "detector") -> dict[str, Any]:
    return {
        "name": name,
        "version": version,
        "type": "archive",
        "url": files.url(f"/{name}-{version}.tar.gz"),
    }


def sensor(name: str, package: str = "") -> dict[str, Any]:
    where = f"${{packages.archive.{package}}}/version.txt" if package else ""
    return {
        "name": name,
        "api": "rdk:component:sensor",
        "model": "fake",
        "attributes": {"readings": {"file": where}},
    }


def machine(*packages: dict[str, Any], components: list[dict[str, Any]]) -> dict[str, Any]:
    return {"packages": [*packages], "components": components}


async def wait_until(found: Callable[[], Awaitable[Any]]) -> Any:
    return await poll(found, within=limit(10))


async def resource_of(server: Server, name: str) -> dict[str, Any]:
    resources = (await server.status())["resources"]
    return next((each for each in resources if each["name"].endswith(f"/{name}")), {})


async def wait_for_state(server: Server, name: str, state: str) -> dict[str, Any]:
    async def find() -> dict[str, Any] | None:
        found = await resource_of(server, name)
        return found if found.get("state") == state else None

    result: dict[str, Any] = await wait_until(find)
    return result


async def wait_for_package(server: Server, state: str, name: str = "detector") -> dict[str, Any]:
    async def find() -> dict[str, Any] | None:
        packages = (await server.status())["packages"]
        return next(
            (each for each in packages if (each["name"], each["state"]) == (name, state)), None
        )

    result: dict[str, Any] = await wait_until(find)
    return result


@contextlib.asynccontextmanager
async def connect(server: Server) -> AsyncIterator[RobotClient]:
    options = RobotClient.Options(dial_options=DialOptions(insecure=True, disable_webrtc=True))
    robot = await RobotClient.at_address(f"localhost:{server.port}", options)
    try:
        yield robot
    finally:
        await robot.close()  # type: ignore[no-untyped-call]


async def read_file(server: Server, name: str) -> str:
    """Return the content of the file that a sensor names."""
    async with connect(server) as robot:
        readings = await Sensor.from_robot(robot, name).get_readings()
    return Path(str(readings["file"])).read_text()


async def print_status(server: Server) -> str:
    """Return the lines of `cogwork status` about packages, with single spaces between words."""
    command = (sys.executable, "-m", "cogwork.cli.main", "status", "--address")
    process = await asyncio.create_subprocess_exec(
        *command, f"localhost:{server.port}", stdout=asyncio.subprocess.PIPE
    )
    printed = (await process.communicate())[0].decode()
    return "\n".join(
        " ".join(line.split()) for line in printed.splitlines() if "  package " in line
    )


async def test_resource_waits_for_its_package_and_nothing_else_does(
    files: FileServer, tmp_path: Path
) -> None:
    files.chunk_delay = 1.5
    config = machine(
        package(files, "1"),
        {**package(files, "1", "broken"), "url": files.url("/missing.tar.gz")},
        components=[sensor("waits", "detector"), sensor("free"), sensor("never", "broken")],
    )
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "free", "ready")
        waiting = await wait_for_state(server, "waits", "configuring")
        assert waiting["reason"].startswith('package "detector" 1 is being downloaded')
        download = await wait_for_package(server, "downloading")
        # The size is known when the server has answered.
        assert download["total"] is None or 0 <= download["done"] <= download["total"]
        never = await wait_for_state(server, "never", "unhealthy")
        assert "the server does not have it (404" in never["reason"]
        printed = await print_status(server)
        assert "unhealthy package broken 1 " in printed
        assert "downloading package detector 1 " in printed
        await wait_for_state(server, "waits", "ready")
        assert await read_file(server, "waits") == "1"
        # It is tried again by itself.
        files.files["/missing.tar.gz"] = files.files["/detector-1.tar.gz"]
        await wait_for_state(server, "never", "ready")


async def test_running_resource_keeps_its_version_until_the_new_one_is_there(
    files: FileServer, tmp_path: Path
) -> None:
    config = machine(package(files, "1"), components=[sensor("eye", "detector")])
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "eye", "ready")
        store = tmp_path / "home" / "packages" / "data" / "archive"
        (old,) = store.glob("detector-1-*/")
        files.status = 503
        components = [sensor("eye", "detector"), sensor("other")]
        server.save(with_free_port(machine(package(files, "2"), components=components)))
        await wait_for_state(server, "other", "ready")
        await wait_for_package(server, "failed")
        assert (await resource_of(server, "eye"))["state"] == "ready"
        assert await read_file(server, "eye") == "1"
        files.status = None
        await wait_for_package(server, "ready")

        async def is_new() -> bool:
            return await read_file(server, "eye") == "2"

        await wait_until(is_new)

        async def is_removed() -> bool:
            return not old.exists()

        await wait_until(is_removed)
        left = sorted(each.name.partition("-")[0] for each in store.iterdir())
        assert left == ["detector", "detector", "part"]


async def test_machine_starts_without_the_network_with_what_is_there(
    files: FileServer, tmp_path: Path
) -> None:
    config = machine(package(files, "1"), components=[sensor("eye", "detector")])
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "eye", "ready")
    asked = len(files.requests)
    files.status = 503
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "eye", "ready")
        assert (await wait_for_package(server, "ready"))["reason"] == ""
    assert len(files.requests) == asked


async def wait_until_stored(directory: Path) -> None:
    """Wait until the server has stored the configuration that runs with all of its packages."""
    copies = directory / "home" / "packages" / "settled"

    async def is_stored() -> bool:
        return copies.is_dir() and any(copies.iterdir())

    await wait_until(is_stored)


async def test_machine_that_starts_before_a_new_version_is_there_runs_the_former_one(
    files: FileServer, tmp_path: Path
) -> None:
    config = machine(package(files, "1"), components=[sensor("eye", "detector")])
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "eye", "ready")
        await wait_until_stored(tmp_path)
    files.status = 503
    newer = machine(
        package(files, "2"), components=[sensor("eye", "detector"), sensor("new", "detector")]
    )
    async with run_server(newer, tmp_path) as server:
        await wait_for_state(server, "eye", "ready")
        assert await read_file(server, "eye") == "1"
        assert "503" in (await wait_for_state(server, "new", "unhealthy"))["reason"]
        files.status = None
        await wait_for_state(server, "new", "ready")

        async def is_new() -> bool:
            return await read_file(server, "eye") == "2"

        await wait_until(is_new)


async def test_local_archive_and_folder(tmp_path: Path) -> None:
    (tmp_path / "a.tar.gz").write_bytes(make_archive(**{"version.txt": b"packed"}))
    folder = tmp_path / "folder"
    config = machine(
        {"name": "packed", "type": "archive", "url": str(tmp_path / "a.tar.gz")},
        {"name": "folder", "type": "archive", "url": str(folder)},
        components=[sensor("one", "packed"), sensor("two", "folder")],
    )
    async with run_server(config, tmp_path) as server:
        await wait_for_state(server, "one", "ready")
        assert await read_file(server, "one") == "packed"
        missing = await wait_for_state(server, "two", "unhealthy")
        assert missing["reason"].endswith(f"is not available: the folder {folder} does not exist")
        folder.mkdir()
        (folder / "version.txt").write_text("as it is")
        await wait_for_state(server, "two", "ready")
        assert await read_file(server, "two") == "as it is"
    assert folder.exists()


def pack_module() -> bytes:
    run = f'#!/bin/sh\nexec {sys.executable} "$(dirname "$0")/main.py" "$@"\n'
    main = (Path(__file__).parent / "counting_module.py").read_text()
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as packed:
        for name, text, mode in (("run.sh", run, 0o755), ("main.py", main, 0o644)):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text.encode()), mode
            packed.addfile(member, io.BytesIO(text.encode()))
    return archive.getvalue()


def modular_machine(files: FileServer, version: str, *names: str) -> dict[str, Any]:
    """Return a machine with a module in a package, whose resources know its version."""
    return {
        "packages": [{**package(files, version, "counter"), "type": "module"}],
        "modules": [{"name": "counter", "executable_path": "${packages.module.counter}/run.sh"}],
        "components": [
            {
                "name": name,
                "api": "rdk:component:generic",
                "model": "acme:test:counted",
                "attributes": {"for": version},
            }
            for name in names
        ],
    }


async def test_module_in_a_package(files: FileServer, tmp_path: Path) -> None:
    """The module starts when its package is there, and its resources say what they wait for."""
    files.files["/counter-1.tar.gz"] = pack_module()
    files.status = 503
    async with run_server(modular_machine(files, "1", "c"), tmp_path) as server:
        waiting = await wait_for_state(server, "c", "unhealthy")
        assert 'module "counter" waits: package "counter" 1 is not available' in waiting["reason"]
        (module,) = (await server.status())["modules"]
        assert module["state"] == "unhealthy"
        files.status = None

        await wait_for_state(server, "c", "ready")


async def read_version(server: Server, name: str) -> str:
    """Return the version for which a resource is configured."""
    async with connect(server) as robot:
        about = await Generic.from_robot(robot, name).do_command({})
    attributes = about["attributes"]
    assert isinstance(attributes, dict)
    return str(attributes["for"])


async def test_module_and_its_resources_change_together(files: FileServer, tmp_path: Path) -> None:
    """While it runs, and after a restart: the former version never gets the new attributes."""
    files.files["/counter-1.tar.gz"] = files.files["/counter-2.tar.gz"] = pack_module()
    async with run_server(modular_machine(files, "1", "c"), tmp_path) as server:
        await wait_for_state(server, "c", "ready")
        await wait_until_stored(tmp_path)
        files.status = 503
        newer = with_free_port(modular_machine(files, "2", "c", "young"))
        server.save(newer)
        waiting = await wait_for_state(server, "young", "unhealthy")
        assert "503" in waiting["reason"]
        assert await read_version(server, "c") == "1"
    async with run_server(newer, tmp_path) as server:
        await wait_for_state(server, "c", "ready")
        await wait_for_state(server, "young", "unhealthy")
        assert await read_version(server, "c") == "1"
        files.status = None
        await wait_for_state(server, "young", "ready")
        assert await read_version(server, "young") == "2"
        await wait_for_state(server, "c", "ready")
        assert await read_version(server, "c") == "2"


async def test_process_waits_for_its_package_and_keeps_its_version(
    files: FileServer, tmp_path: Path
) -> None:
    files.status = 503

    def config(version: str) -> dict[str, Any]:
        program = "cat ${packages.archive.detector}/version.txt; exec sleep 1000"
        process = {"id": "reader", "name": "/bin/sh", "args": ["-c", program], "log": True}
        return {**machine(package(files, version), components=[]), "processes": [process]}

    async def find_running() -> dict[str, Any] | None:
        (found,) = (await server.status())["processes"]
        return found if found["state"] == "running" else None

    async with run_server(config("1"), tmp_path) as server:
        await wait_for_package(server, "failed")
        (waiting,) = (await server.status())["processes"]
        assert waiting["state"] == "pending"
        assert waiting["reason"].startswith('package "detector" 1')
        files.status = None
        before = await wait_until(find_running)
        await wait_for_package(server, "ready")

        files.status = 503
        server.save(with_free_port(config("2")))
        await wait_for_package(server, "failed")
        assert (await find_running() or {})["pid"] == before["pid"]
        files.status = None

        async def is_new() -> bool:
            found = await find_running()
            return found is not None and found["pid"] != before["pid"]

        await wait_until(is_new)


async def test_stop_during_a_download_is_prompt(files: FileServer, tmp_path: Path) -> None:
    files.chunk_delay = 5.0
    config = machine(package(files, "1"), components=[sensor("eye", "detector")])
    async with run_server(config, tmp_path) as server:
        await wait_for_package(server, "downloading")
        began = time.monotonic()
    assert time.monotonic() - began < limit(5)
    shutil.rmtree(tmp_path / "home")
