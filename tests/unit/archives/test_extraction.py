"""Extraction of archives: nothing is written outside the directory."""

from __future__ import annotations

import contextlib
import io
import stat
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.archives.test_tar import entry, pack

from cogwork.archives.checking import check
from cogwork.archives.extraction import extract
from cogwork.archives.limits import ArchiveLimits
from cogwork.archives.tar import BadArchive

MIB = 1 << 20


class ExtractionFixture:
    """A directory to extract into, next to one that must stay untouched."""

    def __init__(self, directory: Path) -> None:
        self.inside = directory / "one" / "inside"
        self.inside.mkdir(parents=True)
        self.outside = directory / "outside"
        self.outside.mkdir()
        self.flag = self.outside / "flag"
        self.flag.write_text("original")

    def extract(
        self,
        *members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes],
        is_strict: bool = False,
        **limits: int,
    ) -> None:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for each in members:
                member, content = each if isinstance(each, tuple) else (each, b"")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        file.seek(0)
        extract(file.read, 1000, self.inside, ArchiveLimits(is_strict=is_strict, **limits))

    def assert_untouched(self) -> None:
        assert self.flag.read_text() == "original"
        assert list(self.outside.iterdir()) == [self.flag]
        assert self.flag.stat().st_nlink == 1

    @property
    def found(self) -> set[str]:
        return {str(each.relative_to(self.inside)) for each in self.inside.rglob("*")}


@pytest.fixture
def extraction(tmp_path: Path) -> ExtractionFixture:
    return ExtractionFixture(tmp_path)


def symlink_entry(name: str, to: str) -> tarfile.TarInfo:
    return entry(name, tarfile.SYMTYPE, to)


def hardlink_entry(name: str, to: str) -> tarfile.TarInfo:
    return entry(name, tarfile.LNKTYPE, to)


def test_files_directories_and_links_are_extracted(extraction: ExtractionFixture) -> None:
    extraction.extract(
        entry(".", tarfile.DIRTYPE),
        entry("./empty", tarfile.DIRTYPE),
        (entry("./bin/run.sh"), b"run"),
        symlink_entry("bin/latest", "run.sh"),
        symlink_entry("deep/er/up", "../../bin"),
        hardlink_entry("bin/again", "bin/run.sh"),
    )
    assert (extraction.inside / "deep/er/up/latest").read_bytes() == b"run"
    assert (extraction.inside / "bin/again").read_bytes() == b"run"
    assert (extraction.inside / "empty").is_dir()


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(0o6777, 0o755), (0o644, 0o644), (0o000, 0o600), (0o011, 0o600)]
)
def test_file_modes_are_restricted(
    extraction: ExtractionFixture, packed: int, unpacked: int
) -> None:
    member = entry("f")
    member.mode = packed
    extraction.extract(member)
    assert stat.S_IMODE((extraction.inside / "f").stat().st_mode) == unpacked


def test_modification_times_are_kept(extraction: ExtractionFixture) -> None:
    """Python compares modification times with those in its compiled files."""
    member, odd = entry("f"), entry("odd")
    member.mtime = 1_600_000_000
    odd.pax_headers = {"mtime": "nan"}
    extraction.extract(member, odd)
    assert (extraction.inside / "f").stat().st_mtime == 1_600_000_000


def test_repeated_entry_replaces_the_earlier_one(extraction: ExtractionFixture) -> None:
    extraction.extract(
        (entry("f"), b"first"),
        hardlink_entry("h", "f"),
        (entry("f"), b"second"),
        symlink_entry("l", "f"),
        (entry("l"), b"no link"),
    )
    assert (extraction.inside / "f").read_bytes() == b"second"
    assert (extraction.inside / "h").read_bytes() == b"first"
    assert not (extraction.inside / "l").is_symlink()


@pytest.mark.parametrize(
    "members",
    [
        [entry("../../outside/flag")],
        [entry("a/../../../outside/flag")],
        [symlink_entry("l", "/etc")],
        [symlink_entry("l", "../../outside")],
        [symlink_entry("l", "a/../../../outside")],
        [symlink_entry("p/q/s", "."), symlink_entry("t", "p/q/s/../../..")],
        [symlink_entry("l", "")],
        [hardlink_entry("h", "../../outside/flag")],
        [hardlink_entry("h", "missing")],
        [symlink_entry("l", "f"), hardlink_entry("h", "l")],
        [entry("f"), entry("f/g")],
        [entry("d", tarfile.DIRTYPE), entry("d")],
        [symlink_entry("l", "d"), entry("l/f")],
        [entry("x" * 1025)],
        [entry("d/" * 65, tarfile.DIRTYPE)],
        [entry("f"), symlink_entry("l", "x" * 1025)],
        [entry("d", tarfile.CHRTYPE)],
    ],
)
def test_unsafe_or_invalid_members_are_refused(
    extraction: ExtractionFixture, members: list[tarfile.TarInfo]
) -> None:
    with pytest.raises(BadArchive):
        extraction.extract(*members)
    extraction.assert_untouched()


@pytest.mark.parametrize(
    "members",
    [
        [entry("/f")],
        [entry("/d", tarfile.DIRTYPE)],
        [entry("f"), hardlink_entry("h", "/f")],
        [entry("f"), entry("f")],
        [entry("f"), entry("./f")],
        [entry("d/f"), entry("d//f")],
        [symlink_entry("l", "f"), entry("l")],
        [entry("l"), symlink_entry("l", "f")],
        [symlink_entry("l", "f"), symlink_entry("l", "f")],
        [entry("f"), hardlink_entry("h", "f"), hardlink_entry("h", "f")],
    ],
)
def test_strict_extraction_refuses_absolute_paths_and_repeated_entries(
    extraction: ExtractionFixture, members: list[tarfile.TarInfo]
) -> None:
    with pytest.raises(BadArchive):
        extraction.extract(*members, is_strict=True)
    extraction.assert_untouched()
    with pytest.raises(BadArchive):
        check(io.BytesIO(pack(*members)).read, 1000, ArchiveLimits(is_strict=True))


def test_strict_extraction_accepts_a_repeated_directory(extraction: ExtractionFixture) -> None:
    members = [entry("d", tarfile.DIRTYPE), entry("d/f"), entry("d/", tarfile.DIRTYPE)]
    extraction.extract(*members, is_strict=True)
    assert extraction.found == {"d", "d/f"}
    check(io.BytesIO(pack(*members)).read, 1000, ArchiveLimits(is_strict=True))


def test_long_link_attack_on_the_standard_filter_is_refused(extraction: ExtractionFixture) -> None:
    """Links too long to resolve pass the filter's checks and then lead outside."""
    steps, component, path = "abcdefghijklmnop", "d" * 247, ""
    members: list[tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]] = []
    for step in steps:
        members += [
            entry(f"{path}{component}", tarfile.DIRTYPE),
            symlink_entry(f"{path}{step}", component),
        ]
        path += f"{component}/"
    long = "/".join(steps) + "/" + "l" * 254
    members += [
        symlink_entry(long, "../" * len(steps)),
        symlink_entry("escape", f"{long}/../../outside"),
        hardlink_entry("flag", "escape/flag"),
        (entry("flag"), b"overwritten"),
        (entry("escape/new"), b"created"),
    ]
    with pytest.raises(BadArchive, match="which may be outside"):
        extraction.extract(*members, path=1 << 16, depth=100)
    extraction.assert_untouched()


def test_existing_links_are_not_followed(extraction: ExtractionFixture) -> None:
    """Another process of the same user may have created the link."""
    (extraction.inside / "d").symlink_to(extraction.outside)
    with pytest.raises(BadArchive, match="is a file in one entry and a directory in another"):
        extraction.extract((entry("d/flag"), b"overwritten"))
    (extraction.inside / "f").symlink_to(extraction.flag)
    extraction.extract((entry("f"), b"mine"))
    extraction.assert_untouched()


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"entries": 2}, "more than the limit of 2 entries"),
        ({"links": 0}, "more than the limit of 0 symbolic links"),
        ({"unpacked": 1 * MIB}, "more than the limit of 0.000977 GiB"),
        ({"ratio": 2, "ratio_from": 1 * MIB}, "more than 2 times its size"),
        ({"reserve": 1 << 60}, "more than the free disk space of 0 GiB"),
    ],
)
def test_archive_over_the_limits_is_refused(
    extraction: ExtractionFixture, limits: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadArchive, match=words):
        extraction.extract(
            symlink_entry("l", "big"), (entry("big"), bytes(2 * MIB)), entry("other"), **limits
        )


NAMES = st.sampled_from(["a", "b", "a/b", "a/b/c", "../x", "a/../b", "/a", "b/a", "."])
TARGETS = st.sampled_from(["a", "b", "../a", "../../outside", "/outside", "a/..", "b/../..", "."])


@given(
    st.lists(
        st.tuples(
            NAMES,
            st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE]),
            TARGETS,
        ),
        max_size=8,
    )
)
def test_no_combination_of_entries_leads_outside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, bytes, str]]
) -> None:
    extraction = ExtractionFixture(tmp_path_factory.mktemp("field"))
    with contextlib.suppress(BadArchive, OSError):
        extraction.extract(
            *(
                (entry(name, kind, to), b"x" if kind == tarfile.REGTYPE else b"")
                for name, kind, to in entries
            )
        )
    extraction.assert_untouched()
    for found in extraction.inside.rglob("*"):
        assert found.is_symlink() is False or _leads_inside(found, extraction.inside)


def _leads_inside(path: Path, directory: Path) -> bool:
    try:
        return path.resolve().is_relative_to(directory.resolve())
    except RuntimeError:  # a symlink loop
        return True
