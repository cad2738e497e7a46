"""Getting one package: cut, damaged, hostile, full disks, and a crash at every moment."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import itertools
import os
import random
import shutil
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.archives import make_archive, make_link_archive
from tests.file_server import FileServer, serve_files
from tests.sizes import size

from cogwork.core.errors import Interrupted
from cogwork.packages import fetch as fetch_module
from cogwork.packages.cleanup import remove_leftovers
from cogwork.packages.errors import BadPackage, PackageUnavailable
from cogwork.packages.fetch import LIMITS, ArchiveSource, Fetch
from cogwork.packages.slot import Slot

FILES = {"model.bin": random.Random(1).randbytes(700_000), "deep/er/labels.txt": b"cat\n"}
ARCHIVE = make_archive(**FILES)


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serve_files() as found:
        found.files["/a"] = ARCHIVE
        yield found


@pytest.fixture
def slot(tmp_path: Path) -> Slot:
    return Slot(tmp_path / "data" / "ml_model" / "acme-detector-1_2")


def make_fetch(server: FileServer, slot: Slot, sha256: str = "") -> Fetch:
    return Fetch(slot, ArchiveSource(server.url("/a")), "acme/detector", "1.2", sha256)


def read_files(directory: Path) -> dict[str, bytes]:
    return {
        str(each.relative_to(directory)): each.read_bytes()
        for each in directory.rglob("*")
        if each.is_file()
    }


def assert_only_the_package_is_left(slot: Slot) -> None:
    assert read_files(slot.directory) == FILES
    assert not list((slot.directory.parent / "part").iterdir())


def test_package_is_complete_and_nothing_else_is_left(server: FileServer, slot: Slot) -> None:
    make_fetch(server, slot, hashlib.sha256(ARCHIVE).hexdigest().upper()).run()
    assert_only_the_package_is_left(slot)
    assert slot.record.is_file()
    before = len(server.requests)
    make_fetch(server, slot).run()
    assert len(server.requests) == before


def test_cut_download_continues_in_another_attempt(server: FileServer, slot: Slot) -> None:
    server.cuts = [100_000] * 6
    for _ in range(6):
        fetch = make_fetch(server, slot)
        with pytest.raises(PackageUnavailable, match="ended after"):
            fetch.run()
        assert fetch.received == 100_000
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)
    assert server.ranges("/a")[-1] == "bytes=600000-"


def test_local_archive_is_unpacked_where_it_is(tmp_path: Path, slot: Slot) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(ARCHIVE)
    Fetch(slot, ArchiveSource(file=archive), "", "1", hashlib.sha256(ARCHIVE).hexdigest()).run()
    assert_only_the_package_is_left(slot)
    assert archive.read_bytes() == ARCHIVE


def test_missing_local_archive(tmp_path: Path, slot: Slot) -> None:
    with pytest.raises(PackageUnavailable, match="does not exist"):
        Fetch(slot, ArchiveSource(file=tmp_path / "a.tar.gz"), "", "1", "").run()


@pytest.mark.parametrize("check", ["sha256", "crc32c"])
def test_damaged_archive_is_refused_and_not_kept(
    server: FileServer, slot: Slot, check: str
) -> None:
    if check == "crc32c":
        server.checksums["/a"] = "AAAAAA=="
    with pytest.raises(BadPackage, match="it was damaged on its way, or it is another file"):
        make_fetch(server, slot, "0" * 64 if check == "sha256" else "").run()
    assert not slot.directory.exists()
    assert not slot.partial.exists()
    server.checksums.clear()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)


@pytest.mark.parametrize(
    ("status", "words"), [(404, "does not have it"), (403, "check the login"), (500, "answers 500")]
)
def test_refusing_server(server: FileServer, slot: Slot, status: int, words: str) -> None:
    server.status = status
    with pytest.raises(PackageUnavailable, match=words):
        make_fetch(server, slot).run()


def test_full_disk_is_explained_before_the_download(
    server: FileServer, slot: Slot, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = shutil.disk_usage("/")._replace(free=100_000_000)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(PackageUnavailable, match=r"only 100 MB are free at .*; free some space"):
        make_fetch(server, slot).run()
    assert not slot.partial.exists()


def test_disk_that_fills_up_while_unpacking_keeps_the_download(
    server: FileServer, slot: Slot, monkeypatch: pytest.MonkeyPatch
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


def test_second_server_waits_for_the_first(server: FileServer, slot: Slot) -> None:
    with slot.lock(), pytest.raises(PackageUnavailable, match="another server"):
        make_fetch(server, slot).run()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)


def test_cancelled_fetch_changes_nothing_more(server: FileServer, slot: Slot) -> None:
    fetch = make_fetch(server, slot)
    fetch.cancel()
    with pytest.raises(Interrupted):
        fetch.run()
    assert not slot.directory.exists()


def tar_of(*members: tuple[tarfile.TarInfo, bytes], compress: bool = True) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), 1) if compress else packed.getvalue()


def entry(
    name: str, kind: bytes = tarfile.REGTYPE, target: str = "", content: bytes = b""
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member, content


def bomb() -> bytes:
    """80 MiB of zeros in 80 kB."""
    return tar_of(entry("zeros", content=bytes(80 << 20)))


MANY = size(ci=1001, full=100_001)

ATTACKS: dict[str, Callable[[], bytes]] = {
    "parent": lambda: tar_of(entry("../../../outside/flag", content=b"x")),
    "hidden parent": lambda: tar_of(entry("a/../../../../outside/flag", content=b"x")),
    "absolute": lambda: tar_of(entry("/outside", content=b"x")),
    "absolute link": lambda: make_link_archive("/etc/passwd"),
    "parent link": lambda: make_link_archive("../../../../outside"),
    "link, then file in it": lambda: tar_of(
        entry("l", tarfile.SYMTYPE, "."), entry("l/f", content=b"x")
    ),
    "chain of links": lambda: tar_of(
        entry("p/q/s", tarfile.SYMTYPE, "."), entry("t", tarfile.SYMTYPE, "p/q/s/../../..")
    ),
    "hard link": lambda: tar_of(entry("h", tarfile.LNKTYPE, "../../../../outside/flag")),
    "absolute hard link": lambda: tar_of(entry("h", tarfile.LNKTYPE, "/etc/passwd")),
    "hard link to a link": lambda: tar_of(
        entry("l", tarfile.SYMTYPE, "f"), entry("h", tarfile.LNKTYPE, "l")
    ),
    "character device": lambda: tar_of(entry("d", tarfile.CHRTYPE)),
    "block device": lambda: tar_of(entry("d", tarfile.BLKTYPE)),
    "named pipe": lambda: tar_of(entry("d", tarfile.FIFOTYPE)),
    "bomb": bomb,
    "bomb in a bomb": lambda: gzip.compress(bomb()),
    "duplicate": lambda: tar_of(entry("f", content=b"1"), entry("f", content=b"2")),
    "duplicate by another spelling": lambda: tar_of(
        entry("d/f", content=b"1"), entry("./d//f", content=b"2")
    ),
    "file and directory": lambda: tar_of(entry("f", content=b"1"), entry("f/g", content=b"2")),
    "many entries": lambda: tar_of(*(entry(f"{at}") for at in range(MANY))),
    "deep path": lambda: tar_of(entry("d/" * 65 + "f")),
    "cut off": lambda: ARCHIVE[:300_000],
    "empty": lambda: b"",
    "zip": lambda: b"PK\x03\x04" + bytes(100),
    "page": lambda: b"<html>sign in to continue</html>" * 50,
    "declared larger than it is": lambda: tar_of(entry("f", content=b"x" * 600), compress=False)[
        :600
    ],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_archive_is_refused(
    server: FileServer,
    slot: Slot,
    tmp_path: Path,
    attack: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """R17: nothing is written outside, nothing is left, and the package does not appear."""
    # Creating as many files as are allowed takes a minute.
    monkeypatch.setattr(fetch_module, "LIMITS", replace(LIMITS, entries=MANY - 1))
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "flag").write_text("original")
    server.files["/a"] = ATTACKS[attack]()
    with pytest.raises(BadPackage, match="cannot be unpacked") as refused:
        make_fetch(server, slot).run()
    assert len(str(refused.value)) < 500
    assert not slot.directory.exists()
    assert not slot.unpacked.exists()
    assert read_files(outside) == {"flag": b"original"}
    assert {each.name for each in tmp_path.iterdir()} == {"outside", "data"}


def test_large_honest_archive_is_not_a_bomb(server: FileServer, slot: Slot) -> None:
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


@pytest.mark.parametrize("seed", range(size(ci=3, full=10)))
def test_crash_at_every_step_leaves_all_or_nothing(
    server: FileServer, slot: Slot, monkeypatch: pytest.MonkeyPatch, seed: int
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


def test_removal_leaves_all_or_nothing(server: FileServer, slot: Slot) -> None:
    make_fetch(server, slot).run()
    slot.remove()
    assert not slot.directory.exists()
    assert not slot.record.exists()
    make_fetch(server, slot).run()
    assert_only_the_package_is_left(slot)
