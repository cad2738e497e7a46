"""Module bundles: unpacking, caching and errors of broken archives."""

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
from tests.support.waiting import wait_until, wait_until_asleep

from cogwork.core.clock import ManualClock, SystemClock
from cogwork.modules.bundle import BadBundle, is_bundle, unpack_bundle
from cogwork.modules.meta import BadMeta

META = json.dumps({"entrypoint": "bin/run.sh"}).encode()
PROGRAM = b"#!/bin/sh\nexit 0\n"
FILES = {"meta.json": META, "bin/run.sh": PROGRAM}


class BundleFixture:
    """An archive and the home directory that it is unpacked to."""

    def __init__(self, directory: Path) -> None:
        self.archive = directory / "acme.tar.gz"
        self.home = directory / "home"
        self.messages: list[str] = []
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
        # Two archives within one clock tick must differ too.
        self._written += 1
        os.utime(self.archive, (self._written, self._written))

    async def unpack(self) -> tuple[Path, Path]:
        return await unpack_bundle(
            "acme", self.archive, self.home, self.messages.append, SystemClock()
        )


@pytest.fixture
def bundle(tmp_path: Path) -> BundleFixture:
    return BundleFixture(tmp_path)


@pytest.mark.parametrize("name", ["a.tar.gz", "A.TGZ", "a.tar", "a.tar.xz", "a.tar.bz2"])
def test_archive_names_are_bundles(name: str) -> None:
    assert is_bundle(Path(name))


@pytest.mark.parametrize("name", ["run.sh", "tar.gz.py", "a.zip", "tar"])
def test_other_names_are_not_bundles(name: str) -> None:
    assert not is_bundle(Path(name))


async def test_meta_names_the_program(bundle: BundleFixture) -> None:
    bundle.pack(FILES)
    folder, program = await bundle.unpack()
    assert program == folder / "bin" / "run.sh"
    assert program.read_bytes() == PROGRAM
    assert os.access(program, os.X_OK)
    assert [folder] == bundle.unpacked


async def test_only_a_changed_bundle_is_unpacked_again(bundle: BundleFixture) -> None:
    bundle.pack(FILES)
    before, _ = await bundle.unpack()
    (before / "made.by.it").touch()
    assert (await bundle.unpack())[0] == before
    assert (before / "made.by.it").exists()

    before.with_name(before.name + ".first_run_succeeded").touch()
    bundle.pack({**FILES, "bin/run.sh": b"another"})
    after, program = await bundle.unpack()
    assert program.read_bytes() == b"another"
    assert bundle.unpacked == [after]


def symlink_entry(name: str, to: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, to
    return member


def device_entry(name: str) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type = tarfile.CHRTYPE
    return member


@pytest.mark.parametrize(
    "special",
    [
        symlink_entry("out", "/etc"),
        symlink_entry("out", "../../.."),
        tarfile.TarInfo("../out"),
        device_entry("null"),
    ],
    ids=["an absolute link", "a link out of it", "a file beside it", "a device"],
)
async def test_unsafe_entry_is_refused(bundle: BundleFixture, special: tarfile.TarInfo) -> None:
    bundle.pack(FILES, special)
    with pytest.raises(BadBundle, match=rf"^{bundle.archive} cannot be unpacked: "):
        await bundle.unpack()
    assert bundle.unpacked == []


async def test_missing_bundle_raises(bundle: BundleFixture) -> None:
    with pytest.raises(BadBundle, match="No such file"):
        await bundle.unpack()


async def test_truncated_bundle_raises_and_leaves_nothing(bundle: BundleFixture) -> None:
    bundle.pack({**FILES, "noise": os.urandom(100_000)})
    whole = bundle.archive.read_bytes()
    bundle.archive.write_bytes(whole[:50_000])
    with pytest.raises(BadBundle, match="is not an archive, or is incomplete; pack it again"):
        await bundle.unpack()
    assert bundle.unpacked == []
    bundle.archive.write_bytes(whole)
    await bundle.unpack()


async def test_file_that_is_not_an_archive_raises(bundle: BundleFixture) -> None:
    bundle.archive.write_bytes(b"garbage")
    with pytest.raises(BadBundle, match=r"^\S+ is not an archive, or is incomplete; pack it again"):
        await bundle.unpack()


@pytest.mark.parametrize(
    "files",
    [
        {"bin/run.sh": PROGRAM},
        {"meta.json": b"{}", "bin/run.sh": PROGRAM},
        {f"acme/{name}": content for name, content in FILES.items()},
    ],
    ids=["no meta.json", "no entrypoint", "all in a folder"],
)
async def test_bundle_without_entrypoint_raises(
    bundle: BundleFixture, files: Mapping[str, bytes]
) -> None:
    bundle.pack(files)
    with pytest.raises(BadBundle, match=r'contains no meta.json with an "entrypoint"'):
        await bundle.unpack()


async def test_entrypoint_outside_the_bundle_raises(bundle: BundleFixture) -> None:
    bundle.pack({**FILES, "meta.json": b'{"entrypoint": "/bin/sh"}'})
    with pytest.raises(
        BadMeta, match=r'"entrypoint" in .* is "/bin/sh"; it must name a file inside the folder'
    ):
        await bundle.unpack()


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
async def test_invalid_meta_raises(bundle: BundleFixture, meta: bytes) -> None:
    bundle.pack({"meta.json": meta}, symlink_entry("circle", "circle"))
    with pytest.raises(BadMeta):
        await bundle.unpack()


async def test_decompression_bomb_is_refused(bundle: BundleFixture) -> None:
    with gzip.open(bundle.archive, "wb", 1) as packed:
        member = tarfile.TarInfo("big")
        member.size = 3 << 30
        packed.write(member.tobuf(tarfile.GNU_FORMAT))
        for _ in range(100):
            packed.write(bytes(1 << 20))
    with pytest.raises(BadBundle, match="unpacks to more than 200 times its size"):
        await bundle.unpack()
    assert bundle.unpacked == []


async def test_slow_unpacking_reports_progress_and_can_be_cancelled(bundle: BundleFixture) -> None:
    # Opening this pipe blocks, because it is never written to.
    os.mkfifo(bundle.archive)
    clock = ManualClock()
    waiting = asyncio.ensure_future(
        unpack_bundle("acme", bundle.archive, bundle.home, bundle.messages.append, clock)
    )
    for _ in range(3):
        await wait_until_asleep(clock, waiting)
        await clock.advance(5)
    assert bundle.messages[:2] == [f"unpacking {bundle.archive}: 0 of 0 MB"] * 2
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    os.close(os.open(bundle.archive, os.O_WRONLY))


async def test_unpacking_without_progress_raises(bundle: BundleFixture) -> None:
    os.mkfifo(bundle.archive)
    clock = ManualClock()
    waiting = asyncio.ensure_future(
        unpack_bundle("acme", bundle.archive, bundle.home, bundle.messages.append, clock)
    )
    for _ in range(15):
        await wait_until_asleep(clock, waiting)
        await clock.advance(5)
    with pytest.raises(BadBundle, match=r"made no progress for 6\d s; check the disk"):
        await waiting
    os.close(os.open(bundle.archive, os.O_WRONLY))


async def test_cancelled_unpacking_keeps_the_newer_bundle(
    bundle: BundleFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may still be syncing to the disk while another bundle is unpacked and runs."""
    bundle.pack(FILES)
    syncing, synced = threading.Event(), threading.Event()

    def sync() -> None:
        syncing.set()
        synced.wait(5)

    monkeypatch.setattr("cogwork.modules.bundle.os.sync", sync)
    slow = asyncio.ensure_future(bundle.unpack())
    assert await asyncio.to_thread(syncing.wait, 5)
    slow.cancel()
    await asyncio.wait({slow})
    monkeypatch.setattr("cogwork.modules.bundle.os.sync", lambda: None)
    bundle.pack({**FILES, "bin/run.sh": b"another"})
    folder, _ = await bundle.unpack()
    synced.set()
    await wait_until(
        lambda: not any(each.name.startswith("unpacking") for each in threading.enumerate())
    )
    assert bundle.unpacked == [folder]
