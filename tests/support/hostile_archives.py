"""Archives that must be refused, with the words that say why."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
from collections.abc import Callable
from typing import NamedTuple

from tests.support.archives import make_archive, make_link_archive
from tests.support.sizes import size

MANY = size(ci=1001, full=100_001)
"""Entries: one more than the limit that the tests set."""


class Attack(NamedTuple):
    make: Callable[[], bytes]
    words: str
    """A regular expression."""


def tar_of(*members: tuple[tarfile.TarInfo, bytes], compress: bool = True) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for member, content in members:
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), 1) if compress else packed.getvalue()


def entry(
    name: str,
    kind: bytes = tarfile.REGTYPE,
    target: str = "",
    content: bytes = b"",
    pax: dict[str, str] | None = None,
) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.pax_headers = kind, target, pax or {}
    return member, content


def symlink(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, tarfile.SYMTYPE, target)


def hard_link(name: str, target: str) -> tuple[tarfile.TarInfo, bytes]:
    return entry(name, tarfile.LNKTYPE, target)


def header(name: str, kind: bytes = tarfile.REGTYPE, declared: int = 0) -> bytes:
    """Return the header of an entry that declares a size."""
    member = tarfile.TarInfo(name)
    member.type, member.size = kind, declared
    return member.tobuf(tarfile.GNU_FORMAT)


def extended(kind: bytes, content: bytes) -> bytes:
    return header("x", kind, len(content)) + content + bytes(-len(content) % 512)


def pax_record(key: str, value: bytes) -> bytes:
    rest = b" " + key.encode() + b"=" + value + b"\n"
    length = len(rest)
    while len(str(length)) + len(rest) != length:
        length = len(str(length)) + len(rest)
    return str(length).encode() + rest


def with_header(kind: bytes, content: bytes, after: bytes = b"") -> bytes:
    """Return an archive of an extended header and an entry."""
    return gzip.compress(extended(kind, content) + (after or header("f")) + bytes(1024), 1)


def with_pax(key: str, value: bytes, after: bytes = b"") -> bytes:
    return with_header(b"x", pax_record(key, value), after)


def bomb() -> bytes:
    """80 MiB of zeros in 80 kB."""
    return tar_of(entry("zeros", content=bytes(80 << 20)))


def many_directories() -> bytes:
    """Few entries, whose paths name many directories."""
    paths = ("/".join([str(at), *"d" * 60, "f"]) for at in range(MANY // 250 + 1))
    return gzip.compress(b"".join(map(header, paths)) + bytes(1024), 1)


def many_attributes() -> bytes:
    """Few entries with many attributes, each of which must be parsed."""
    records = extended(b"x", b"6 a=b\n" * 10_000)
    count = MANY // 1000 + 1
    return gzip.compress(b"".join(records + header(str(at)) for at in range(count)), 1)


def with_damaged_end(packed: bytes) -> bytes:
    """Change the checksum at the end of a .gz file, but nothing else."""
    return packed[:-8] + bytes(each ^ 255 for each in packed[-8:-4]) + packed[-4:]


GOOD = make_archive(a=b"content" * 100)
BAD_BZ2 = bytearray(bz2.compress(tar_of(entry("a", content=b"x" * 5000), compress=False)))
BAD_BZ2[-3] ^= 255
SOCKET = b"s"

ATTACKS: dict[str, Attack] = {
    "parent": Attack(lambda: tar_of(entry("../../../outside/flag")), "is outside"),
    "hidden parent": Attack(lambda: tar_of(entry("a/../../../../outside/flag")), "is outside"),
    "absolute": Attack(lambda: tar_of(entry("/outside")), "is an absolute path"),
    "parent in a pax header": Attack(lambda: with_pax("path", b"../../flag"), "is outside"),
    "parent in a global header": Attack(
        lambda: with_header(b"g", pax_record("path", b"../../flag")), "is outside"
    ),
    "parent in a GNU long name": Attack(
        lambda: with_header(b"L", b"../" * 50 + b"flag\0"), "is outside"
    ),
    "parent after invalid UTF-8": Attack(
        lambda: with_pax("path", b"\xff\x1b[31m/../../flag"), r'"\\udcff\\x1b\[31m/.* is outside'
    ),
    "absolute link": Attack(lambda: make_link_archive("/etc/passwd"), "may be outside"),
    "parent link": Attack(lambda: make_link_archive("../../../../outside"), "may be outside"),
    "empty link": Attack(lambda: tar_of(symlink("l", "")), "may be outside"),
    "link in a pax header": Attack(
        lambda: with_pax("linkpath", b"../../flag", header("l", tarfile.SYMTYPE)), "may be outside"
    ),
    "link in a GNU long name": Attack(
        lambda: with_header(b"K", b"../" * 50 + b"flag\0", header("l", tarfile.SYMTYPE)),
        "may be outside",
    ),
    "link, then file in it": Attack(
        lambda: tar_of(symlink("l", "."), entry("l/f")), "a directory in one entry"
    ),
    "link, then directory": Attack(
        lambda: tar_of(symlink("l", "."), entry("l", tarfile.DIRTYPE), entry("l/f")), "two entries"
    ),
    "chain of links": Attack(
        lambda: tar_of(symlink("p/q/s", "."), symlink("t", "p/q/s/../../..")), "may be outside"
    ),
    "chain of links to the parent": Attack(
        lambda: tar_of(symlink("a", "b"), symlink("b", "..")), "may be outside"
    ),
    "hard link": Attack(lambda: tar_of(hard_link("h", "../../../../outside/flag")), "is outside"),
    "absolute hard link": Attack(
        lambda: tar_of(hard_link("h", "/etc/passwd")), "is an absolute path"
    ),
    "hard link to a link": Attack(
        lambda: tar_of(symlink("l", "f"), hard_link("h", "l")), "not a file that comes before"
    ),
    "hard link to a directory": Attack(
        lambda: tar_of(entry("d", tarfile.DIRTYPE), hard_link("h", "d")),
        "not a file that comes before",
    ),
    "character device": Attack(lambda: tar_of(entry("d", tarfile.CHRTYPE)), "character device"),
    "block device": Attack(lambda: tar_of(entry("d", tarfile.BLKTYPE)), "block device"),
    "named pipe": Attack(lambda: tar_of(entry("d", tarfile.FIFOTYPE)), "named pipe"),
    "socket": Attack(lambda: gzip.compress(header("s", SOCKET)), "the unknown type"),
    "sparse file": Attack(
        lambda: gzip.compress(header("s", tarfile.GNUTYPE_SPARSE, 1 << 40)), "sparse file"
    ),
    "sparse file in a pax header": Attack(
        lambda: with_pax("GNU.sparse.realsize", b"1000000000000"), "sparse file"
    ),
    "bomb": Attack(bomb, "more than 200 times its size"),
    "bomb in a bomb": Attack(lambda: gzip.compress(bomb()), "damaged|not an archive|incomplete"),
    "bomb after the end": Attack(
        lambda: gzip.compress(header("f") + bytes(80 << 20), 1), "more than 200 times its size"
    ),
    "duplicate": Attack(
        lambda: tar_of(entry("f", content=b"1"), entry("f", content=b"2")), "two entries"
    ),
    "duplicate by another spelling": Attack(
        lambda: tar_of(entry("d/f"), entry("./d//f")), "two entries"
    ),
    "file, then directory": Attack(
        lambda: tar_of(entry("f"), entry("f", tarfile.DIRTYPE)), "a file in one entry"
    ),
    "file, then file in it": Attack(
        lambda: tar_of(entry("f"), entry("f/g")), "a file in one entry"
    ),
    "directory, then file": Attack(
        lambda: tar_of(entry("d", tarfile.DIRTYPE), entry("d")), "a directory in one entry"
    ),
    "many entries": Attack(
        lambda: gzip.compress(b"".join(header(str(at)) for at in range(MANY)), 1),
        r"more than the limit of \d+ entries",
    ),
    "many directories": Attack(many_directories, r"more than the limit of \d+ directories"),
    "many links": Attack(
        lambda: tar_of(*(symlink(str(at), "f") for at in range(MANY // 10 + 1))),
        r"more than the limit of \d+ symbolic links",
    ),
    "many headers": Attack(
        lambda: gzip.compress(extended(b"x", b"") * 20), "more than 16 extended headers"
    ),
    "many attributes": Attack(many_attributes, r"more than the limit of \d+ attributes"),
    "huge header": Attack(
        lambda: gzip.compress(header("x", b"x", 1 << 30)), "a header of 1073741824 bytes"
    ),
    "long name": Attack(lambda: tar_of(entry("n" * 256)), "a name of more than 255 bytes"),
    "long path": Attack(lambda: tar_of(entry("n" * 200 + "/n" * 500)), "is too long"),
    "deep path": Attack(lambda: tar_of(entry("d/" * 65 + "f")), "is too long"),
    "long link": Attack(lambda: tar_of(symlink("l", "n" * 1025)), "is too long"),
    "NUL in a name": Attack(lambda: with_pax("path", b"a\0b"), "contains a NUL"),
    "negative size": Attack(lambda: with_pax("size", b"-1"), "invalid size"),
    "size that is no number": Attack(lambda: with_pax("size", b"1e3"), "invalid size"),
    "huge size": Attack(lambda: with_pax("size", b"9" * 20), "incomplete|more than"),
    "huge binary size": Attack(lambda: gzip.compress(header("f", declared=1 << 80)), "incomplete"),
    "invalid pax header": Attack(lambda: with_header(b"x", b"99 path=a\n"), "header is invalid"),
    "declared larger than it is": Attack(
        lambda: header("f", declared=600) + b"x" * 100, "incomplete"
    ),
    "cut off": Attack(lambda: GOOD[:-20], "incomplete"),
    "cut off in the checksum": Attack(lambda: GOOD[:-6], "incomplete"),
    "wrong checksum": Attack(lambda: with_damaged_end(GOOD), "is damaged: CRC check failed"),
    "damaged bz2": Attack(lambda: bytes(BAD_BZ2), "is damaged"),
    "cut off xz": Attack(
        lambda: lzma.compress(tar_of(entry("a"), compress=False))[:-8], "incomplete"
    ),
    "garbage after gzip": Attack(lambda: GOOD + b"garbage", "is damaged"),
    "garbage after xz": Attack(
        lambda: lzma.compress(tar_of(entry("a"), compress=False)) + b"garbage", "incomplete"
    ),
    "two archives": Attack(lambda: GOOD + make_archive(b=b"2"), "data after its end"),
    "empty": Attack(lambda: b"", "incomplete"),
    "empty gzip": Attack(lambda: gzip.compress(b""), "incomplete"),
    "only zeros": Attack(lambda: gzip.compress(bytes(10240)), "empty"),
    "zip": Attack(
        lambda: b"PK\x03\x04" + bytes(100), "the file is a zip file, which is not supported"
    ),
    "zstd": Attack(lambda: b"\x28\xb5\x2f\xfd" + bytes(100), "compressed by zstd, which is not"),
    "page": Attack(lambda: b"<html>sign in to continue</html>" * 50, "damaged"),
}
