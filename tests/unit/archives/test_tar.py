"""The tar reader: common formats and malicious headers."""

from __future__ import annotations

import contextlib
import io
import tarfile
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogwork.archives.tar import BLOCK_SIZE, BadArchive, Member, MemberKind, TarReader, Truncated

FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def pack(*members: tarfile.TarInfo, form: int = tarfile.PAX_FORMAT, content: bytes = b"") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=form) as archive:
        for member in members:
            member.size = len(content) if member.isreg() else 0
            archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def entry(name: str, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, target
    return member


def read(archive: bytes) -> list[tuple[Member, bytes]]:
    reader = TarReader(io.BytesIO(archive).read)
    return [(member, b"".join(reader.content())) for member in reader]


def header_with_size(size: int, kind: bytes) -> bytes:
    """Return a header that declares this content size."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, size
    return member.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
def test_all_tar_formats_are_read(form: int) -> None:
    archive = pack(
        entry("a", tarfile.DIRTYPE),
        entry("a/file"),
        entry("a/link", tarfile.SYMTYPE, "file"),
        entry("a/again", tarfile.LNKTYPE, "a/file"),
        form=form,
        content=b"content" * 100,
    )
    found = [(member.path, member.kind, member.target, data) for member, data in read(archive)]
    assert found == [
        ("a/", MemberKind.DIRECTORY, "", b""),
        ("a/file", MemberKind.FILE, "", b"content" * 100),
        ("a/link", MemberKind.SYMLINK, "file", b""),
        ("a/again", MemberKind.HARDLINK, "a/file", b""),
    ]


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT], ids=["gnu", "pax"])
def test_long_and_non_ascii_names_are_read(form: int) -> None:
    name, target = "ä" * 100 + "/" + "b" * 150, "ü" * 200
    archive = pack(entry(name), entry("l", tarfile.SYMTYPE, target), form=form)
    assert [(member.path, member.target) for member, _ in read(archive)] == [
        (name, ""),
        ("l", target),
    ]


def test_unread_content_is_skipped() -> None:
    archive = pack(entry("a"), entry("b"), content=b"x" * 100_000)
    assert [member.path for member in TarReader(io.BytesIO(archive).read)] == ["a", "b"]


def test_global_headers_are_accepted() -> None:
    file = io.BytesIO()
    with tarfile.open(
        fileobj=file, mode="w", format=tarfile.PAX_FORMAT, pax_headers={"comment": "abc"}
    ) as archive:
        archive.addfile(entry("a"))
    assert [member.path for member, _ in read(file.getvalue())] == ["a"]


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
def test_oversized_extended_headers_are_not_loaded(kind: bytes) -> None:
    read_sizes: list[int] = []
    stream = io.BytesIO(header_with_size(1 << 30, kind))

    def read_and_record(count: int) -> bytes:
        read_sizes.append(count)
        return stream.read(count)

    with pytest.raises(BadArchive, match=r"a header of 1073741824 bytes; the limit is 65536"):
        list(TarReader(read_and_record))
    assert max(read_sizes) <= BLOCK_SIZE


def test_long_digit_runs_take_linear_time() -> None:
    """Some versions of the standard library need seconds per header for these."""
    size = 1 << 16
    archive = header_with_size(size, b"x") + b"1" * size
    with pytest.raises(BadArchive, match="an extended header is invalid"):
        read(archive)


def test_endless_extended_headers_are_refused() -> None:
    with pytest.raises(BadArchive, match="more than 16 extended headers"):
        read((header_with_size(0, b"x")) * 100)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (tarfile.CHRTYPE, "is a character device"),
        (tarfile.BLKTYPE, "is a block device"),
        (tarfile.FIFOTYPE, "is a named pipe"),
        (tarfile.GNUTYPE_SPARSE, "is a sparse file"),
        (b"Z", "is an entry of the unknown type b'Z'"),
    ],
)
def test_special_entries_are_refused(kind: bytes, words: str) -> None:
    with pytest.raises(BadArchive, match=words):
        read(header_with_size(0, kind))


def test_sparse_files_by_extended_headers_are_refused() -> None:
    member = entry("x")
    member.pax_headers = {"GNU.sparse.realsize": "1000000000000"}
    with pytest.raises(BadArchive, match="is a sparse file"):
        read(pack(member))


@pytest.mark.parametrize("archive", [b"", b"garbage", b"\0" * 1024, b"x" * 1024])
def test_data_that_is_not_an_archive_raises(archive: bytes) -> None:
    with pytest.raises(Truncated):
        read(archive)


WHOLE = pack(entry("ä" * 80), entry("b", tarfile.SYMTYPE, "ä"), entry("c"), content=b"c" * 700)


ENTRIES_LENGTH = len(WHOLE.rstrip(b"\0"))
"""End of the last entry, without its padding."""


@given(st.integers(0, ENTRIES_LENGTH - 1))
def test_truncated_archives_are_detected(length: int) -> None:
    whole = len(read(WHOLE))
    try:
        found = len(read(WHOLE[:length]))
    except BadArchive:
        return
    # A cut between two entries looks like the end of the archive.
    assert length % BLOCK_SIZE == 0
    assert found < whole


@given(st.lists(st.tuples(st.integers(0, len(WHOLE) - 1), st.integers(0, 255)), max_size=8))
def test_damaged_archives_are_read_or_refused(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(WHOLE)
    for at, value in changes:
        damaged[at] = value
    for start in range(0, len(damaged) - BLOCK_SIZE + 1, BLOCK_SIZE):
        # Fix the checksum, so that more than the checksum is tested.
        block = damaged[start : start + BLOCK_SIZE]
        if block[257:262] == b"ustar":
            total = sum(block[:148]) + 8 * 32 + sum(block[156:])
            damaged[start + 148 : start + 156] = b"%06o\0 " % total
    with contextlib.suppress(BadArchive):
        read(bytes(damaged))


def with_pax(content: bytes) -> bytes:
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, len(content)
    padding = bytes(-len(content) % BLOCK_SIZE)
    return header.tobuf(tarfile.USTAR_FORMAT) + content + padding + pack(entry("a"))


@pytest.mark.parametrize("rest", [b"no length", b"0 a=b\n", b"x a=b\n", b"=\n"])
def test_pax_record_without_a_valid_length_is_refused(rest: bytes) -> None:
    with pytest.raises(BadArchive, match="an extended header is invalid"):
        read(with_pax(b"12 path=a/b\n" + rest))


def test_global_attributes_do_not_fill_memory() -> None:
    """They stay until the end, so only those that are used may be kept."""
    archive = b"".join(
        header_with_size(60_000, b"g") + b"60000 " + f"{at}=".encode().ljust(59_993, b"x") + b"\n"
        + bytes(-60_000 % BLOCK_SIZE) + pack(entry(str(at)))[:BLOCK_SIZE]
        for at in range(200)
    )  # fmt: skip
    stream = io.BytesIO(archive)
    tracemalloc.start()
    try:
        assert len(list(TarReader(stream.read))) == 200
        assert tracemalloc.get_traced_memory()[1] < 2 << 20
    finally:
        tracemalloc.stop()


def test_name_with_a_nul_is_refused() -> None:
    with pytest.raises(BadArchive, match="a NUL"):
        read(with_pax(b"12 path=a\0b\n"))
