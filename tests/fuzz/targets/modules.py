"""Parsers of what modules bring: meta.json, archives, output, descriptions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gzip
import io
import json
import os
import shutil
import tarfile
import tempfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from unittest import mock

from google.protobuf.descriptor_pb2 import FileDescriptorProto
from grpclib.reflection.v1.reflection_pb2 import FileDescriptorResponse, ServerReflectionResponse
from tests.fuzz.target import ContractViolation, Target, allow_errors

from cogwork.archives.tar import BadArchive, TarReader
from cogwork.core.clock import SystemClock
from cogwork.modules.bundle import BadBundle, unpack_bundle
from cogwork.modules.meta import BadMeta, read_meta
from cogwork.robot.event_journal import EventJournal
from cogwork.subprocesses.output import MAX_LINE_BYTES, MAX_LINES_PER_SECOND, LineSplitter
from cogwork.wire.clients.fetched_descriptors import (
    DescriptorBudget,
    NotDescribed,
    fetch_descriptors,
)

_KEYS = ("entrypoint", "first_run")


def target_meta(data: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="cogwork-fuzz-") as temporary:
        folder = Path(temporary)
        (folder / "meta.json").write_bytes(data)
        for key in _KEYS:
            with allow_errors(data, BadMeta):
                meta = read_meta(folder)
                found = meta.resolve_file(key) if meta is not None else None
                if found is not None and not found.is_relative_to(folder.resolve()):
                    raise ContractViolation(f"{found} is outside of the module's folder")


def target_tar(data: bytes) -> None:
    for archive in (data, _with_checksums(data)):
        with allow_errors(data, BadArchive):
            reader, total = TarReader(io.BytesIO(archive).read), 0
            for member in reader:
                total += sum(map(len, reader.content()))
                member.path.encode(errors="surrogateescape")
            if total > len(archive):
                raise ContractViolation(f"{total} bytes in an archive of {len(archive)}")


def target_bundle(data: bytes) -> None:
    """Check that an archive, plain or compressed, writes only below the home."""
    archive = _with_checksums(data)
    for content in (data, archive, gzip.compress(archive, 1)):
        _unpack(content, data)


def _with_checksums(data: bytes) -> bytes:
    """Return the archive with valid header checksums."""
    blocks = [bytearray(data[at : at + 512]) for at in range(0, len(data), 512)]
    for block in blocks:
        if block[257:262] == b"ustar":
            block[148:156] = b" " * 8
            block[148:156] = b"%06o\0 " % sum(block)
    return b"".join(blocks)


def _unpack(content: bytes, data: bytes) -> None:
    place = Path(tempfile.mkdtemp(prefix="cogwork-fuzz-"))
    home = place / "a" / "b" / "home"
    home.mkdir(parents=True)
    archive = place / "acme.tar"
    archive.write_bytes(content)
    try:
        # A real sync would wait for every disk of this computer.
        with allow_errors(data, BadBundle, BadMeta), mock.patch.object(os, "sync"):
            asyncio.run(unpack_bundle("acme", archive, home, _ignore, SystemClock()))
        outside = [*place.iterdir(), *(place / "a").iterdir(), *(place / "a" / "b").iterdir()]
        if len(outside) != 4 or [each.name for each in home.iterdir()] not in ([], ["modules"]):
            raise ContractViolation(f"something was written outside: {outside}")
        if archive.read_bytes() != content:
            raise ContractViolation("the archive was changed")
    finally:
        _remove(place)


def _ignore(_: str) -> None:
    pass


def _remove(place: Path) -> None:
    for folder, _, _ in os.walk(place):
        with contextlib.suppress(OSError):
            Path(folder).chmod(0o700)
    shutil.rmtree(place)


def target_output(data: bytes) -> None:
    """Check that the number and length of reported lines are limited."""
    lines, reported = LineSplitter(), list[str]()
    for at in range(0, len(data), 97):
        reported += lines.feed(data[at : at + 97], now=at / 1e6)
    reported += lines.flush()
    if len(reported) > MAX_LINES_PER_SECOND + 3:
        raise ContractViolation(f"{len(reported)} lines in a second")
    # A tab takes up to four columns.
    if any(len(line) > 4 * MAX_LINE_BYTES + 60 for line in (*reported, *lines.last_lines)):
        raise ContractViolation("a line is longer than it may be")


def target_journal(data: bytes) -> None:
    """Check that any content of the journal can be read."""
    with tempfile.TemporaryDirectory(prefix="cogwork-fuzz-") as temporary:
        file = Path(temporary) / "journal.jsonl"
        file.write_bytes(data)
        journal = EventJournal(file, SystemClock())
        try:
            journal.read()
            journal.read("belt")
        finally:
            journal.close()


class _Channel:
    """A channel to a module that answers every request with the same descriptors."""

    def __init__(self, reply: bytes) -> None:
        self._reply = reply

    def stream_stream(self, _: str, **__: object) -> Callable[..., _Channel]:
        return lambda *_, **__: self

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._reply

    def cancel(self) -> None:
        pass


def target_description(data: bytes) -> None:
    files = data.split(b"\xfe\xfe")
    reply = ServerReflectionResponse(
        file_descriptor_response=FileDescriptorResponse(file_descriptor_proto=files)
    )
    channel = _Channel(reply.SerializeToString())
    fetching = fetch_descriptors(channel, "acme.Widgets", DescriptorBudget(1 << 20))  # type: ignore[arg-type]
    with allow_errors(data, NotDescribed), contextlib.suppress(StopIteration):
        fetching.send(None)  # it never waits


def _descriptor_seeds() -> list[bytes]:
    file = FileDescriptorProto(name="a.proto", package="acme", dependency=["b.proto"])
    file.message_type.add(name="Ask").field.add(name="x", number=1, type=1, label=1)
    method = file.service.add(name="Widgets").method.add(name="Turn")
    method.input_type = method.output_type = ".acme.Ask"
    imported = FileDescriptorProto(name="b.proto", syntax="proto3")
    imported.enum_type.add(name="E").value.add(name="A", number=0)
    return [
        b"\xfe\xfe".join(each.SerializeToString() for each in files)
        for files in ((imported, file), (file, imported), (imported,))
    ]


@functools.cache
def _archive_seeds() -> tuple[bytes, ...]:
    plain = _tar(
        _member("meta.json", b'{"entrypoint": "run.sh"}'), _member("run.sh", b"#!/bin/sh\n")
    )
    link = tarfile.TarInfo("out")
    link.type, link.linkname = tarfile.SYMTYPE, "../../.."
    hard = tarfile.TarInfo("hard")
    hard.type, hard.linkname = tarfile.LNKTYPE, "meta.json"
    folder = tarfile.TarInfo("bin")
    folder.type, folder.mode = tarfile.DIRTYPE, 0o755
    return (
        plain,
        _tar(
            (folder, b""),
            _member("bin/run.sh", b"x"),
            (hard, b""),
            (link, b""),
            _member("out/x", b"y"),
        ),
        _tar(_member("n" * 120, b"z"), _member("../x", b"y"), _member("/abs", b"y")),
    )


def _member(name: str, content: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), 0o755
    return info, content


def _tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for info, content in members:
            archive.addfile(info, io.BytesIO(content))
    return file.getvalue()[:4096]


_META = json.dumps({"entrypoint": "bin/run.sh", "first_run": "setup.sh", "models": []}).encode()

_TAR_TOKENS = (
    *(b"ustar\x0000", b"../", b"meta.json", b"PaxHeaders", b"path=", b"linkpath=", b"\x80"),
    *(b"12 path=a/b\n", b"17 linkpath=a/b\n", b"././@LongLink", b"x", b"g", b"L", b"K", b"size="),
)

TARGETS = (
    Target(
        "modules.meta",
        target_meta,
        lambda: [_META, b'{"entrypoint": "../x"}', b'{"entrypoint": 5}', b"[]"],
        ("cogwork.modules.meta",),
        (b'"entrypoint"', b'"first_run"', b"../", b"/", b"\\u0000", b"\\ud800", b"[", b"{", b"~"),
    ),
    Target(
        "modules.tar",
        target_tar,
        _archive_seeds,
        ("cogwork.archives.tar",),
        _TAR_TOKENS,
        largest=6144,
    ),
    Target(
        "modules.bundle",
        target_bundle,
        _archive_seeds,
        ("cogwork.modules.bundle", "cogwork.archives.extraction", "cogwork.archives.decompression"),
        _TAR_TOKENS,
        largest=6144,
    ),
    Target(
        "modules.output",
        target_output,
        lambda: [b"hello\nworld\r\n\x1b[31mred\x1b[0m\ttab", b"\n" * 1500, b"x" * 2000],
        ("cogwork.subprocesses.output:LineSplitter", "cogwork.subprocesses.output:_decode_line"),
        (b"\n", b"\r", b"\t", b"\x1b[", b"m", b"\xff"),
        largest=8192,
    ),
    Target(
        "modules.journal",
        target_journal,
        lambda: [
            b'{"time": "x", "event": "resource", "resource": "rdk:component:camera/belt"}\n{"a'
        ],
        ("cogwork.robot.event_journal:EventJournal",),
        (b"\n", b'"resource"', b'"belt"', b"[", b"{", b"null"),
    ),
    Target(
        "modules.description",
        target_description,
        _descriptor_seeds,
        ("cogwork.wire.clients.fetched_descriptors",),
        (
            b"\xfe\xfe",
            b"acme",
            b"a.proto",
            b"b.proto",
            b"proto3",
            b".acme.Ask",
            b"google/protobuf/",
        ),
    ),
)
