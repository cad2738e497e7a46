"""`cogwork shell`: open a shell on a machine in this terminal."""

from __future__ import annotations

import argparse
import codecs
import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from typing import Any

import grpc

from cogwork.cli.client.grpc_client import CommandError, list_resources, with_channel
from cogwork.cli.terminal import EXIT_FAILURE, EXIT_OK, exit_on_signals, print_error
from cogwork.config.check.diagnostics import did_you_mean
from cogwork.core.escape import escape
from cogwork.resource.messages.structs import to_struct
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # import `clean_import` before the SDK
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402

from cogwork.resource.services.shell import WINDOW_CHANGE  # noqa: E402

SERVICE = "viam.service.shell.v1.ShellService"
_RESOURCE_PREFIX = "rdk:service:shell/"
_ESCAPE_KEY = b"\x1d"
"""The key Ctrl-], which ends a shell whose machine does not respond."""
_READ_SIZE = 1 << 16
_RESIZED, _CLOSED = b"r", b"o"


def shell(arguments: argparse.Namespace) -> int:
    with exit_on_signals():
        return with_channel(arguments.address, lambda channel: _shell(channel, arguments))


def find_shell(channel: grpc.Channel, wanted: str | None) -> str:
    """Return the name of the given shell service, or of the only one."""
    names = [
        each.name
        for full, each in list_resources(channel).items()
        if full.startswith(_RESOURCE_PREFIX)
    ]
    if wanted is None and len(names) == 1:
        return names[0]
    if not names:
        raise CommandError(
            'the machine has no shell; add {"name": "shell", "api": "rdk:service:shell"} to the '
            "services of its configuration"
        )
    if wanted is None:
        raise CommandError(
            f"the machine has several shells; choose one with --name: {', '.join(names)}"
        )
    if wanted not in names:
        hint = did_you_mean(wanted, names) or f"it has {', '.join(names)}"
        raise CommandError(f'the machine has no shell "{wanted}"; {hint}')
    return wanted


def _shell(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    name = find_shell(channel, arguments.name)
    start: Any = channel.stream_stream(
        f"/{SERVICE}/Shell",
        request_serializer=messages.ShellRequest.SerializeToString,
        response_deserializer=messages.ShellResponse.FromString,
    )
    with _TerminalInput(name) as keyboard:
        if keyboard.is_terminal:
            # In raw mode, a line feed alone does not return to the first column.
            hint = escape(f'shell "{name}" at {arguments.address}; press Ctrl-] to leave')
            print(hint, end="\r\n", file=sys.stderr)
        call = start(keyboard.requests())
        keyboard.on_escape = call.cancel
        try:
            return _print_output(call)
        except grpc.RpcError as error:
            if keyboard.escaped and error.code() is grpc.StatusCode.CANCELLED:
                return EXIT_OK
            raise


def _print_output(call: Any) -> int:
    for reply in call:
        _write_all(sys.stdout.fileno(), reply.data_out)
        _write_all(sys.stderr.fileno(), reply.data_err)
        if reply.eof:
            return EXIT_OK
    print_error("the machine closed the connection before the shell exited")
    return EXIT_FAILURE


def _write_all(descriptor: int, text: str) -> None:
    rest = memoryview(text.encode(errors="replace"))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class _TerminalInput:
    """Keyboard input in raw mode, and the size of the terminal window."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._input = sys.stdin.fileno()
        self.is_terminal = os.isatty(self._input)
        self.on_escape: Any = None
        """Called when the escape key is pressed."""
        self.escaped = False

    def __enter__(self) -> _TerminalInput:
        self._wakeup_reader, self._wakeup_writer = os.pipe()
        self._previous_handler = signal.signal(signal.SIGWINCH, self._on_resize)
        if self.is_terminal:
            self._saved_attributes = termios.tcgetattr(self._input)
            # TCSADRAIN keeps input that was typed before the switch to raw mode.
            tty.setraw(self._input, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_terminal:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._saved_attributes)
        signal.signal(signal.SIGWINCH, self._previous_handler)
        self._wake(_CLOSED)
        os.close(self._wakeup_writer)

    def requests(self) -> Iterator[messages.ShellRequest]:
        """Yield requests to gRPC's thread, which consumes them as flow control allows."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            yield self._build_request(**self._initial_extra())
            while True:
                readable, _, _ = select.select([self._input, self._wakeup_reader], [], [])
                if self._wakeup_reader in readable:
                    if os.read(self._wakeup_reader, 1) == _CLOSED:
                        return
                    yield self._build_request(**(self._size_message() or {}))
                elif not (data := os.read(self._input, _READ_SIZE)):
                    return
                elif self.is_terminal and _ESCAPE_KEY in data:
                    self.escaped = True
                    self.on_escape()
                    return
                else:
                    yield self._build_request(decoder.decode(data))
        finally:
            os.close(self._wakeup_reader)

    def _build_request(self, text: str = "", **extra: Any) -> messages.ShellRequest:
        return messages.ShellRequest(
            name=self._name, data_in=text, extra=to_struct(extra) if extra else None
        )

    def _initial_extra(self) -> dict[str, Any]:
        size = self._size_message()
        return {"messages": [size]} if size is not None else {}

    def _size_message(self) -> dict[str, Any] | None:
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(self._input)
            if columns and rows:
                return {"message": WINDOW_CHANGE, "cols": columns, "rows": rows}
        return None

    def _on_resize(self, *_: object) -> None:
        self._wake(_RESIZED)

    def _wake(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the reading thread has exited
            os.write(self._wakeup_writer, word)
