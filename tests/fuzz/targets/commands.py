"""Parsers of command lines, and of the names of files that are copied."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from google.protobuf.message import DecodeError
from tests.fuzz.target import ContractViolation, Target, allow_errors, split_texts

from cogwork.core.errors import CogworkError
from cogwork.resource.sdk import clean_import as sdk
from cogwork.server.options import UsageError, list_option_warnings, parse

assert sdk.VERSION  # the SDK must be imported first
from viam.gen.component.arm.v1 import arm_pb2  # noqa: E402
from viam.gen.component.motor.v1 import motor_pb2  # noqa: E402
from viam.gen.service.shell.v1.shell_pb2 import CopyFilesToMachineRequest, FileData  # noqa: E402

from cogwork.cli.client.grpc_client import CommandError  # noqa: E402
from cogwork.cli.machine.call_request import build_request  # noqa: E402
from cogwork.drivers.shell.file_copy import SINGLE_DIRECTORY, FileReceiver  # noqa: E402

_METHODS = [
    file.DESCRIPTOR.services_by_name[service].methods_by_name[name]
    for file, service, name in (
        (motor_pb2, "MotorService", "SetPower"),
        (motor_pb2, "MotorService", "DoCommand"),
        (arm_pb2, "ArmService", "MoveThroughJointPositions"),
    )
]


def target_options(data: bytes) -> None:
    with allow_errors(data, UsageError):
        options = parse(split_texts(data))
        list_option_warnings(options)


def target_request(data: bytes) -> None:
    """The JSON of `cogwork call`."""
    text = split_texts(data)[0]
    if text == "-":
        return
    for method in _METHODS:
        with allow_errors(data, CommandError):
            build_request(method, "wheel", text).SerializeToString()


def target_copy(data: bytes) -> None:
    """Check that received files are written below their destination for any name."""
    place = Path(tempfile.mkdtemp(prefix="cogwork-fuzz-"))
    destination = place / "a" / "destination"
    destination.mkdir(parents=True)
    try:
        with allow_errors(data, CogworkError):
            incoming = FileReceiver(destination, SINGLE_DIRECTORY, preserve=True)
            try:
                for piece in _parse_pieces(data):
                    incoming.write_chunk(piece)
            finally:
                incoming.close()
        if [*place.iterdir()] != [place / "a"] or [*(place / "a").iterdir()] != [destination]:
            raise ContractViolation("a file was written outside of the destination")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _parse_pieces(data: bytes) -> list[FileData]:
    found = []
    for part in data.split(b"\xfe\xfe"):
        try:
            request = CopyFilesToMachineRequest.FromString(part)
        except DecodeError:
            continue
        if request.HasField("file_data"):
            found.append(request.file_data)
    return found


def _copy_seeds() -> list[bytes]:
    pieces = [
        FileData(name="folder/a.txt", data=b"hello", mode=0o644, eof=True),
        FileData(name="folder", is_dir=True, eof=True),
        FileData(name="../x", data=b"y", eof=True),
        FileData(name="folder/" + "n" * 60, data=b"1"),
        FileData(data=b"2", eof=True),
    ]
    pieces[0].mod_time.FromSeconds(1_700_000_000)
    return [
        b"\xfe\xfe".join(
            CopyFilesToMachineRequest(file_data=piece).SerializeToString() for piece in some
        )
        for some in (pieces, pieces[:1], pieces[2:3], pieces[3:])
    ]


TARGETS = (
    Target(
        "commands.options",
        target_options,
        lambda: [
            b"-config\0machine.json\0--debug",
            b"-version",
            b"-h",
            b"-no-tls=false\0-config=x\0y",
        ],
        (
            "cogwork.server.options:parse",
            "cogwork.server.options:_parse_words",
            "cogwork.server.options:_split_option",
            "cogwork.server.options:_find_option",
            "cogwork.server.options:_parse_value",
            "cogwork.server.options:_parse_bool",
            "cogwork.server.options:_stray_word_message",
        ),
        (b"\0", b"-", b"--", b"=", b"-config", b"-log-file", b"true", b"false"),
        largest=300,
    ),
    Target(
        "commands.request",
        target_request,
        lambda: [
            b'{"power_pct": 0.5}',
            b'{"command": {"a": [1, null]}, "extra": {}}',
            b'{"positions": [{"values": [1]}]}',
            b"[]",
            b"-",
        ],
        (
            "cogwork.cli.machine.call_request:build_request",
            "cogwork.cli.machine.call_request:_read_object",
            "cogwork.cli.machine.call_request:_find_fault",
            "cogwork.cli.machine.call_request:_find_inner_fault",
            "cogwork.cli.machine.call_request:_find_item_fault",
        ),
        (
            b'"name"',
            b'"power_pct"',
            b'"command"',
            b'"positions"',
            b'"options"',
            b"NaN",
            b"null",
            b"1e400",
            b"\\ud800",
            b"[",
            b"{",
        ),
    ),
    Target(
        "commands.copy",
        target_copy,
        _copy_seeds,
        (
            "cogwork.drivers.shell.file_copy:FileReceiver",
            "cogwork.drivers.shell.file_copy:_PendingEntry",
        ),
        (b"../", b"/", b"\xfe\xfe", b"..", b"\0", b"n" * 300),
    ),
)
