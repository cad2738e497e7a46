"""The shell API: a terminal for people, and files to and from the machine. The SDK has no class for
it."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from viam.gen.service.shell.v1 import shell_pb2 as messages

from cogwork.core.errors import InvalidRequest
from cogwork.graph.name import Api
from cogwork.resource.answers import CommonAnswers, Find
from cogwork.resource.structs import extra_to_dict
from cogwork.wire.both_ways import both_ways
from cogwork.wire.described import described_methods
from cogwork.wire.first import first_message
from cogwork.wire.handlers import Handle, Method, Stream

_DESCRIPTOR = messages.DESCRIPTOR.services_by_name["ShellService"]
END_OF_INPUT = b"\x04"
"""What a person types to say that there is no more."""
WINDOW_CHANGE = "window-change"
_FAREWELL = 0.2
"""Seconds that a client has to end a call itself."""
_LARGEST_WINDOW = (1 << 16) - 1


class Terminal(Protocol):
    async def read(self) -> bytes:
        """Empty after the last."""

    async def write(self, data: bytes) -> None: ...

    def resize(self, columns: int, rows: int) -> None: ...

    async def aclose(self) -> None:
        """Ends what runs in it."""


class Incoming(Protocol):
    async def take(self, piece: messages.FileData) -> bool:
        """Whether a file is whole with it."""

    async def aclose(self) -> None:
        """What is not whole goes."""


class Outgoing(Protocol):
    @property
    def source_type(self) -> messages.CopyFilesSourceType.ValueType: ...

    def __aiter__(self) -> AsyncIterator[messages.FileData]: ...

    async def aclose(self) -> None: ...


class Shell(Protocol):
    """What a resource of the API has, beside the calls of every resource."""

    async def terminal(self) -> Terminal: ...

    async def incoming(
        self,
        destination: str,
        source_type: messages.CopyFilesSourceType.ValueType,
        *,
        preserve: bool,
    ) -> Incoming: ...

    async def outgoing(
        self, paths: Sequence[str], *, recursive: bool, preserve: bool
    ) -> Outgoing: ...


def shell_methods(api: Api, find: Find) -> Iterable[Method]:
    service = ShellService(api, find)
    return described_methods(_DESCRIPTOR, service.answers(), streams=service.streams())


class ShellService(CommonAnswers):
    def streams(self) -> Mapping[str, Handle]:
        return {
            "Shell": self.shell,
            "CopyFilesToMachine": self.copy_files_to_machine,
            "CopyFilesFromMachine": self.copy_files_from_machine,
        }

    async def shell(self, stream: Stream) -> None:
        """The first message says which shell it is for, and may bring a window's size. The last
        reply says that the shell has ended."""
        first: messages.ShellRequest = await first_message(stream, _path("Shell"))
        shell: Shell = self.resource(first.name)
        terminal = await shell.terminal()
        try:
            # Ahead of the first output: grpc never ends a call whose first reply was cancelled.
            await stream.send_initial_metadata()
            await both_ways(_type(first, stream, terminal), _show(stream, terminal))
        finally:
            await terminal.aclose()
        await stream.send_message(messages.ShellResponse(eof=True))
        # Clients of grpclib lose the last reply if the end of the call comes along with it.
        await asyncio.sleep(_FAREWELL)

    async def copy_files_to_machine(self, stream: Stream) -> None:
        """Metadata, then one file after the other; every file that is whole is acknowledged."""
        metadata = (await first_message(stream, _path("CopyFilesToMachine"))).metadata
        shell: Shell = self.resource(metadata.name)
        incoming = await shell.incoming(
            metadata.destination, metadata.source_type, preserve=metadata.preserve
        )
        try:
            while (request := await stream.recv_message()) is not None:
                if not request.HasField("file_data"):
                    raise InvalidRequest("only the first message holds metadata, others file data")
                if await incoming.take(request.file_data):
                    await stream.send_message(
                        messages.CopyFilesToMachineResponse(ack_last_file=True)
                    )
        finally:
            await incoming.aclose()

    async def copy_files_from_machine(self, stream: Stream) -> None:
        """Metadata, then one file after the other; the next begins when the client has the last."""
        metadata = (await first_message(stream, _path("CopyFilesFromMachine"))).metadata
        shell: Shell = self.resource(metadata.name)
        outgoing = await shell.outgoing(
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
                    await _acknowledged(stream)
        finally:
            await outgoing.aclose()


def _path(method: str) -> str:
    return f"/{_DESCRIPTOR.full_name}/{method}"


async def _type(first: messages.ShellRequest, stream: Stream, terminal: Terminal) -> None:
    request: messages.ShellRequest | None = first
    while request is not None:
        _resize(request, terminal)
        await terminal.write(request.data_in.encode())
        request = await stream.recv_message()
    await terminal.write(END_OF_INPUT)


async def _show(stream: Stream, terminal: Terminal) -> None:
    # A character may come in two pieces, and what is no text must not end the call.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while data := await terminal.read():
        if text := decoder.decode(data):
            await stream.send_message(messages.ShellResponse(data_out=text))
    if text := decoder.decode(b"", final=True):
        await stream.send_message(messages.ShellResponse(data_out=text))


def _resize(request: messages.ShellRequest, terminal: Terminal) -> None:
    """Clients send sizes in `extra`: in a list with the first message, later one by one."""
    if not request.HasField("extra"):
        return
    extra = extra_to_dict(request.extra)
    listed = extra.get("messages")
    for message in [*(listed if isinstance(listed, list) else ()), extra]:
        if isinstance(message, dict) and message.get("message") == WINDOW_CHANGE:
            terminal.resize(_side(message, "cols"), _side(message, "rows"))


def _side(message: Mapping[str, Any], key: str) -> int:
    value = message.get(key)
    if not isinstance(value, float) or not 0 <= value <= _LARGEST_WINDOW:
        raise InvalidRequest(f'"{key}" of {WINDOW_CHANGE} is a number up to {_LARGEST_WINDOW}')
    return int(value)


async def _acknowledged(stream: Stream) -> None:
    answer = await stream.recv_message()
    if answer is None or not answer.ack_last_file:
        raise InvalidRequest("a file was not acknowledged; say ack_last_file when it is written")
