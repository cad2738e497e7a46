"""Getting one package: cut, damaged, hostile, full disks, and a crash at every moment."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import os
import random
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.archives import make_archive
from tests.support.hostile_archives import (
    ATTACKS,
    MANY,
    entry,
    extended,
    hard_link,
    header,
    pax_record,
    symlink,
    tar_of,
)
from tests.support.network.file_server import FileServer, serve_files
from tests.support.sizes import size

from cogwork.archives import tar
from cogwork.core.errors import Interrupted
from cogwork.packages import fetch as fetch_module
from cogwork.packages.cleanup import remove_leftovers
from cogwork.packages.errors import BadPackage, PackageUnavailable
from cogwork.packages.fetch import LIMITS, ArchiveSource, Fetch
from cogwork.packages.slot import PackageSlot

FILES = {"model.bin": random.Random(1).randbytes(700_000), "deep/er/labels.txt": b"cat\n"}
ARCHIVE = make_archive(**FILES)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serve_files() as found:
        found.files["/a"] = ARCHIVE
        yield found


@pytest.fixture
def slot(tmp_path: Path) -> PackageSlot:
    return PackageSlot(tmp_path / "data" / "ml_model" / "acme-detector-1_2")


def make_fetch(server: FileServer, slot: PackageSlot, sha256: str = "") -> Fetch:
    return Fetch(slot, ArchiveSource(server.url("/a")), "acme/detector", "1.2", sha256)


def read_files(directory: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file()
    }


def assert_only_the_package_is_left(slot: PackageSlot) -> None:
    assert read_files(slot.directory) == FILES
    assert not list((slot.directory.parent / "part").iterdir())


def test_package_is_complete_and_nothing_else_is_left(
    server: FileServer, slot: PackageSlot
) -> None:
    make_fetch(server, slot, hashlib.sha256(ARCHIVE).hexdigest().upper()).run()
    assert_only_the_package_is_left(slot)
    assert slot.record.is_file()
    before = len(server.requests)
    make_fetch(server, slot).run()
    assert len(server.requests) == before


def test_cut_download_continues_in_another_attempt(server: FileServer, slot: PackageSlot) -> None:
    server.cuts = [100_000] * 6
    for _ in range(6):
        fetch = make_fetch(server, slot)
        with pytest.raises(PackageUnavailable, match="ended after"):
            fetch.run()
        assert fetch.received == 100_000
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)
    assert server.ranges("/a")[-1] == "bytes=600000-"


def test_local_archive_is_unpacked_where_it_is(tmp_path: Path, slot: PackageSlot) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(ARCHIVE)
    Fetch(slot, ArchiveSource(file=archive), "", "1", hashlib.sha256(ARCHIVE).hexdigest()).run()
    assert_only_the_package_is_left(slot)
    assert archive.read_bytes() == ARCHIVE


def test_missing_local_archive(tmp_path: Path, slot: PackageSlot) -> None:
    with pytest.raises(PackageUnavailable, match="does not exist"):
        Fetch(slot, ArchiveSource(file=tmp_path / "a.tar.gz"), "", "1", "").run()


@pytest.mark.parametrize("check", ["sha256", "crc32c"])
def test_damaged_archive_is_refused_and_not_kept(
    server: FileServer, slot: PackageSlot, check: str
) -> None:
    if check == "crc32c":
        server.checksums["/a"] = "AAAAAA=="
    with pytest.raises(
        BadPackage, match="it was damaged during the download, or it is another file"
    ):
        make_fetch(server, slot, "0" * 64 if check == "sha256" else "").run()
    assert not slot.directory.exists()
    assert not slot.partial.exists()
    server.checksums.clear()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "does not have it"), (403, "check the login"), (500, "answers 500")]
)
def test_refusing_server(server: FileServer, slot: PackageSlot, status: int, words: str) -> None:
    server.status = status
    with pytest.raises(PackageUnavailable, match=words):
        make_fetch(server, slot).run()


def test_full_disk_is_explained_before_the_download(
    server: FileServer, slot: PackageSlot, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(PackageUnavailable, match=r"only 100 MB are free at .*; free some space"):
        make_fetch(server, slot).run()
    assert not slot.partial.exists()


def test_disk_that_fills_up_while_unpacking_keeps_the_download(
    server: FileServer, slot: PackageSlot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module, "LIMITS", replace(LIMITS, reserve=1 << 60))
    monkeypatch.setattr(Fetch, "_require_space", lambda *_: None)
    with pytest.raises(PackageUnavailable, match="more than the free disk space"):
        make_fetch(server, slot).run()
    assert not slot.unpacked.exists()
    monkeypatch.setattr(fetch_module, "LIMITS", LIMITS)
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)
    assert len(server.requests) == 1


def test_second_server_waits_for_the_first(server: FileServer, slot: PackageSlot) -> None:
    with slot.lock(), pytest.raises(PackageUnavailable, match="another server"):
        make_fetch(server, slot).run()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)


def test_cancelled_fetch_changes_nothing_more(server: FileServer, slot: PackageSlot) -> None:
    fetch = make_fetch(server, slot)
    fetch.cancel()
    with pytest.raises(Interrupted):
        fetch.run()
    assert not slot.directory.exists()


@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_archive_is_refused(
    server: FileServer,
    slot: PackageSlot,
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R17: nothing is written outside, nothing is left, and the package does not appear."""
    # Creating as many files as are allowed takes a minute.
    limits = replace(LIMITS, entries=MANY - 1, directories=MANY // 5, links=MANY // 10)
    monkeypatch.setattr(fetch_module, "LIMITS", limits)
    monkeypatch.setattr(tar, "MAX_RECORDS", 10 * (MANY - 1))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "flag").write_text("original")
    attack = ATTACKS[name]
    server.files["/a"] = attack.make()
    with pytest.raises(BadPackage, match=f"cannot be unpacked: .*({attack.words})") as refused:
        make_fetch(server, slot).run()
    assert len(str(refused.value)) < 700
    assert str(refused.value).isprintable()
    assert not slot.directory.exists()
    assert not slot.unpacked.exists()
    assert not slot.partial.exists()
    assert read_files(outside) == {"flag": b"original"}
    assert {each.name for each in tmp_path.iterdir()} == {"outside", "data"}


def test_unusual_but_honest_archive(server: FileServer, slot: PackageSlot) -> None:
    """Names that differ in case or are not UTF-8, members of gzip, links, and attributes."""
    setuid = entry("bin/run", content=b"x")
    setuid[0].mode = 0o6777
    packed = tar_of(
        entry("a"),
        entry("A"),
        entry("n" * 255),
        setuid,
        symlink("bin/latest", "run"),
        hard_link("bin/again", "bin/run"),
        entry("attributes", pax={"SCHILY.xattr.user.x": "a\0b"}),
        compress=False,
    )
    strange = extended(b"x", pax_record("path", b"\xff\n")) + header("f")
    packed = strange + packed
    server.files["/a"] = gzip.compress(packed[:700]) + gzip.compress(packed[700:]) + bytes(100)
    make_fetch(server, slot).run()
    found = {os.fsencode(each.name) for each in slot.directory.iterdir()}
    assert found == {b"a", b"A", b"n" * 255, b"bin", b"attributes", b"\xff\n"}
    assert (slot.directory / "bin/latest").read_bytes() == b"x"
    assert (slot.directory / "bin/again").stat().st_mode & 0o7777 == 0o755


def test_large_honest_archive_is_not_a_bomb(server: FileServer, slot: PackageSlot) -> None:
    content = os.urandom(1 << 20) * 40
    server.files["/a"] = tar_of(entry("f", content=content), compress=False)
    make_fetch(server, slot).run()
    assert (slot.directory / "f").stat().st_size == len(content)


class Crash(BaseException):
    """The process is gone."""


class CrashingDisk:
    """Ends the process before the nth system call that changes the disk."""

    STEPS = ("mkdir", "open", "write", "rename", "replace", "fsync", "sync", "unlink", "rmdir")

    def __init__(self, patch: pytest.MonkeyPatch, crash_at: int) -> None:
        self.calls = 0
        self._crash_at = crash_at
        for name in self.STEPS:
            patch.setattr(os, name, self._wrap(getattr(os, name)))

    def _wrap(self, original: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            self.calls += 1
            if self.calls >= self._crash_at:
                raise Crash
            return original(*args, **named)

        return call


@pytest.mark.long
@pytest.mark.parametrize("seed", range(size(ci=3, full=10)))
def test_crash_at_every_step_leaves_all_or_nothing(
    server: FileServer, slot: PackageSlot, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Crash at every step in turn, and start again."""
    rng = random.Random(seed)
    expected = {"a/b": b"1" * 5000, "c": b"2"}
    server.files["/a"] = make_archive(**expected)
    for crash_at in itertools.count(1):
        shutil.rmtree(slot.directory.parent, ignore_errors=True)
        server.cuts = [rng.randrange(200)] if rng.random() < 0.5 else []
        with monkeypatch.context() as patch, contextlib.suppress(Crash, PackageUnavailable):
            disk = CrashingDisk(patch, crash_at)
            make_fetch(server, slot).run()
        was_complete = slot.directory.exists()
        if was_complete:
            assert read_files(slot.directory) == expected
        server.cuts = []
        remove_leftovers(slot.directory.parent.parent, {slot.directory})
        make_fetch(server, slot).run()
        assert read_files(slot.directory) == expected
        assert not list((slot.directory.parent / "part").iterdir())
        if was_complete and disk.calls < crash_at:
            break
    assert crash_at > 20


def test_removal_leaves_all_or_nothing(server: FileServer, slot: PackageSlot) -> None:
    make_fetch(server, slot).run()
    slot.remove()
    assert not slot.directory.exists()
    assert not slot.record.exists()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)
