"""Parsers of updates: manifests of releases, reports of agents, and where updates come from."""

from __future__ import annotations

import io
import tarfile

from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Struct
from tests.fuzz.target import ContractViolation, Target, allow_errors, decode_lossy

from cogwork.cloud.updates.release_archive import is_version, read_manifest
from cogwork.cloud.updates.version_control import Channel, is_channel, read_source
from cogwork.core.errors import InvalidRequest
from cogwork.core.versions.product import Product
from cogwork.wire.messages.update_method import Outcome, UpdateReport, parse_report

_MANIFEST = b'{"product": "server", "version": "1.4.0", "platform": "linux/amd64"}'


def target_manifest(data: bytes) -> None:
    for archive in (data, _pack(data)):
        with allow_errors(data, InvalidRequest):
            manifest = read_manifest(io.BytesIO(archive))
            if "/" in manifest.filename or not manifest.filename.isascii():
                raise ContractViolation(f"{manifest.filename!r} is the name of a file")


def target_report(data: bytes) -> None:
    try:
        message = Struct.FromString(data)
    except DecodeError:
        return
    with allow_errors(data, InvalidRequest):
        report = parse_report(message)
        if parse_report(report.to_struct()) != report:
            raise ContractViolation("a report changes when it is passed on")


def target_source(data: bytes) -> None:
    text = decode_lossy(data)
    source = read_source({"version_control": {"agent": text}}, Product.AGENT)
    if is_version(text) and is_channel(text):
        raise ContractViolation(f"{text!r} is both a version and a channel")
    if isinstance(source, Channel) and not is_channel(source.name):
        raise ContractViolation(f"{source.name!r} is a channel")


def _pack(manifest: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in (("manifest.json", manifest), ("manifest.sig", bytes(64))):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()


def _report_seeds() -> list[bytes]:
    report = UpdateReport(Product.SERVER, "1.4.0", Outcome.FAILED, "part", "it crashed", 1e9)
    return [report.to_struct().SerializeToString()]


TARGETS = (
    Target(
        "updates.manifest",
        target_manifest,
        lambda: [_MANIFEST, _pack(_MANIFEST)],
        ("cogwork.cloud.updates.release_archive",),
        (b"manifest.json", b"./", b"product", b"version", b"platform", b"..", b"null"),
    ),
    Target(
        "updates.report",
        target_report,
        _report_seeds,
        ("cogwork.wire.messages.update_method",),
        (b"product", b"version", b"outcome", b"reason", b"since", b"good", b"rolled_back"),
    ),
    Target(
        "updates.source",
        target_source,
        lambda: [b"stable", b"1.4.0", b"https://builds.test:80/a.tar", b"file:///a.tar"],
        ("cogwork.cloud.updates.version_control",),
        (b"://", b"https", b"file", b"[", b"]", b"@", b":", b"/", b".", b"-"),
    ),
)
