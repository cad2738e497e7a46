"""`cogwork shell`: a shell of a running machine, in this terminal."""

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

from cogwork.cli.dial import Misused, dialed, resources_of
from cogwork.cli.terminal import FAULTS, FINE, complain, orderly_end
from cogwork.config.diagnose import did_you_mean
from cogwork.resource import sdk
from cogwork.resource.structs import to_struct

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402

from cogwork.resource.shell_service import WINDOW_CHANGE  # noqa: E402

SERVICE = "viam.service.shell.v1.ShellService"
_PREFIX = "rdk:service:shell/"
_ESCAPE = b"\x1d"
"""Ctrl-], for a machine that does not answer any more."""
_PIECE = 1 << 16
_RESIZED, _OVER = b"r", b"o"


def shell(arguments: argparse.Namespace) -> int:
    with orderly_end():
        return dialed(arguments.address, lambda channel: _shell(channel, arguments))


def shell_named(channel: grpc.Channel, wanted: str | None) -> str:
    """The one that is wanted, or the only one."""
    names = [each.name for full, each in resources_of(channel).items() if full.startswith(_PREFIX)]
    if wanted is None and len(names) == 1:
        return names[0]
    if not names:
        raise Misused(
            'the machine has no shell; add {"name": "shell", "api": "rdk:service:shell"} to the '
            "services of its configuration"
        )
    if wanted is None:
        raise Misused(f"the machine has several shells: choose {' or '.join(names)} with --name")
    if wanted not in names:
        hint = did_you_mean(wanted, names) or f"it has {', '.join(names)}"
        raise Misused(f'the machine has no shell "{wanted}"; {hint}')
    return wanted


def _shell(channel: grpc.Channel, arguments: argparse.Namespace) -> int:
    name = shell_named(channel, arguments.name)
    start: Any = channel.stream_stream(
        f"/{SERVICE}/Shell",
        request_serializer=messages.ShellRequest.SerializeToString,
        response_deserializer=messages.ShellResponse.FromString,
    )
    with _Keyboard(name) as keyboard:
        if keyboard.is_terminal:
            complain(f'shell "{name}" at {arguments.address}; Ctrl-] leaves it\r')
        call = start(keyboard.requests())
        keyboard.escape = call.cancel
        try:
            return _show(call)
        except grpc.RpcError as error:
            if keyboard.escaped and error.code() is grpc.StatusCode.CANCELLED:
                return FINE
            raise


def _show(call: Any) -> int:
    for reply in call:
        _write(sys.stdout.fileno(), reply.data_out)
        _write(sys.stderr.fileno(), reply.data_err)
        if reply.eof:
            return FINE
    complain("the machine ended the call ahead of the shell")
    return FAULTS


def _write(descriptor: int, text: str) -> None:
    rest = memoryview(text.encode(errors="replace"))
    while rest:
        rest = rest[os.write(descriptor, rest) :]


class _Keyboard:
    """What is typed here, key by key, and how large the window is."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._input = sys.stdin.fileno()
        self.is_terminal = os.isatty(self._input)
        self.escape: Any = None
        """Called when the person wants to leave."""
        self.escaped = False

    def __enter__(self) -> _Keyboard:
        self._news, self._tell = os.pipe()
        self._resized = signal.signal(signal.SIGWINCH, self._tell_size)
        if self.is_terminal:
            self._before = termios.tcgetattr(self._input)
            # What was typed meanwhile stays.
            tty.setraw(self._input, termios.TCSADRAIN)
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_terminal:
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)
        signal.signal(signal.SIGWINCH, self._resized)
        self._say(_OVER)
        os.close(self._tell)

    def requests(self) -> Iterator[messages.ShellRequest]:
        """Another thread takes them one by one, as the machine can take them."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        try:
            yield self._request(**self._sizes())
            while True:
                readable, _, _ = select.select([self._input, self._news], [], [])
                if self._news in readable:
                    if os.read(self._news, 1) == _OVER:
                        return
                    yield self._request(**(self._size() or {}))
                elif not (data := os.read(self._input, _PIECE)):
                    return
                elif self.is_terminal and _ESCAPE in data:
                    self.escaped = True
                    self.escape()
                    return
                else:
                    yield self._request(decoder.decode(data))
        finally:
            os.close(self._news)

    def _request(self, text: str = "", **extra: Any) -> messages.ShellRequest:
        return messages.ShellRequest(
            name=self._name, data_in=text, extra=to_struct(extra) if extra else None
        )

    def _sizes(self) -> dict[str, Any]:
        size = self._size()
        return {"messages": [size]} if size is not None else {}

    def _size(self) -> dict[str, Any] | None:
        with contextlib.suppress(OSError):
            columns, rows = os.get_terminal_size(self._input)
            if columns and rows:
                return {"message": WINDOW_CHANGE, "cols": columns, "rows": rows}
        return None

    def _tell_size(self, *_: object) -> None:
        self._say(_RESIZED)

    def _say(self, word: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # nobody reads the keyboard any more
            os.write(self._tell, word)
