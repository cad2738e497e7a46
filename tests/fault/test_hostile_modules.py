"""Malicious modules and archives: the machine reports them and serves other clients."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.modules import make
from tests.support.machine.running import with_free_port
from tests.support.machine.watched import FAKES, Phase, WatchedServer, run_watched
from tests.support.waiting import poll

pytestmark = pytest.mark.asyncio(loop_scope="module")

MOST_KEPT = 50.0
"""MiB that may be left of an attack."""
GIB = 1 << 30
HOSTILE = Path(__file__).with_name("hostile.py")
API = "rdk:component:generic"

Settings = dict[str, Any]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def watched(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WatchedServer]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("DB_PASSWORD", "PLAIN", "COGWORK_API_KEY"):
            patch.setenv(name, f"value of {name}")
        async with run_watched(tmp_path_factory.mktemp("server")) as server:
            yield server


@pytest_asyncio.fixture(loop_scope="module")
async def server(watched: WatchedServer) -> WatchedServer:
    """A server without modules that is calm, whatever was done to it before."""
    watched.server.save(with_free_port(FAKES))
    await poll(watched.server.status, has_fakes_only)
    await watched.wait_until_calm()
    return watched


def has_fakes_only(status: Any) -> bool:
    return not status["modules"] and all(each["state"] == "ready" for each in status["resources"])


def assert_unaffected(phase: Phase) -> None:
    assert phase.bystander.failed == 0
    assert phase.growth < MOST_KEPT


def tar_header(name: str, kind: bytes, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


def write_zeros(file: Path, header: bytes) -> None:
    """Write enough zeros to see whether they are kept in memory."""
    with gzip.open(file, "wb", 1) as packed:
        packed.write(header)
        for _ in range(200):
            packed.write(bytes(1 << 20))


def write_escape(file: Path) -> None:
    """Write an archive that escapes through links that are too long to be resolved."""
    steps, component, path = "abcdefghijklmnop", "d" * 247, ""
    with tarfile.open(file, "w:gz", format=tarfile.PAX_FORMAT) as archive:

        def add(name: str, kind: bytes, target: str = "", content: bytes = b"") -> None:
            member = tarfile.TarInfo(name)
            member.type, member.linkname, member.size = kind, target, len(content)
            archive.addfile(member, io.BytesIO(content))

        for step in steps:
            add(f"{path}{component}", tarfile.DIRTYPE)
            add(f"{path}{step}", tarfile.SYMTYPE, component)
            path += f"{component}/"
        long = f"{'/'.join(steps)}/{'l' * 254}"
        add(long, tarfile.SYMTYPE, "../" * len(steps))
        add("escape", tarfile.SYMTYPE, f"{long}/../../../../outside")
        add("flag", tarfile.LNKTYPE, "escape/flag")
        add("flag", tarfile.REGTYPE, content=b"overwritten")


ARCHIVES: dict[str, tuple[Callable[[Path], None], str]] = {
    "escape": (write_escape, "is too long"),
    "pax": (
        lambda file: write_zeros(file, tar_header("x", b"x", GIB)),
        "has a header of 1073741824",
    ),
    "name": (
        lambda file: write_zeros(file, tar_header("x", b"L", GIB)),
        "has a header of 1073741824",
    ),
    "disk": (lambda file: write_zeros(file, tar_header("x", b"0", 3 * GIB)), "200 times its size"),
}


@pytest.mark.parametrize("name", ARCHIVES)
async def test_malicious_archives_are_refused(
    server: WatchedServer, name: str, tmp_path: Path
) -> None:
    write, words = ARCHIVES[name]
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "flag").write_text("original")
    file = tmp_path / "bad.tar.gz"
    write(file)
    await server.begin()
    since, home = len(server.server.out.lines), server.server.file.parent / "home"
    module = {"name": "bad", "executable_path": str(file)}
    server.server.save(with_free_port({**FAKES, "modules": [module]}))
    await server.server.out.wait_for(f"bad.tar.gz cannot be unpacked: .*{words}", since)
    assert_unaffected(await server.end(name))
    assert [each.read_text() for each in outside.iterdir()] == ["original"]
    # It would be unpacked again.
    server.server.save(with_free_port(FAKES))
    await poll(server.server.status, has_fakes_only)
    left = sum(each.stat().st_size for each in home.rglob("*") if each.is_file())
    assert left < 1 << 20


def machine_config(directory: Path, mode: str, **settings: Any) -> Settings:
    """Return the fakes, and a module with a resource that depends on another."""
    file = make.executable(directory, HOSTILE, "hostile")
    module = {
        "name": "bad",
        "executable_path": str(file),
        **settings,
        "env": {"HOSTILE": mode, **settings.get("env", {})},
    }
    own = {"name": "own", "api": API, "model": f"acme:{mode}:thing", "depends_on": ["needed"]}
    needed = {"name": "needed", "api": API, "model": "fake"}
    components = [*FAKES["components"], needed, own]
    return dict(with_free_port({**FAKES, "components": components, "modules": [module]}))


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("models", "module bad cannot be used: it reports 100001 models; the limit is 10000"),
        ("dependencies", r"its reply to ValidateConfig has \d+ bytes; the limit is 4194304"),
    ],
)
async def test_oversized_answers_of_modules_are_refused(
    server: WatchedServer, mode: str, words: str, tmp_path: Path
) -> None:
    await server.begin()
    since = len(server.server.out.lines)
    server.server.save(machine_config(tmp_path / "bin", mode))
    await server.server.out.wait_for(words, since)
    assert_unaffected(await server.end(mode))


async def test_endless_descriptions_are_bounded(server: WatchedServer, tmp_path: Path) -> None:
    await server.begin()
    since = len(server.server.out.lines)
    server.server.save(machine_config(tmp_path / "bin", "descriptions"))
    await server.server.out.wait_for("generic/own is ready", since)
    await server.wait_until_calm()
    assert_unaffected(await server.end("descriptions"))


async def test_secrets_in_the_environment_are_withheld_from_modules(
    server: WatchedServer, tmp_path: Path
) -> None:
    since = len(server.server.out.lines)
    config = machine_config(tmp_path / "bin", "environment")
    config["components"][0]["attributes"] = {"readings": {"password": "$DB_PASSWORD"}}
    server.server.save(config)
    found = await server.server.out.wait_for(r"environment (\[.*\])", since)
    inherited = json.loads(found[1])
    assert "PLAIN" in inherited
    assert "DB_PASSWORD" not in inherited
    assert "COGWORK_API_KEY" not in inherited


@pytest.mark.parametrize(
    ("access", "others"), [("machine", "OK"), ("dependencies", "PERMISSION_DENIED")]
)
async def test_module_access_limits_its_calls(
    server: WatchedServer, access: str, others: str, tmp_path: Path
) -> None:
    since = len(server.server.out.lines)
    server.server.save(machine_config(tmp_path / "bin", "calls", access=access))
    became = json.loads((await server.server.out.wait_for(r"calls (\{.*\})", since))[1])
    assert became["own"] == became["needed"] == "OK"
    assert became["g"] == others
    assert became["restart"] == ("NOT_FOUND" if access == "machine" else others)
