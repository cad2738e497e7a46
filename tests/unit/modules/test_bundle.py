"""A module in one file: what it is unpacked to, when, and what is told of one that is broken."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import tarfile
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.modules.bundle import BadBundle, is_bundle, unpack_bundle
from cogwork.modules.meta import BadMeta

META = json.dumps({"entrypoint": "bin/run.sh"}).encode()
PROGRAM = b"#!/bin/sh\nexit 0\n"
FILES = {"meta.json": META, "bin/run.sh": PROGRAM}


class Shelf:
    """Where an archive lies, and where it is unpacked."""

    def __init__(self, directory: Path) -> None:
        self.archive = directory / "acme.tar.gz"
        self.home = directory / "home"
        self.said: list[str] = []
        self._written = 0

    @property
    def unpacked(self) -> list[Path]:
        return sorted((self.home / "modules" / "acme").iterdir())

    def pack(self, files: Mapping[str, bytes], *special: tarfile.TarInfo) -> None:
        with tarfile.open(self.archive, "w:gz") as archive:
            for name, content in files.items():
                member = tarfile.TarInfo(name)
                member.size, member.mode = len(content), 0o755
                archive.addfile(member, io.BytesIO(content))
            for member in special:
                archive.addfile(member)
        # Two within the same tick of the clock are two all the same.
        self._written += 1
        os.utime(self.archive, (self._written, self._written))

    async def unpack(self) -> tuple[Path, Path]:
        return await unpack_bundle("acme", self.archive, self.home, self.said.append, SystemClock())


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


@pytest.mark.parametrize("name", ["a.tar.gz", "A.TGZ", "a.tar", "a.tar.xz", "a.tar.bz2"])
def test_is_known_by_its_name(name: str) -> None:
    assert is_bundle(Path(name))


@pytest.mark.parametrize("name", ["run.sh", "tar.gz.py", "a.zip", "tar"])
def test_a_program_is_none(name: str) -> None:
    assert not is_bundle(Path(name))


async def test_its_meta_names_the_program(shelf: Shelf) -> None:
    shelf.pack(FILES)
    folder, program = await shelf.unpack()
    assert program == folder / "bin" / "run.sh"
    assert program.read_bytes() == PROGRAM
    assert os.access(program, os.X_OK)
    assert [folder] == shelf.unpacked


async def test_only_a_changed_one_is_unpacked_again(shelf: Shelf) -> None:
    shelf.pack(FILES)
    before, _ = await shelf.unpack()
    (before / "made.by.it").touch()
    assert (await shelf.unpack())[0] == before
    assert (before / "made.by.it").exists()

    before.with_name(before.name + ".first_run_succeeded").touch()
    shelf.pack({**FILES, "bin/run.sh": b"another"})
    after, program = await shelf.unpack()
    assert program.read_bytes() == b"another"
    assert shelf.unpacked == [after]


def link(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


def device(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = tarfile.CHRTYPE
    return member


@pytest.mark.parametrize(
    "special",
    [link("out", "/etc"), link("out", "../../.."), tarfile.TarInfo("../out"), device("null")],
    ids=["an absolute link", "a link out of it", "a file beside it", "a device"],
)
async def test_nothing_gets_out_of_its_folder(shelf: Shelf, special: tarfile.TarInfo) -> None:
    shelf.pack(FILES, special)
    with pytest.raises(BadBundle, match=rf"^{shelf.archive} cannot be unpacked: "):
        await shelf.unpack()
    assert shelf.unpacked == []


async def test_one_that_is_not_there(shelf: Shelf) -> None:
    with pytest.raises(BadBundle, match="No such file"):
        await shelf.unpack()


async def test_one_that_is_cut_off_leaves_nothing(shelf: Shelf) -> None:
    shelf.pack({**FILES, "noise": os.urandom(100_000)})
    whole = shelf.archive.read_bytes()
    shelf.archive.write_bytes(whole[:50_000])
    with pytest.raises(BadBundle, match="is not an archive, or is incomplete; pack it again"):
        await shelf.unpack()
    assert shelf.unpacked == []
    shelf.archive.write_bytes(whole)
    await shelf.unpack()


async def test_one_that_is_no_archive(shelf: Shelf) -> None:
    shelf.archive.write_bytes(b"garbage")
    with pytest.raises(BadBundle, match=r"^\S+ is not an archive, or is incomplete; pack it again"):
        await shelf.unpack()


@pytest.mark.parametrize(
    "files",
    [
        {"bin/run.sh": PROGRAM},
        {"meta.json": b"{}", "bin/run.sh": PROGRAM},
        {f"acme/{name}": content for name, content in FILES.items()},
    ],
    ids=["no meta.json", "no entrypoint", "all in a folder"],
)
async def test_one_that_does_not_say_what_to_start(
    shelf: Shelf, files: Mapping[str, bytes]
) -> None:
    shelf.pack(files)
    with pytest.raises(BadBundle, match=r'contains no meta.json that names its "entrypoint"'):
        await shelf.unpack()


async def test_one_that_starts_something_else(shelf: Shelf) -> None:
    shelf.pack({**FILES, "meta.json": b'{"entrypoint": "/bin/sh"}'})
    with pytest.raises(
        BadMeta, match=r'"entrypoint" in .* is "/bin/sh"; it must name a file in that folder'
    ):
        await shelf.unpack()


@pytest.mark.parametrize(
    "meta",
    [
        b"[" * 100_000,
        b'{"entrypoint": "a\\u0000b"}',
        b'{"entrypoint": "\\ud800"}',
        b'{"entrypoint": "circle"}',
        b'{"entrypoint": ["run.sh"]}',
    ],
    ids=["deep", "NUL", "surrogate", "circle", "list"],
)
async def test_one_whose_meta_makes_no_sense(shelf: Shelf, meta: bytes) -> None:
    shelf.pack({"meta.json": meta}, link("circle", "circle"))
    with pytest.raises(BadMeta):
        await shelf.unpack()


async def test_a_bomb_is_given_up_before_it_fills_the_disk(shelf: Shelf) -> None:
    with gzip.open(shelf.archive, "wb", 1) as packed:
        member = tarfile.TarInfo("big")
        member.size = 3 << 30
        packed.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(100):
            packed.write(bytes(1 << 20))
    with pytest.raises(BadBundle, match="unpacks to more than 200 times its size"):
        await shelf.unpack()
    assert shelf.unpacked == []


async def test_a_slow_one_tells_how_far_it_is_and_can_be_given_up(shelf: Shelf) -> None:
    # It is never written to: whoever opens it waits.
    os.mkfifo(shelf.archive)
    clock = ManualClock()
    waiting = asyncio.ensure_future(
        unpack_bundle("acme", shelf.archive, shelf.home, shelf.said.append, clock)
    )
    for _ in range(3):
        await asyncio.sleep(0.01)
        await clock.advance(5)
    assert shelf.said[:2] == [f"unpacking {shelf.archive}: 0 of 0 MB"] * 2
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(os.open(shelf.archive, os.O_WRONLY))


async def test_a_disk_that_is_stuck_is_told(shelf: Shelf) -> None:
    os.mkfifo(shelf.archive)
    clock = ManualClock()
    waiting = asyncio.ensure_future(
        unpack_bundle("acme", shelf.archive, shelf.home, shelf.said.append, clock)
    )
    for _ in range(15):
        await asyncio.sleep(0.01)
        await clock.advance(5)
    with pytest.raises(BadBundle, match=r"made no progress for 6\d s; check the disk"):
        await waiting
    os.close(os.open(shelf.archive, os.O_WRONLY))


async def test_one_that_was_given_up_leaves_what_there_is(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be long in writing to the disk while another has been unpacked, and runs."""
    shelf.pack(FILES)
    syncing, synced = threading.Event(), threading.Event()

    def sync() -> None:
        syncing.set()
        synced.wait(5)

    monkeypatch.setattr("cogwork.modules.bundle.os.sync", sync)
    slow = asyncio.ensure_future(shelf.unpack())
    assert await asyncio.to_thread(syncing.wait, 5)
    slow.cancel()
    await asyncio.wait({slow})
    monkeypatch.setattr("cogwork.modules.bundle.os.sync", lambda: None)
    shelf.pack({**FILES, "bin/run.sh": b"another"})
    folder, _ = await shelf.unpack()
    synced.set()
    async with asyncio.timeout(5):
        while any(each.name.startswith("unpacking") for each in threading.enumerate()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    assert shelf.unpacked == [folder]
