"""The shell service over real gRPC, with the generated stub as its client."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from grpclib.const import Status
from tests.served import CHANNELS, _channel, refused

from cogwork.graph.name import Api, ResourceName
from cogwork.resource import sdk
from cogwork.resource.shell_service import shell_methods
from cogwork.resource.structs import to_struct
from cogwork.wire.grpc import grpc_server
from cogwork.wire.handlers import HandlerTable

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402
from viam.gen.service.shell.v1.shell_grpc import ShellServiceStub  # noqa: E402

from cogwork.drivers.shell.attributes import BuiltinShellAttributes  # noqa: E402
from cogwork.drivers.shell.builtin import BuiltinShell, NoShell, RefusedShell  # noqa: E402
from cogwork.drivers.shell.file_copy import CHUNK_SIZE  # noqa: E402

API = Api.parse("rdk:service:shell")
NAME = ResourceName.from_short(API, "sh")
DEADLINE = 20.0
FILE = messages.COPY_FILES_SOURCE_TYPE_SINGLE_FILE
DIRECTORY = messages.COPY_FILES_SOURCE_TYPE_SINGLE_DIRECTORY
MULTIPLE = messages.COPY_FILES_SOURCE_TYPE_MULTIPLE_FILES


@pytest.fixture(autouse=True)
def no_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a shell says begins a line."""
    monkeypatch.setenv("PS1", "")


@pytest.fixture(params=CHANNELS)
async def stub(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ShellServiceStub]:
    """Of a shell that starts in `tmp_path`."""
    async with served(tmp_path, request.param) as (made, _):
        yield made


@contextlib.asynccontextmanager
async def served(directory: Path, by: str = "ours") -> AsyncIterator[tuple[Any, BuiltinShell]]:
    attributes = BuiltinShellAttributes(shell="/bin/sh", directory=str(directory))
    shell = await BuiltinShell.new(NAME, attributes, {})
    table = HandlerTable()
    table.add("viam.service.shell.v1.ShellService", partial(shell_methods, API, {NAME: shell}.get))
    server = grpc_server(table)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with asyncio.timeout(DEADLINE), _channel(port, by) as channel:
            yield ShellServiceStub(channel), shell
    finally:
        await server.stop(None)
        await shell.close()


def typed(text: str = "", **extra: Any) -> messages.ShellRequest:
    return messages.ShellRequest(name="sh", data_in=text, extra=to_struct(extra) if extra else None)


async def shown(stream: Any, wanted: str) -> str:
    """All that came, up to what is wanted."""
    seen = ""
    while wanted not in seen:
        reply = await stream.recv_message()
        assert reply is not None, f"the shell ended without {wanted!r}: {seen}"
        assert not reply.eof, f"the shell ended without {wanted!r}: {seen}"
        seen += str(reply.data_out)
    return seen


async def last_words(stream: Any) -> str:
    """Up to the end of the shell, which must be told."""
    seen = ""
    async for reply in stream:
        seen += str(reply.data_out)
        if reply.eof:
            return seen
    raise AssertionError(f"the end of the shell was not told: {seen}")


async def gone(pid: int) -> None:
    """Whoever adopts orphans may take its time to notice."""
    await until(lambda: not psutil.pid_exists(pid) or is_zombie(pid))


def is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class TestShell:
    async def test_it_is_a_terminal_with_a_job_control(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed())
            await stream.send_message(typed("tty; echo $TERM; set -o | grep monitor\n"))
            seen = await shown(stream, "\nmonitor")
            assert "/dev/pts/" in seen
            assert "xterm-256color" in seen
            assert "access tty" not in seen
            await stream.send_message(typed("exit\n"), end=True)
            await last_words(stream)

    async def test_it_starts_where_it_is_told(self, stub: ShellServiceStub, tmp_path: Path) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed("pwd; exit\n"))
            assert str(tmp_path) in await last_words(stream)
            await stream.end()

    async def test_the_end_of_the_shell_comes_after_all_that_it_said(self) -> None:
        async with served(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(typed("seq 100000; exit\n"))
            seen = await last_words(stream)
            assert "\r\n100000\r\n" in seen
            assert await stream.recv_message() is None

    async def test_a_client_that_ends_its_input_ends_the_shell(
        self, stub: ShellServiceStub
    ) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed("echo so long\n"), end=True)
            assert "\nso long" in await last_words(stream)

    async def test_the_window_has_the_size_that_the_first_message_brings(
        self, stub: ShellServiceStub
    ) -> None:
        async with stub.Shell.open() as stream:
            sizes = [{"message": "window-change", "cols": 101, "rows": 42}]
            await stream.send_message(typed("", messages=sizes))
            await stream.send_message(typed("stty size\n"))
            await shown(stream, "42 101")
            await stream.send_message(typed("", message="window-change", cols=77, rows=33))
            await stream.send_message(typed("stty size\n"))
            await shown(stream, "33 77")
            await stream.end()
            await last_words(stream)

    async def test_a_window_of_no_size_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Also when its first words, a prompt, are under way."""
        monkeypatch.setenv("PS1", "> ")
        async with served(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(typed("", message="window-change", cols="wide", rows=1))
            with refused() as error:
                await last_words(stream)
        assert error.status is Status.INVALID_ARGUMENT
        assert error.words == '"cols" of window-change must be a number from 0 to 65535'

    async def test_ctrl_c_reaches_what_runs(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed("sh -c 'echo ready; exec sleep 1000'\n"))
            await shown(stream, "\nready")
            await stream.send_message(typed("\x03"))
            await stream.send_message(typed("echo status $?\n"))
            await shown(stream, "status 130")
            await stream.end()
            await last_words(stream)

    async def test_what_is_no_text_does_not_end_it(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed("printf 'a\\377b\\303\\251\\n'; exit\n"), end=True)
            assert "a\ufffdbé" in await last_words(stream)

    async def test_what_is_left_running_does_not_hold_the_end(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(typed("(trap '' HUP; exec sleep 1)& echo =$!=; exit\n"))
            seen = await last_words(stream)
            await stream.end()
        pid = int(seen.split("\n=")[1].split("=")[0])
        await gone(pid)

    async def test_nobody_who_reads_stops_what_writes(self) -> None:
        async with served(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(typed("echo =$$=; yes 0123456789 \n"))
            pid = int((await shown(stream, "\n0123")).split("\n=")[1].split("=")[0])
            (yes,) = psutil.Process(pid).children()
            before = None
            while (now := yes.cpu_times()) != before:
                before = now
                await asyncio.sleep(0.3)
            assert yes.status() == psutil.STATUS_SLEEPING
            await stream.cancel()
            await gone(pid)

    @pytest.mark.parametrize("stubborn", [False, True], ids=["meek", "stubborn"])
    async def test_a_client_that_goes_ends_all_that_it_started(
        self, stub: ShellServiceStub, stubborn: bool
    ) -> None:
        trap = "trap '' HUP TERM; " if stubborn else ""
        async with stub.Shell.open() as stream:
            await stream.send_message(
                typed(f"{trap}sh -c '{trap}echo =$$=; while :; do sleep 1; done'\n")
            )
            seen = await shown(stream, "=\r\n")
            pid = int(seen.split("\n=")[1].split("=")[0])
            leader = psutil.Process(pid).ppid()
            await stream.cancel()
        await gone(pid)
        await gone(leader)

    @pytest.mark.parametrize("leaving", ["", "exit\n"], ids=["cut off", "left"])
    @pytest.mark.parametrize("stubborn", [False, True], ids=["meek", "stubborn"])
    async def test_what_runs_in_the_background_ends_with_the_call(
        self, stub: ShellServiceStub, stubborn: bool, leaving: str
    ) -> None:
        """Jobs of an interactive shell have process groups of their own."""
        trap = "trap '' HUP; " if stubborn else ""
        async with stub.Shell.open() as stream:
            await stream.send_message(typed(f"({trap}exec sleep 7777)& echo =$!=; :\n"))
            pid = int((await shown(stream, "=\r\n")).split("\n=")[1].split("=")[0])
            if leaving:
                await stream.send_message(typed(leaving), end=True)
                await last_words(stream)
            else:
                await stream.cancel()
        await gone(pid)

    async def test_closing_the_resource_ends_its_shells(self) -> None:
        async with served(Path("/")) as (stub, shell), stub.Shell.open() as stream:
            await stream.send_message(typed("echo ready\n"))
            await shown(stream, "\nready")
            assert (await shell.get_status())["open"] == 1
            await shell.close()
            await last_words(stream)
            assert (await shell.get_status())["open"] == 0


class TestNew:
    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            ({"shell": "/no/such/shell"}, '"/no/such/shell" is not an executable program'),
            ({"directory": "/no/such/place"}, "/no/such/place is not a directory"),
        ],
        ids=["shell", "directory"],
    )
    async def test_what_cannot_be_is_told(self, attributes: Any, words: str) -> None:
        with pytest.raises(NoShell, match=words):
            await BuiltinShell.new(NAME, BuiltinShellAttributes(**attributes), {})

    async def test_an_untrusted_environment_has_none(self) -> None:
        with pytest.raises(
            NoShell, match="shells are disabled because the server was started with -untr"
        ):
            await RefusedShell.new(NAME, BuiltinShellAttributes(), {})


async def test_commands_tell_the_home(
    stub: ShellServiceStub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path))
    reply = await stub.DoCommand(common.DoCommandRequest(name="sh"))
    assert reply.result["VIAM_HOME"] == str(tmp_path)


async def test_the_status_says_what_runs(stub: ShellServiceStub, tmp_path: Path) -> None:
    status = (await stub.GetStatus(common.GetStatusRequest(name="sh"))).result
    assert dict(status) == {
        "shell": "/bin/sh",
        "directory": str(tmp_path),
        "open": 0.0,
        "copies": 0.0,
    }


def to_machine(
    destination: str, kind: Any = FILE, preserve: bool = False
) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(
        metadata=messages.CopyFilesToMachineRequestMetadata(
            name="sh", source_type=kind, destination=destination, preserve=preserve
        )
    )


def piece(name: str = "", data: bytes = b"", **fields: Any) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(
        file_data=messages.FileData(name=name, data=data, size=len(data), **fields)
    )


def end(**fields: Any) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(file_data=messages.FileData(eof=True, **fields))


async def copied_in(stub: ShellServiceStub, *requests: messages.CopyFilesToMachineRequest) -> int:
    """How many files were acknowledged, one after the other."""
    acknowledged = 0
    async with stub.CopyFilesToMachine.open() as stream:
        for request in requests:
            await stream.send_message(request)
            if request.file_data.eof:
                reply = await stream.recv_message()
                assert reply is not None
                assert reply.ack_last_file
                acknowledged += 1
        await stream.end()
        assert await stream.recv_message() is None
    return acknowledged


class TestToMachine:
    @pytest.mark.parametrize("rights", [0o600, 0o755])
    async def test_a_file_keeps_the_rights_of_the_one_that_it_replaces(
        self, stub: ShellServiceStub, tmp_path: Path, rights: int
    ) -> None:
        there = tmp_path / "there"
        there.write_text("before")
        there.chmod(rights)
        assert await copied_in(stub, to_machine("there"), piece("x", b"after"), end()) == 1
        assert (there.read_text(), stat.S_IMODE(there.stat().st_mode)) == ("after", rights)
        assert await copied_in(stub, to_machine("new"), piece("x", b"new"), end()) == 1
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        await copied_in(stub, to_machine("there"), piece("x", b"last", mode=0o644), end())
        assert stat.S_IMODE(there.stat().st_mode) == 0o644

    async def test_a_file_of_several_pieces(self, stub: ShellServiceStub, tmp_path: Path) -> None:
        data = os.urandom(3 * CHUNK_SIZE + 5)
        parts = [data[:CHUNK_SIZE], data[CHUNK_SIZE:]]
        sent = [to_machine("there"), piece("here", parts[0]), piece("", parts[1]), end()]
        assert await copied_in(stub, *sent) == 1
        assert (tmp_path / "there").read_bytes() == data
        assert os.listdir(tmp_path) == ["there"]  # noqa: PTH208

    async def test_a_directory_with_what_is_in_it(
        self, stub: ShellServiceStub, tmp_path: Path
    ) -> None:
        moment = {"seconds": 1_000_000_000, "nanos": 5}
        sent = [
            to_machine("", DIRECTORY, preserve=True),
            piece("tree/deep/file", b"x", mode=0o640, mod_time=moment),
            end(),
            end(name="tree/deep", is_dir=True, mode=0o700 | 1 << 31, mod_time=moment),
            end(name="tree/empty file", mode=0o4755, mod_time=moment),
            end(name="tree", is_dir=True, mode=0o711 | 1 << 31, mod_time=moment),
        ]
        assert await copied_in(stub, *sent) == 4
        tree = tmp_path / "tree"
        seen = {
            str(path.relative_to(tmp_path)): (stat.S_IMODE(path.stat().st_mode), path.is_dir())
            for path in [tree, *tree.rglob("*")]
        }
        assert seen == {
            "tree": (0o711, True),
            "tree/deep": (0o700, True),
            "tree/deep/file": (0o640, False),
            "tree/empty file": (0o755, False),
        }
        assert {path.stat().st_mtime_ns for path in [tree, *tree.rglob("*")]} == {
            1_000_000_000_000_000_005
        }

    async def test_a_directory_under_another_name(
        self, stub: ShellServiceStub, tmp_path: Path
    ) -> None:
        sent = [to_machine("other", DIRECTORY), piece("tree/file", b"x"), end()]
        assert await copied_in(stub, *sent) == 1
        assert (tmp_path / "other/file").read_bytes() == b"x"

    async def test_an_existing_file_is_replaced_when_the_new_one_is_whole(
        self, tmp_path: Path
    ) -> None:
        target = tmp_path / "file"
        target.write_text("old")
        async with served(tmp_path) as (stub, _):
            async with stub.CopyFilesToMachine.open() as stream:
                await stream.send_message(to_machine("file"))
                await stream.send_message(piece("new", b"half of"))
                await until(lambda: len(list(tmp_path.iterdir())) == 2)
                assert target.read_text() == "old"
                await stream.cancel()
            await until(lambda: list(tmp_path.iterdir()) == [target])
            assert await copied_in(stub, to_machine("file"), piece("new", b"whole"), end()) == 1
        assert target.read_text() == "whole"

    @pytest.mark.parametrize(
        "name", ["../out", "tree/../../out", "/out", "tree/..", "", "link/out", "link"]
    )
    async def test_nothing_is_written_outside(self, tmp_path: Path, name: str) -> None:
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        inside.mkdir()
        outside.mkdir()
        (inside / "link").symlink_to(outside)
        async with served(inside) as (stub, _):
            with refused() as error:
                await copied_in(stub, to_machine("", MULTIPLE), piece(name, b"x"), end())
        assert list(outside.iterdir()) == []
        assert sorted(each.name for each in tmp_path.iterdir()) == ["inside", "outside"]
        assert error.status in (Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION)

    async def test_a_link_in_the_place_of_a_file_is_replaced(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "link").symlink_to("secret")
        async with served(tmp_path) as (stub, _):
            await copied_in(stub, to_machine("", FILE), piece("link", b"x"), end())
        assert (tmp_path / "secret").read_text() == "secret"
        assert (tmp_path / "link").read_text() == "x"

    @pytest.mark.parametrize(
        ("destination", "kind", "status", "words"),
        [
            ("nowhere/file", FILE, Status.NOT_FOUND, "nowhere does not exist"),
            ("nowhere", MULTIPLE, Status.NOT_FOUND, "nowhere does not exist"),
            ("file", DIRECTORY, Status.FAILED_PRECONDITION, "file is an existing file"),
            ("file", 0, Status.INVALID_ARGUMENT, "unknown source type 0"),
        ],
        ids=["no parent", "no directory", "a file", "no type"],
    )
    async def test_a_destination_that_cannot_be(
        self, tmp_path: Path, destination: str, kind: Any, status: Status, words: str
    ) -> None:
        (tmp_path / "file").touch()
        async with served(tmp_path) as (stub, _):
            with refused() as error:
                await copied_in(stub, to_machine(destination, kind))
        assert error.status is status
        assert words in error.words

    async def test_two_files_at_once_are_refused(self, tmp_path: Path) -> None:
        async with served(tmp_path) as (stub, _):
            with refused() as error:
                await copied_in(
                    stub, to_machine("", MULTIPLE), piece("a", b"1"), piece("b", b"2"), end()
                )
            await until(lambda: list(tmp_path.iterdir()) == [])
        assert error.words == '"b" started before "a" was complete'


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not condition():  # noqa: ASYNC110 - another process changes it
            await asyncio.sleep(0.01)


async def copied_out(
    stub: ShellServiceStub, *paths: str, recursive: bool = False, preserve: bool = False
) -> tuple[Any, list[tuple[messages.FileData, bytes]]]:
    """The type, and every file with its content."""
    files: list[tuple[messages.FileData, bytes]] = []
    current: messages.FileData | None = None
    async with stub.CopyFilesFromMachine.open() as stream:
        await stream.send_message(
            messages.CopyFilesFromMachineRequest(
                metadata=messages.CopyFilesFromMachineRequestMetadata(
                    name="sh", paths=paths, allow_recursion=recursive, preserve=preserve
                )
            )
        )
        first = await stream.recv_message()
        assert first is not None
        data = b""
        async for reply in stream:
            got = reply.file_data
            if current is None:
                current, data = got, b""
            else:
                assert not got.name
            assert not (got.eof and got.data), "the end has a message of its own"
            assert len(got.data) <= CHUNK_SIZE
            data += got.data
            if got.eof:
                files.append((current, data))
                current = None
                await stream.send_message(messages.CopyFilesFromMachineRequest(ack_last_file=True))
        with contextlib.suppress(Exception):
            await stream.end()
    return first.metadata.source_type, files


def names(files: Iterable[tuple[messages.FileData, bytes]]) -> list[str]:
    return [described.name for described, _ in files]


class TestFromMachine:
    async def test_a_file_of_several_pieces(self, tmp_path: Path) -> None:
        data = os.urandom(3 * CHUNK_SIZE + 5)
        (tmp_path / "file").write_bytes(data)
        async with served(tmp_path) as (stub, _):
            kind, [(described, got)] = await copied_out(stub, "file")
        assert kind == FILE
        assert (described.name, described.size, described.is_dir) == ("file", len(data), False)
        assert not described.HasField("mode")
        assert got == data

    async def test_a_directory_comes_after_what_is_in_it(self, tmp_path: Path) -> None:
        deep = tmp_path / "tree/a/deep"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
        (tmp_path / "tree/b").touch(0o600)
        os.utime(deep, ns=(0, 1_000_000_000_000_000_005))
        deep.chmod(0o700)
        async with served(tmp_path) as (stub, _):
            kind, files = await copied_out(stub, "tree/", recursive=True, preserve=True)
        assert kind == DIRECTORY
        assert names(files) == ["tree/a/deep/file", "tree/a/deep", "tree/a", "tree/b", "tree"]
        described = files[1][0]
        assert (described.is_dir, described.mode) == (True, 0o700 | 1 << 31)
        assert described.mod_time.ToNanoseconds() == 1_000_000_000_000_000_005
        assert files[3][0].mode == 0o600

    async def test_several_files(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1")
        (tmp_path / "b").write_text("2")
        async with served(tmp_path) as (stub, _):
            kind, files = await copied_out(stub, "a", str(tmp_path / "b"))
        assert kind == MULTIPLE
        assert names(files) == ["a", "b"]

    async def test_links_do_not_lead_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        tree = tmp_path / "tree"
        tree.mkdir()
        (tmp_path / "secret").write_text("secret")
        (tree / "plain").write_text("plain")
        (tree / "inside").symlink_to("plain")
        (tree / "out").symlink_to("../secret")
        (tree / "round").symlink_to(".")
        (tree / "nowhere").symlink_to("nothing")
        os.mkfifo(tree / "pipe")
        async with served(tmp_path) as (stub, _):
            _, files = await copied_out(stub, "tree", recursive=True)
        assert names(files) == ["tree/inside", "tree/plain", "tree"]
        assert files[0][1] == b"plain"
        assert "skipped 4 entries" in caplog.text
        assert "tree/out" in caplog.text

    async def test_a_link_that_is_asked_for_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "tree").mkdir()
        (tmp_path / "link").symlink_to("tree")
        async with served(tmp_path) as (stub, _):
            kind, files = await copied_out(stub, "link", recursive=True)
        assert kind == DIRECTORY
        assert names(files) == ["link"]

    @pytest.mark.parametrize(
        ("paths", "status", "words"),
        [
            (["tree"], Status.INVALID_ARGUMENT, "file is a directory but copy recursion not used"),
            (["nothing"], Status.NOT_FOUND, "No such file or directory"),
            (["pipe"], Status.FAILED_PRECONDITION, "it is neither a file nor a directory"),
            ([], Status.INVALID_ARGUMENT, "no files provided to copy"),
            ([""], Status.INVALID_ARGUMENT, "one of the paths is empty"),
        ],
        ids=["directory", "nothing", "pipe", "none", "empty"],
    )
    async def test_what_cannot_be_copied_is_told(
        self, tmp_path: Path, paths: list[str], status: Status, words: str
    ) -> None:
        (tmp_path / "tree").mkdir()
        os.mkfifo(tmp_path / "pipe")
        async with served(tmp_path) as (stub, _):
            with refused() as error:
                await copied_out(stub, *paths)
        assert error.status is status
        assert words in error.words

    async def test_a_client_that_goes_closes_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(bytes(64 * CHUNK_SIZE))
        async with served(tmp_path) as (stub, _), stub.CopyFilesFromMachine.open() as stream:
            await stream.send_message(
                messages.CopyFilesFromMachineRequest(
                    metadata=messages.CopyFilesFromMachineRequestMetadata(name="sh", paths=["file"])
                )
            )
            await stream.recv_message()
            await stream.recv_message()
            await stream.cancel()

    async def test_the_home_of_the_server_has_a_name(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "home"
        home.mkdir()
        (home / "file").write_text("x")
        monkeypatch.setenv("COGWORK_HOME", str(home))
        async with served(tmp_path) as (stub, _):
            _, files = await copied_out(stub, "$VIAM_HOME/file")
        assert names(files) == ["file"]
