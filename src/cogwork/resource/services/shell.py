"""The shell API: an interactive terminal, and file transfer to and from the machine.

The SDK has no class for this API.
"""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.messages.structs import extra_to_dict
from cogwork.resource.services.resource_service import FindResource, ResourceService
from cogwork.wire.table.descriptor_service import methods_from_descriptor
from cogwork.wire.table.duplex import run_duplex
from cogwork.wire.table.first_message import recv_first_message
from cogwork.wire.table.handlers import Handler, Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["ShellService"]
END_OF_INPUT = b"\x04"
"""EOT (Ctrl-D), which ends the input of a terminal."""
WINDOW_CHANGE = "window-change"
_CLOSE_DELAY = 0.2
"""Seconds that a client gets to end a call itself before the server ends it."""
_MAX_WINDOW_SIDE = (1 << 16) - 1


class ShellTerminal(Protocol):
    async def read(self) -> bytes:
        """Return the next output, or empty bytes after the last."""

    async def write(self, data: bytes) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def aclose(self) -> None:
        """End the processes in the terminal."""


class AsyncFileReceiver(Protocol):
    async def write_chunk(self, piece: messages.FileData) -> bool:
        """Write a chunk. Return whether it completes a file."""

    async def aclose(self) -> None:
        """Delete incomplete files."""


class AsyncFileSender(Protocol):
    @property
    def source_type(self) -> messages.CopyFilesSourceType.ValueType: ...

    def __aiter__(self) -> AsyncIterator[messages.FileData]: ...

    async def aclose(self) -> None: ...


class Shell(Protocol):
    """A resource of the shell API, without the methods that every resource has."""

    async def open_terminal(self) -> ShellTerminal: ...

    async def receive_files(
        self,
        destination: str,
        source_type: messages.CopyFilesSourceType.ValueType,
        *,
        preserve: bool,
    ) -> AsyncFileReceiver: ...

    async def send_files(
        self, paths: Sequence[str], *, recursive: bool, preserve: bool
    ) -> AsyncFileSender: ...


def shell_methods(api: Api, find: FindResource) -> Iterable[Method]:
    service = ShellService(api, find)
    return methods_from_descriptor(
        _DESCRIPTOR, service.unary_handlers(), streams=service.stream_handlers()
    )


class ShellService(ResourceService):
    def stream_handlers(self) -> Mapping[str, Handler]:
        return {
            "Shell": self.shell,
            "CopyFilesToMachine": self.copy_files_to_machine,
            "CopyFilesFromMachine": self.copy_files_from_machine,
        }

    async def shell(self, stream: Stream) -> None:
        """Run a terminal session.

        The first message names the shell and may contain the window size. The last reply reports
        that the shell has ended.
        """
        first: messages.ShellRequest = await recv_first_message(stream, _method_path("Shell"))
        shell: Shell = self.find_resource(first.name)
        terminal = await shell.open_terminal()
        try:
            # Send the initial metadata before any output: grpc never ends a call whose first reply
            # was cancelled.
            await stream.send_initial_metadata()
            await run_duplex(
                _forward_input(first, stream, terminal), _forward_output(stream, terminal)
            )
        finally:
            await terminal.aclose()
        await stream.send_message(messages.ShellResponse(eof=True))
        # Delay the end of the call: if it arrives together with the last reply, grpclib clients
        # lose that reply.
        await asyncio.sleep(_CLOSE_DELAY)

    async def copy_files_to_machine(self, stream: Stream) -> None:
        """Receive metadata, then files one after the other. Acknowledge each complete file."""
        metadata = (await recv_first_message(stream, _method_path("CopyFilesToMachine"))).metadata
        shell: Shell = self.find_resource(metadata.name)
        incoming = await shell.receive_files(
            metadata.destination, metadata.source_type, preserve=metadata.preserve
        )
        try:
            while (request := await stream.recv_message()) is not None:
                if not request.HasField("file_data"):
                    raise InvalidRequest("messages after the first must contain file data")
                if await incoming.write_chunk(request.file_data):
                    await stream.send_message(
                        messages.CopyFilesToMachineResponse(ack_last_file=True)
                    )
        finally:
            await incoming.aclose()

    async def copy_files_from_machine(self, stream: Stream) -> None:
        """Send metadata, then files one after the other. Wait for an acknowledgment of each."""
        metadata = (await recv_first_message(stream, _method_path("CopyFilesFromMachine"))).metadata
        shell: Shell = self.find_resource(metadata.name)
        outgoing = await shell.send_files(
            list(metadata.paths), recursive=metadata.allow_recursion, preserve=metadata.preserve
        )
        try:
            await stream.send_message(
                messages.CopyFilesFromMachineResponse(
                    metadata=messages.CopyFilesFromMachineResponseMetadata(
                        source_type=outgoing.source_type
                    )
                )
            )
            async for piece in outgoing:
                await stream.send_message(messages.CopyFilesFromMachineResponse(file_data=piece))
                if piece.eof:
                    await _wait_for_ack(stream)
        finally:
            await outgoing.aclose()


def _method_path(method: str) -> str:
    return f"/{_DESCRIPTOR.full_name}/{method}"


async def _forward_input(
    first: messages.ShellRequest, stream: Stream, terminal: ShellTerminal
) -> None:
    request: messages.ShellRequest | None = first
    while request is not None:
        _resize(request, terminal)
        await terminal.write(request.data_in.encode())
        request = await stream.recv_message()
    await terminal.write(END_OF_INPUT)


async def _forward_output(stream: Stream, terminal: ShellTerminal) -> None:
    # A character may be split between two reads. Invalid UTF-8 must not end the call.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await terminal.read():
        if text := decoder.decode(data):
            await stream.send_message(messages.ShellResponse(data_out=text))
    if text := decoder.decode(b"", final=True):
        await stream.send_message(messages.ShellResponse(data_out=text))


def _resize(request: messages.ShellRequest, terminal: ShellTerminal) -> None:
    """Apply window sizes from `extra`: the first message contains a list, each later message one
    size."""
    if not request.HasField("extra"):
        return
    extra = extra_to_dict(request.extra)
    listed = extra.get("messages")
    for message in [*(listed if isinstance(listed, list) else ()), extra]:
        if isinstance(message, dict) and message.get("message") == WINDOW_CHANGE:
            terminal.resize(_parse_side(message, "cols"), _parse_side(message, "rows"))


def _parse_side(message: Mapping[str, Any], key: str) -> int:
    value = message.get(key)
    if not isinstance(value, float) or not 0 <= value <= _MAX_WINDOW_SIDE:
        raise InvalidRequest(
            f'"{key}" of {WINDOW_CHANGE} must be a number from 0 to {_MAX_WINDOW_SIDE}'
        )
    return int(value)


async def _wait_for_ack(stream: Stream) -> None:
    request = await stream.recv_message()
    if request is None or not request.ack_last_file:
        raise InvalidRequest("a file was not acknowledged; send ack_last_file after writing it")
