"""`cogwork copy`: files to a running machine, or from it."""

from __future__ import annotations

import argparse
import queue
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from cogwork.cli.dial import Misused, dialed
from cogwork.cli.shell import SERVICE, shell_named
from cogwork.cli.terminal import FAULTS, FINE, complain, orderly_end
from cogwork.config.diagnose import printable
from cogwork.core.errors import CogworkError
from cogwork.resource import sdk

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402

from cogwork.drivers.shell.files import Incoming, Outgoing  # noqa: E402

_FAR = "machine:"
_LARGE = 10_000_000
"""Bytes from which on a file's progress is shown."""


def copy(arguments: argparse.Namespace) -> int:
    try:
        with orderly_end():
            return dialed(arguments.address, lambda channel: _copy(channel, arguments))
    except KeyboardInterrupt:
        complain("interrupted: the file that was under way is not there")
        return FAULTS


def _copy(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    sources, destination = arguments.sources, arguments.destination
    far = [source.startswith(_FAR) for source in sources]
    if not (all(far) or not any(far)) or all(far) == destination.startswith(_FAR):
        raise Misused(
            "one side of a copy is the machine's and the other is here: write "
            f"`cogwork copy file {_FAR}file`, or `cogwork copy {_FAR}file file`"
        )
    name = shell_named(channel, arguments.name)
    progress = Progress()
    try:
        if all(far):
            paths = [source.removeprefix(_FAR) for source in sources]
            _fetch(channel, _wanted(name, paths, arguments), Path(destination), progress)
        else:
            paths = [Path(source) for source in sources]
            _bring(channel, name, paths, destination.removeprefix(_FAR), arguments, progress)
    except Misused:
        raise
    except CogworkError as error:
        complain(printable(str(error)))
        return FAULTS
    finally:
        progress.clear()
    print(progress.summary())
    return FINE


def _wanted(
    name: str, paths: Sequence[str], arguments: argparse.Namespace
) -> messages.CopyFilesFromMachineRequestMetadata:
    return messages.CopyFilesFromMachineRequestMetadata(
        name=name,
        paths=paths,
        allow_recursion=arguments.recursive,
        preserve=arguments.preserve,
    )


def _fetch(
    channel: grpc.Channel,
    wanted: messages.CopyFilesFromMachineRequestMetadata,
    destination: Path,
    progress: Progress,
) -> None:
    start: Any = channel.stream_stream(
        f"/{SERVICE}/CopyFilesFromMachine",
        request_serializer=messages.CopyFilesFromMachineRequest.SerializeToString,
        response_deserializer=messages.CopyFilesFromMachineResponse.FromString,
    )
    asked: queue.SimpleQueue[Any] = queue.SimpleQueue()
    asked.put(messages.CopyFilesFromMachineRequest(metadata=wanted))
    call = start(iter(asked.get, None))
    incoming: Incoming | None = None
    try:
        for reply in call:
            if incoming is None:
                kind = reply.metadata.source_type
                incoming = Incoming(destination, kind, preserve=wanted.preserve)
            else:
                progress.see(reply.file_data)
                if incoming.take(reply.file_data):
                    asked.put(messages.CopyFilesFromMachineRequest(ack_last_file=True))
    finally:
        asked.put(None)
        call.cancel()
        if incoming is not None:
            incoming.close()


def _bring(
    channel: grpc.Channel,
    name: str,
    paths: Sequence[Path],
    destination: str,
    arguments: argparse.Namespace,
    progress: Progress,
) -> None:
    outgoing = Outgoing(paths, recursive=arguments.recursive, preserve=arguments.preserve)
    start: Any = channel.stream_stream(
        f"/{SERVICE}/CopyFilesToMachine",
        request_serializer=messages.CopyFilesToMachineRequest.SerializeToString,
        response_deserializer=messages.CopyFilesToMachineResponse.FromString,
    )
    metadata = messages.CopyFilesToMachineRequestMetadata(
        name=name,
        source_type=outgoing.source_type,
        destination=destination,
        preserve=arguments.preserve,
    )
    bringing = _Bringing(metadata, outgoing, progress)
    call = start(bringing.requests())
    try:
        for _ in call:
            bringing.acknowledged()
    finally:
        bringing.over()
        call.cancel()
    if bringing.fault is not None:
        raise bringing.fault
    for path in outgoing.left_out:
        complain(f"left out {printable(path)}: it is a link that leads elsewhere, or no file")


class _Bringing:
    """Another thread takes the pieces as the machine can take them; a file follows when the one
    before has arrived."""

    def __init__(
        self,
        metadata: messages.CopyFilesToMachineRequestMetadata,
        outgoing: Outgoing,
        progress: Progress,
    ) -> None:
        self._metadata = metadata
        self._outgoing = outgoing
        self._progress = progress
        self._arrived = threading.Semaphore(0)
        self._over = False
        self.fault: CogworkError | None = None
        """Why a file here cannot be read."""

    def acknowledged(self) -> None:
        self._arrived.release()

    def over(self) -> None:
        self._over = True
        self._arrived.release()

    def requests(self) -> Iterator[messages.CopyFilesToMachineRequest]:
        yield messages.CopyFilesToMachineRequest(metadata=self._metadata)
        try:
            for piece in self._outgoing.pieces():
                yield messages.CopyFilesToMachineRequest(file_data=piece)
                self._progress.see(piece)
                if piece.eof:
                    self._arrived.acquire()
                if self._over:
                    return
        except CogworkError as error:
            self.fault = error


class Progress:
    """For people who wait: how much of a large file has been copied."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._name = ""
        self._size = 0
        self._done = 0
        self._shown = -1
        self._files = 0
        self._bytes = 0

    def see(self, piece: messages.FileData) -> None:
        if piece.name:
            self._name, self._size, self._done = piece.name, piece.size, 0
        self._done += len(piece.data)
        self._bytes += len(piece.data)
        if piece.eof:
            self._files += not piece.is_dir
            self.clear()
        elif self._size >= _LARGE and sys.stderr.isatty():
            self._show(min(100 * self._done // self._size, 100))

    def clear(self) -> None:
        if self._shown >= 0:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
            self._shown = -1

    def summary(self) -> str:
        seconds = time.monotonic() - self._begun
        files = "1 file" if self._files == 1 else f"{self._files} files"
        return f"{files}, {self._bytes / 1e6:.1f} MB in {seconds:.1f} s"

    def _show(self, percent: int) -> None:
        if percent != self._shown:
            self._shown = percent
            text = f"\r{printable(self._name)}: {percent}%\x1b[K"
            print(text, end="", file=sys.stderr, flush=True)
