"""Errors of every command: one sentence, one line that points to the help, the same exit codes."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import http.server
import os
import signal
import socket
import termios
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.machine.commands import start_command
from tests.support.machine.running import DEADLINE
from tests.support.waiting import block_until

from cogwork.cli.commands import build_parser
from cogwork.cli.exit_codes import EXIT_CODES
from cogwork.cli.main import main

ONLINE_COMMANDS = [
    ("status",),
    ("status", "--history"),
    ("logs",),
    ("graph",),
    ("call", "belt", "is_moving"),
    ("camera", "snap", "belt"),
    ("camera", "watch", "belt"),
    ("tunnel",),
    ("shell",),
    ("copy", "machine:a", "b"),
    ("module", "restart", "acme"),
]
"""Commands that talk to a machine."""


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (("sttus",), 'cogwork: unknown command "sttus"; did you mean "status"?'),
        (("config", "chek"), 'cogwork config: unknown command "chek"; did you mean "check"?'),
        (
            ("model", "zzz"),
            'cogwork model: unknown command "zzz"; choose from show, inspect, demo',
        ),
        (
            ("status", "--adress=x:1"),
            'cogwork status: unknown option --adress; did you mean "--address"?',
        ),
        (
            ("status", "belt"),
            'cogwork status: unexpected argument "belt"; put an argument with spaces in quotes',
        ),
        (
            ("graph", "--format", "svgg"),
            'cogwork graph: argument --format: invalid value "svgg"; did you mean "svg"?',
        ),
        (
            ("demo", "--port", "99999"),
            "cogwork demo: argument --port: 99999 is not a port; ports range from 1 to 65535",
        ),
        (
            ("module", "run", "--port", "http"),
            "cogwork module run: argument --port: http is not a port; ports range from 1 to 65535",
        ),
        (
            ("status", "--address", "localhost:99999"),
            "cogwork status: argument --address: 99999 is not a port; ports range from 1 to 65535",
        ),
        (
            ("call", "--address", "a b", "x", "y"),
            'cogwork call: argument --address: "a b" is not an address; write HOST:PORT, such as '
            "localhost:8080",
        ),
        ((), "cogwork: the following arguments are required: COMMAND"),
        (("call",), "cogwork call: the following arguments are required: RESOURCE"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, tuple) else "",
)
def test_wrong_usage_prints_the_error_and_one_line(
    words: tuple[str, ...], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    captured = capsys.readouterr()
    command = error.partition(":")[0]
    assert (caught.value.code, captured.out) == (2, "")
    assert captured.err == f"{error}\nfor help, run: {command} -h\n"


def test_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COGWORK_ADDRESS", raising=False)
    assert build_parser().parse_args(["status"]).address == "localhost:8080"
    monkeypatch.setenv("COGWORK_ADDRESS", "robot.local:8081")
    assert build_parser().parse_args(["status"]).address == "robot.local:8081"
    assert build_parser().parse_args(["status", "--address", ":1"]).address == "localhost:1"
    monkeypatch.setenv("COGWORK_ADDRESS", "")
    assert build_parser().parse_args(["status"]).address == "localhost:8080"


@pytest.mark.parametrize("words", ONLINE_COMMANDS, ids=" ".join)
def test_unreachable_machine_is_one_sentence(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        code = main([*words, "--address", address])
    told = capsys.readouterr()
    assert (code, told.out) == (2, "")
    assert told.err == (
        f"cannot reach a machine at {address} (Connection refused); start one with "
        "`cogwork-server -config machine.json`, or set --address\n"
    )


@pytest.mark.parametrize("words", [("status",), ("call", "belt", "is_moving")], ids=" ".join)
def test_unknown_host_is_one_sentence(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    code = main([*words, "--address", "no-such-host.invalid"])
    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith("cannot reach a machine at no-such-host.invalid:8080 (")


@contextlib.contextmanager
def serve_404() -> Iterator[str]:
    """Yield the address of a web server that is not a machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("words", ONLINE_COMMANDS, ids=" ".join)
def test_other_server_is_one_sentence(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with serve_404() as address:
        code = main([*words, "--address", address])
    told = capsys.readouterr()
    assert (code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith(f"cannot reach a machine at {address} (")
    assert "not a Cogwork server" in told.err


@pytest.mark.parametrize(
    "words",
    [
        ("config", "check", "none"),
        ("config", "diff", "none", "none"),
        ("model", "show", "none"),
        ("model", "inspect", "none"),
        ("model", "inspect", "model", "--image", "none"),
        ("model", "inspect", "model", "--labels", "none"),
        ("module", "run", "none"),
    ],
    ids=" ".join,
)
def test_missing_file_is_reported(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").touch()
    assert main(words) == 2
    captured = capsys.readouterr()
    assert "none" in captured.out + captured.err
    assert "Traceback" not in captured.err


@contextlib.asynccontextmanager
async def silent_server() -> AsyncIterator[tuple[str, asyncio.Event]]:
    """Yield the address of a server that never replies, and an event for the first data."""
    contacted = asyncio.Event()
    over = asyncio.Event()
    calls: set[asyncio.Task[object] | None] = set()

    async def ignore(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.add(asyncio.current_task())
        with contextlib.suppress(ConnectionError):
            await reader.read(1)
            contacted.set()
            await over.wait()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_server(ignore, "127.0.0.1", 0)
    try:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", contacted
    finally:
        over.set()
        server.close()
        await server.wait_closed()
        await asyncio.gather(*filter(None, calls))


@pytest.mark.parametrize("words", ONLINE_COMMANDS, ids=" ".join)
async def test_ctrl_c_ends_a_command_that_waits_for_a_machine(words: tuple[str, ...]) -> None:
    async with (
        asyncio.timeout(DEADLINE),
        silent_server() as (address, contacted),
        start_command(*words, "--address", address) as process,
    ):
        await contacted.wait()
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    if words[0] == "copy":
        assert err == b"interrupted; the current file was not copied\n"
    else:
        assert err == b""
    assert (process.returncode, out) == (130, b"")


def wait_until_read(pipe: int) -> None:
    block_until(lambda: fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)) == bytes(4))


async def test_ctrl_c_ends_a_command_that_reads_its_input() -> None:
    reader, writer = os.pipe()
    os.write(writer, b"{")
    try:
        async with (
            asyncio.timeout(DEADLINE),
            start_command("config", "check", "-", stdin=reader) as process,
        ):
            await asyncio.to_thread(wait_until_read, reader)
            process.send_signal(signal.SIGINT)
            out, err = await process.communicate()
    finally:
        os.close(reader)
        os.close(writer)
    assert (process.returncode, out, err) == (130, b"", b"")


def test_exit_codes_are_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["-h"])
    text = " ".join(capsys.readouterr().out.split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code}: {meaning}" in text
