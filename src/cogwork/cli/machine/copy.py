"""`cogwork copy`: copy files to or from a machine."""

from __future__ import annotations

import argparse
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc

from cogwork.cli.client.grpc_client import CommandError, with_channel
from cogwork.cli.machine.shell import SERVICE, find_shell
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    ProgressLine,
    exit_on_signals,
    format_bar,
    print_error,
)
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.errors import CogworkError, NotFound
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402

from cogwork.drivers.shell.file_copy import FileReceiver, FileSender  # noqa: E402

_REMOTE_PREFIX = "machine:"
_QUIET_SECONDS = 0.5
"""Seconds after which progress is shown. A short copy shows no progress."""
_LARGE_FILE = 10_000_000
"""Minimum size in bytes of a file that gets its own progress bar. Smaller files are counted."""


def copy(arguments: argparse.Namespace) -> int:
    try:
        with exit_on_signals():
            return with_channel(arguments.address, lambda channel: _copy(channel, arguments))
    except KeyboardInterrupt:
        print_error("interrupted; the current file was not copied")
        return EXIT_INTERRUPTED


def _copy(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    sources, destination = arguments.sources, arguments.destination
    remote = [source.startswith(_REMOTE_PREFIX) for source in sources]
    if not (all(remote) or not any(remote)) or all(remote) == destination.startswith(
        _REMOTE_PREFIX
    ):
        raise CommandError(
            "copy either to or from the machine: "
            f"`cogwork copy file {_REMOTE_PREFIX}file` or `cogwork copy {_REMOTE_PREFIX}file file`"
        )
    name = find_shell(channel, arguments.name)
    progress = CopyProgress()
    try:
        if all(remote):
            paths = [source.removeprefix(_REMOTE_PREFIX) for source in sources]
            _download(channel, _build_metadata(name, paths, arguments), Path(destination), progress)
        else:
            paths = [Path(source) for source in sources]
            _upload(
                channel, name, paths, destination.removeprefix(_REMOTE_PREFIX), arguments, progress
            )
    except CommandError:
        raise
    except CogworkError as error:
        print_error(replace_unprintable(str(error)))
        return EXIT_FAILURE
    finally:
        progress.clear()
    print(progress.summary())
    return EXIT_OK


def _build_metadata(
    name: str, paths: Sequence[str], arguments: argparse.Namespace
) -> messages.CopyFilesFromMachineRequestMetadata:
    return messages.CopyFilesFromMachineRequestMetadata(
        name=name,
        paths=paths,
        allow_recursion=arguments.recursive,
        preserve=arguments.preserve,
    )


def _download(
    channel: grpc.Channel,
    wanted: messages.CopyFilesFromMachineRequestMetadata,
    destination: Path,
    progress: CopyProgress,
) -> None:
    start: Any = channel.stream_stream(
        f"/{SERVICE}/CopyFilesFromMachine",
        request_serializer=messages.CopyFilesFromMachineRequest.SerializeToString,
        response_deserializer=messages.CopyFilesFromMachineResponse.FromString,
    )
    requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
    requests.put(messages.CopyFilesFromMachineRequest(metadata=wanted))
    call = start(iter(requests.get, None))
    incoming: FileReceiver | None = None
    try:
        for reply in call:
            if incoming is None:
                kind = reply.metadata.source_type
                incoming = FileReceiver(destination, kind, preserve=wanted.preserve)
            else:
                progress.update(reply.file_data)
                if incoming.write_chunk(reply.file_data):
                    requests.put(messages.CopyFilesFromMachineRequest(ack_last_file=True))
    finally:
        requests.put(None)
        call.cancel()
        if incoming is not None:
            incoming.close()


def _upload(
    channel: grpc.Channel,
    name: str,
    paths: Sequence[Path],
    destination: str,
    arguments: argparse.Namespace,
    progress: CopyProgress,
) -> None:
    try:
        outgoing = FileSender(paths, recursive=arguments.recursive, preserve=arguments.preserve)
    except NotFound as error:
        raise CommandError(replace_unprintable(str(error))) from error
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
    upload = _Upload(metadata, outgoing, progress)
    call = start(upload.requests())
    try:
        for _ in call:
            upload.acknowledge()
    finally:
        upload.stop()
        call.cancel()
    if upload.error is not None:
        raise upload.error
    for path in outgoing.skipped:
        print_error(
            f"skipped {replace_unprintable(path)}: it is not a regular file, or is a link to a "
            "file outside the directory"
        )


class _Upload:
    """The request stream of an upload.

    gRPC's thread consumes the chunks as flow control allows. The next file is sent when the machine
    has acknowledged the previous file.
    """

    def __init__(
        self,
        metadata: messages.CopyFilesToMachineRequestMetadata,
        outgoing: FileSender,
        progress: CopyProgress,
    ) -> None:
        self._metadata = metadata
        self._outgoing = outgoing
        self._progress = progress
        self._acknowledgments = threading.Semaphore(0)
        self._stopped = False
        self.error: CogworkError | None = None
        """The reason why a local file cannot be read."""

    def acknowledge(self) -> None:
        self._acknowledgments.release()

    def stop(self) -> None:
        self._stopped = True
        self._acknowledgments.release()

    def requests(self) -> Iterator[messages.CopyFilesToMachineRequest]:
        yield messages.CopyFilesToMachineRequest(metadata=self._metadata)
        try:
            for piece in self._outgoing.chunks():
                yield messages.CopyFilesToMachineRequest(file_data=piece)
                self._progress.update(piece)
                if piece.eof:
                    self._acknowledgments.acquire()
                if self._stopped:
                    return
        except CogworkError as error:
            self.error = error


class CopyProgress:
    """Shows the progress of the copy on the terminal, and counts the copied files."""

    def __init__(self) -> None:
        self._started_at = time.monotonic()
        self._line = ProgressLine()
        self._name = ""
        self._size = 0
        self._done = 0
        self._files = 0
        self._bytes = 0

    def update(self, piece: messages.FileData) -> None:
        if piece.name:
            self._name, self._size, self._done = piece.name, piece.size, 0
        self._done += len(piece.data)
        self._bytes += len(piece.data)
        if piece.eof:
            self._files += not piece.is_dir
        if time.monotonic() - self._started_at >= _QUIET_SECONDS:
            self._line.show(self._format())

    def clear(self) -> None:
        self._line.clear()

    def summary(self) -> str:
        seconds = time.monotonic() - self._started_at
        files = "1 file" if self._files == 1 else f"{self._files} files"
        return f"{files}, {self._bytes / 1e6:.1f} MB in {seconds:.1f} s"

    def _format(self) -> str:
        if self._size < _LARGE_FILE:
            return f"{self.summary()}: {self._name}"
        return f"{format_bar(self._done, self._size)} {self._size / 1e6:.0f} MB: {self._name}"
