"""What an archive may put into its directory; nothing ever gets out of it."""

from __future__ import annotations

import contextlib
import io
import stat
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.modules.test_tar import entry

from cogwork.modules.extraction import ArchiveLimits, extract
from cogwork.modules.tar import BadArchive

MIB = 1 << 20


class Field:
    """A directory to unpack into, beside one that must stay as it is."""

    def __init__(self, directory: Path) -> None:
        self.inside = directory / "one" / "inside"
        self.inside.mkdir(parents=True)
        self.outside = directory / "outside"
        self.outside.mkdir()
        self.flag = self.outside / "flag"
        self.flag.write_text("original")

    def extract(
        self, *members: tarfile.TarInfo | tuple[tarfile.TarInfo, bytes], **limits: int
    ) -> None:
        file = io.BytesIO()
        with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
            for each in members:
                member, content = each if isinstance(each, tuple) else (each, b"")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        file.seek(0)
        extract(file, 1000, self.inside, ArchiveLimits(**limits))

    def assert_untouched(self) -> None:
        assert self.flag.read_text() == "original"
        assert list(self.outside.iterdir()) == [self.flag]
        assert self.flag.stat().st_nlink == 1

    @property
    def found(self) -> set[str]:
        return {str(each.relative_to(self.inside)) for each in self.inside.rglob("*")}


@pytest.fixture
def field(tmp_path: Path) -> Field:
    return Field(tmp_path)


def link(name: str, to: str) -> tarfile.TarInfo:
    return entry(name, tarfile.SYMTYPE, to)


def hard(name: str, to: str) -> tarfile.TarInfo:
    return entry(name, tarfile.LNKTYPE, to)


def test_unpacks_files_directories_and_links(field: Field) -> None:
    field.extract(
        entry(".", tarfile.DIRTYPE),
        entry("./empty", tarfile.DIRTYPE),
        (entry("./bin/run.sh"), b"run"),
        link("bin/latest", "run.sh"),
        link("deep/er/up", "../../bin"),
        hard("bin/again", "bin/run.sh"),
    )
    assert (field.inside / "deep/er/up/latest").read_bytes() == b"run"
    assert (field.inside / "bin/again").read_bytes() == b"run"
    assert (field.inside / "empty").is_dir()


@pytest.mark.parametrize(
    ("packed", "unpacked"), [(0o6777, 0o755), (0o644, 0o644), (0o000, 0o600), (0o011, 0o600)]
)
def test_others_get_no_more_than_reading(field: Field, packed: int, unpacked: int) -> None:
    member = entry("f")
    member.mode = packed
    field.extract(member)
    assert stat.S_IMODE((field.inside / "f").stat().st_mode) == unpacked


def test_times_stay(field: Field) -> None:
    """Python compares them with those in its compiled files."""
    member, odd = entry("f"), entry("odd")
    member.mtime = 1_600_000_000
    odd.pax_headers = {"mtime": "nan"}
    field.extract(member, odd)
    assert (field.inside / "f").stat().st_mtime == 1_600_000_000


def test_an_entry_that_comes_again_replaces_the_one_before(field: Field) -> None:
    field.extract(
        (entry("f"), b"first"),
        hard("h", "f"),
        (entry("f"), b"second"),
        link("l", "f"),
        (entry("l"), b"no link"),
    )
    assert (field.inside / "f").read_bytes() == b"second"
    assert (field.inside / "h").read_bytes() == b"first"
    assert not (field.inside / "l").is_symlink()


@pytest.mark.parametrize(
    "members",
    [
        [entry("../../outside/flag")],
        [entry("a/../../../outside/flag")],
        [link("l", "/etc")],
        [link("l", "../../outside")],
        [link("l", "a/../../../outside")],
        [link("p/q/s", "."), link("t", "p/q/s/../../..")],
        [link("l", "")],
        [hard("h", "../../outside/flag")],
        [hard("h", "missing")],
        [link("l", "f"), hard("h", "l")],
        [entry("f"), entry("f/g")],
        [entry("d", tarfile.DIRTYPE), entry("d")],
        [link("l", "d"), entry("l/f")],
        [entry("x" * 1025)],
        [entry("d/" * 65, tarfile.DIRTYPE)],
        [entry("f"), link("l", "x" * 1025)],
        [entry("d", tarfile.CHRTYPE)],
    ],
)
def test_refuses(field: Field, members: list[tarfile.TarInfo]) -> None:
    with pytest.raises(BadArchive):
        field.extract(*members)
    field.assert_untouched()


def test_the_flaw_of_the_standard_filter_leads_nowhere(field: Field) -> None:
    """Links that are too long to be resolved pass its checks and then lead out of the directory."""
    steps, component, path = "abcdefghijklmnop", "d" * 247, ""
    members: list[tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]] = []
    for step in steps:
        members += [entry(f"{path}{component}", tarfile.DIRTYPE), link(f"{path}{step}", component)]
        path += f"{component}/"
    long = "/".join(steps) + "/" + "l" * 254
    members += [
        link(long, "../" * len(steps)),
        link("escape", f"{long}/../../outside"),
        hard("flag", "escape/flag"),
        (entry("flag"), b"overwritten"),
        (entry("escape/new"), b"created"),
    ]
    with pytest.raises(BadArchive, match="which may be outside"):
        field.extract(*members, path=1 << 16, depth=100)
    field.assert_untouched()


def test_links_that_are_already_there_are_not_followed(field: Field) -> None:
    """Another process of the same user may put one in the way."""
    (field.inside / "d").symlink_to(field.outside)
    with pytest.raises(BadArchive, match="is a file in one entry and a directory in another"):
        field.extract((entry("d/flag"), b"overwritten"))
    (field.inside / "f").symlink_to(field.flag)
    field.extract((entry("f"), b"mine"))
    field.assert_untouched()


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
def test_has_limits(field: Field, limits: dict[str, int], words: str) -> None:
    with pytest.raises(BadArchive, match=words):
        field.extract(link("l", "big"), (entry("big"), bytes(2 * MIB)), entry("other"), **limits)


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
def test_no_combination_leads_outside(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[str, bytes, str]]
) -> None:
    field = Field(tmp_path_factory.mktemp("field"))
    with contextlib.suppress(BadArchive, OSError):
        field.extract(
            *(
                (entry(name, kind, to), b"x" if kind == tarfile.REGTYPE else b"")
                for name, kind, to in entries
            )
        )
    field.assert_untouched()
    for found in field.inside.rglob("*"):
        assert found.is_symlink() is False or _leads_inside(found, field.inside)


def _leads_inside(path: Path, directory: Path) -> bool:
    try:
        return path.resolve().is_relative_to(directory.resolve())
    except RuntimeError:  # in a circle
        return True
