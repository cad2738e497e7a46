"""The shell service over real gRPC, called by the generated stub."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import AsyncIterator, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from grpclib.const import Status
from tests.support.machine.served import CHANNELS, _channel, refused
from tests.support.waiting import wait_until, wait_until_stable

from cogwork.graph.name import Api, ResourceName
from cogwork.resource.messages.structs import to_struct
from cogwork.resource.sdk import clean_import as sdk
from cogwork.resource.services.shell import shell_methods
from cogwork.wire.table.handlers import HandlerTable
from cogwork.wire.transports.grpc import grpc_server

assert sdk.VERSION  # it comes before anything else of the SDK
from viam.gen.common.v1 import common_pb2 as common  # noqa: E402
from viam.gen.service.shell.v1 import shell_pb2 as messages  # noqa: E402
from viam.gen.service.shell.v1.shell_grpc import ShellServiceStub  # noqa: E402

from cogwork.drivers.shell.attributes import BuiltinShellAttributes  # noqa: E402
from cogwork.drivers.shell.builtin import BuiltinShell, NoShell, RefusedShell  # noqa: E402
from cogwork.drivers.shell.file_copy import CHUNK_SIZE  # noqa: E402

API = Api.parse("rdk:service:shell")
NAME = ResourceName.from_short(API, "sh")
DEADLINE = 60.0
FILE = messages.COPY_FILES_SOURCE_TYPE_SINGLE_FILE
DIRECTORY = messages.COPY_FILES_SOURCE_TYPE_SINGLE_DIRECTORY
MULTIPLE = messages.COPY_FILES_SOURCE_TYPE_MULTIPLE_FILES


@pytest.fixture(autouse=True)
def hide_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the prompt, so that the shell's output starts at a line."""
    monkeypatch.setenv("PS1", "")


@pytest.fixture(params=CHANNELS)
async def stub(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ShellServiceStub]:
    """Return a stub of a shell service whose shells start in `tmp_path`."""
    async with serve_shell(tmp_path, request.param) as (made, _):
        yield made


@contextlib.asynccontextmanager
async def serve_shell(directory: Path, by: str = "ours") -> AsyncIterator[tuple[Any, BuiltinShell]]:
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


def input_message(text: str = "", **extra: Any) -> messages.ShellRequest:
    return messages.ShellRequest(name="sh", data_in=text, extra=to_struct(extra) if extra else None)


async def read_until(stream: Any, wanted: str) -> str:
    """Return all output up to and including the wanted text."""
    seen = ""
    while wanted not in seen:
        reply = await stream.recv_message()
        assert reply is not None, f"the shell ended without {wanted!r}: {seen}"
        assert not reply.eof, f"the shell ended without {wanted!r}: {seen}"
        seen += str(reply.data_out)
    return seen


async def read_to_end(stream: Any) -> str:
    """Return the output up to the end of the shell, which must be announced."""
    seen = ""
    async for reply in stream:
        seen += str(reply.data_out)
        if reply.eof:
            return seen
    raise AssertionError(f"the end of the shell was not told: {seen}")


async def wait_until_gone(pid: int) -> None:
    """Init may take a while to reap orphans."""
    await wait_until(lambda: not psutil.pid_exists(pid) or is_zombie(pid))


def is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class TestShell:
    async def test_shell_runs_in_a_terminal_with_job_control(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(input_message())
            await stream.send_message(input_message("tty; echo $TERM; set -o | grep monitor\n"))
            seen = await read_until(stream, "\nmonitor")
            assert "/dev/pts/" in seen
            assert "xterm-256color" in seen
            assert "access tty" not in seen
            await stream.send_message(input_message("exit\n"), end=True)
            await read_to_end(stream)

    async def test_shell_starts_in_the_configured_directory(
        self, stub: ShellServiceStub, tmp_path: Path
    ) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(input_message("pwd; exit\n"))
            assert str(tmp_path) in await read_to_end(stream)
            await stream.end()

    async def test_end_of_the_shell_follows_all_its_output(self) -> None:
        async with serve_shell(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(input_message("seq 100000; exit\n"))
            seen = await read_to_end(stream)
            assert "\r\n100000\r\n" in seen
            assert await stream.recv_message() is None

    async def test_end_of_input_ends_the_shell(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(input_message("echo so long\n"), end=True)
            assert "\nso long" in await read_to_end(stream)

    async def test_window_change_messages_set_the_terminal_size(
        self, stub: ShellServiceStub
    ) -> None:
        async with stub.Shell.open() as stream:
            sizes = [{"message": "window-change", "cols": 101, "rows": 42}]
            await stream.send_message(input_message("", messages=sizes))
            await stream.send_message(input_message("stty size\n"))
            await read_until(stream, "42 101")
            await stream.send_message(input_message("", message="window-change", cols=77, rows=33))
            await stream.send_message(input_message("stty size\n"))
            await read_until(stream, "33 77")
            await stream.end()
            await read_to_end(stream)

    async def test_invalid_window_size_is_refused(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """This also holds while the prompt is being sent."""
        monkeypatch.setenv("PS1", "> ")
        async with serve_shell(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(
                input_message("", message="window-change", cols="wide", rows=1)
            )
            with refused() as error:
                await read_to_end(stream)
        assert error.status is Status.INVALID_ARGUMENT
        assert error.words == '"cols" of window-change must be a number from 0 to 65535'

    async def test_ctrl_c_interrupts_the_running_command(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(input_message("sh -c 'echo ready; exec sleep 1000'\n"))
            await read_until(stream, "\nready")
            await stream.send_message(input_message("\x03"))
            await stream.send_message(input_message("echo status $?\n"))
            await read_until(stream, "status 130")
            await stream.end()
            await read_to_end(stream)

    async def test_output_that_is_not_utf8_is_replaced(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(
                input_message("printf 'a\\377b\\303\\251\\n'; exit\n"), end=True
            )
            assert "a\ufffdbé" in await read_to_end(stream)

    async def test_background_process_does_not_delay_the_end(self, stub: ShellServiceStub) -> None:
        async with stub.Shell.open() as stream:
            await stream.send_message(
                input_message("(trap '' HUP; exec sleep 1)& echo =$!=; exit\n")
            )
            seen = await read_to_end(stream)
            await stream.end()
        pid = int(seen.split("\n=")[1].split("=")[0])
        await wait_until_gone(pid)

    async def test_slow_reader_blocks_the_writing_process(self) -> None:
        async with serve_shell(Path("/")) as (stub, _), stub.Shell.open() as stream:
            await stream.send_message(input_message("echo =$$=; yes 0123456789 \n"))
            pid = int((await read_until(stream, "\n0123")).split("\n=")[1].split("=")[0])
            (yes,) = psutil.Process(pid).children()
            await wait_until_stable(yes.cpu_times, 0.3)
            assert yes.status() == psutil.STATUS_SLEEPING
            await stream.cancel()
            await wait_until_gone(pid)

    @pytest.mark.parametrize("stubborn", [False, True], ids=["meek", "stubborn"])
    async def test_cancelled_call_ends_all_started_processes(
        self, stub: ShellServiceStub, stubborn: bool
    ) -> None:
        trap = "trap '' HUP TERM; " if stubborn else ""
        async with stub.Shell.open() as stream:
            await stream.send_message(
                input_message(f"{trap}sh -c '{trap}echo =$$=; while :; do sleep 1; done'\n")
            )
            seen = await read_until(stream, "=\r\n")
            pid = int(seen.split("\n=")[1].split("=")[0])
            leader = psutil.Process(pid).ppid()
            await stream.cancel()
        await wait_until_gone(pid)
        await wait_until_gone(leader)

    @pytest.mark.parametrize("leaving", ["", "exit\n"], ids=["cut off", "left"])
    @pytest.mark.parametrize("stubborn", [False, True], ids=["meek", "stubborn"])
    async def test_background_jobs_end_with_the_call(
        self, stub: ShellServiceStub, stubborn: bool, leaving: str
    ) -> None:
        """Jobs of an interactive shell have their own process groups."""
        trap = "trap '' HUP; " if stubborn else ""
        async with stub.Shell.open() as stream:
            await stream.send_message(input_message(f"({trap}exec sleep 7777)& echo =$!=; :\n"))
            pid = int((await read_until(stream, "=\r\n")).split("\n=")[1].split("=")[0])
            if leaving:
                await stream.send_message(input_message(leaving), end=True)
                await read_to_end(stream)
            else:
                await stream.cancel()
        await wait_until_gone(pid)

    async def test_close_ends_the_shells(self) -> None:
        async with serve_shell(Path("/")) as (stub, shell), stub.Shell.open() as stream:
            await stream.send_message(input_message("echo ready\n"))
            await read_until(stream, "\nready")
            assert (await shell.get_status())["open"] == 1
            await shell.close()
            await read_to_end(stream)
            assert (await shell.get_status())["open"] == 0


class TestConstruction:
    @pytest.mark.parametrize(
        ("attributes", "words"),
        [
            ({"shell": "/no/such/shell"}, '"/no/such/shell" is not an executable program'),
            ({"directory": "/no/such/place"}, "/no/such/place is not a directory"),
        ],
        ids=["shell", "directory"],
    )
    async def test_missing_shell_and_directory_are_refused(
        self, attributes: Any, words: str
    ) -> None:
        with pytest.raises(NoShell, match=words):
            await BuiltinShell.new(NAME, BuiltinShellAttributes(**attributes), {})

    async def test_shell_is_refused_in_an_untrusted_environment(self) -> None:
        with pytest.raises(
            NoShell, match="shells are disabled because the server was started with -untr"
        ):
            await RefusedShell.new(NAME, BuiltinShellAttributes(), {})


async def test_do_command_returns_the_home_directory(
    stub: ShellServiceStub, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path))
    reply = await stub.DoCommand(common.DoCommandRequest(name="sh"))
    assert dict(reply.result) == dict.fromkeys(("VIAM_HOME", "viam_home"), str(tmp_path))


async def test_status_of_the_shell_service(stub: ShellServiceStub, tmp_path: Path) -> None:
    status = (await stub.GetStatus(common.GetStatusRequest(name="sh"))).result
    assert dict(status) == {
        "shell": "/bin/sh",
        "directory": str(tmp_path),
        "open": 0.0,
        "copies": 0.0,
    }


def copy_request(
    destination: str, kind: Any = FILE, preserve: bool = False
) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(
        metadata=messages.CopyFilesToMachineRequestMetadata(
            name="sh", source_type=kind, destination=destination, preserve=preserve
        )
    )


def chunk(name: str = "", data: bytes = b"", **fields: Any) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(
        file_data=messages.FileData(name=name, data=data, size=len(data), **fields)
    )


def end_of_file(**fields: Any) -> messages.CopyFilesToMachineRequest:
    return messages.CopyFilesToMachineRequest(file_data=messages.FileData(eof=True, **fields))


async def copy_to_machine(
    stub: ShellServiceStub, *requests: messages.CopyFilesToMachineRequest
) -> int:
    """Send the files and return how many were acknowledged."""
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
    async def test_replaced_file_keeps_its_permissions(
        self, stub: ShellServiceStub, tmp_path: Path, rights: int
    ) -> None:
        there = tmp_path / "there"
        there.write_text("before")
        there.chmod(rights)
        assert (
            await copy_to_machine(stub, copy_request("there"), chunk("x", b"after"), end_of_file())
            == 1
        )
        assert (there.read_text(), stat.S_IMODE(there.stat().st_mode)) == ("after", rights)
        assert (
            await copy_to_machine(stub, copy_request("new"), chunk("x", b"new"), end_of_file()) == 1
        )
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
        await copy_to_machine(
            stub, copy_request("there"), chunk("x", b"last", mode=0o644), end_of_file()
        )
        assert stat.S_IMODE(there.stat().st_mode) == 0o644

    async def test_file_in_several_chunks_is_written(
        self, stub: ShellServiceStub, tmp_path: Path
    ) -> None:
        data = os.urandom(3 * CHUNK_SIZE + 5)
        parts = [data[:CHUNK_SIZE], data[CHUNK_SIZE:]]
        sent = [copy_request("there"), chunk("here", parts[0]), chunk("", parts[1]), end_of_file()]
        assert await copy_to_machine(stub, *sent) == 1
        assert (tmp_path / "there").read_bytes() == data
        assert os.listdir(tmp_path) == ["there"]  # noqa: PTH208

    async def test_directory_is_written_with_permissions_and_times(
        self, stub: ShellServiceStub, tmp_path: Path
    ) -> None:
        moment = {"seconds": 1_000_000_000, "nanos": 5}
        sent = [
            copy_request("", DIRECTORY, preserve=True),
            chunk("tree/deep/file", b"x", mode=0o640, mod_time=moment),
            end_of_file(),
            end_of_file(name="tree/deep", is_dir=True, mode=0o700 | 1 << 31, mod_time=moment),
            end_of_file(name="tree/empty file", mode=0o4755, mod_time=moment),
            end_of_file(name="tree", is_dir=True, mode=0o711 | 1 << 31, mod_time=moment),
        ]
        assert await copy_to_machine(stub, *sent) == 4
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

    async def test_directory_can_be_renamed(self, stub: ShellServiceStub, tmp_path: Path) -> None:
        sent = [copy_request("other", DIRECTORY), chunk("tree/file", b"x"), end_of_file()]
        assert await copy_to_machine(stub, *sent) == 1
        assert (tmp_path / "other/file").read_bytes() == b"x"

    async def test_existing_file_is_replaced_only_by_a_complete_one(self, tmp_path: Path) -> None:
        target = tmp_path / "file"
        target.write_text("old")
        async with serve_shell(tmp_path) as (stub, _):
            async with stub.CopyFilesToMachine.open() as stream:
                await stream.send_message(copy_request("file"))
                await stream.send_message(chunk("new", b"half of"))
                await wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
                assert target.read_text() == "old"
                await stream.cancel()
            await wait_until(lambda: list(tmp_path.iterdir()) == [target])
            assert (
                await copy_to_machine(
                    stub, copy_request("file"), chunk("new", b"whole"), end_of_file()
                )
                == 1
            )
        assert target.read_text() == "whole"

    @pytest.mark.parametrize(
        "name", ["../out", "tree/../../out", "/out", "tree/..", "", "link/out", "link"]
    )
    async def test_nothing_is_written_outside_the_destination(
        self, tmp_path: Path, name: str
    ) -> None:
        inside, outside = tmp_path / "inside", tmp_path / "outside"
        inside.mkdir()
        outside.mkdir()
        (inside / "link").symlink_to(outside)
        async with serve_shell(inside) as (stub, _):
            with refused() as error:
                await copy_to_machine(
                    stub, copy_request("", MULTIPLE), chunk(name, b"x"), end_of_file()
                )
        assert list(outside.iterdir()) == []
        assert sorted(each.name for each in tmp_path.iterdir()) == ["inside", "outside"]
        assert error.status in (Status.INVALID_ARGUMENT, Status.FAILED_PRECONDITION)

    async def test_link_is_replaced_by_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "secret").write_text("secret")
        (tmp_path / "link").symlink_to("secret")
        async with serve_shell(tmp_path) as (stub, _):
            await copy_to_machine(stub, copy_request("", FILE), chunk("link", b"x"), end_of_file())
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
    async def test_invalid_destinations_are_refused(
        self, tmp_path: Path, destination: str, kind: Any, status: Status, words: str
    ) -> None:
        (tmp_path / "file").touch()
        async with serve_shell(tmp_path) as (stub, _):
            with refused() as error:
                await copy_to_machine(stub, copy_request(destination, kind))
        assert error.status is status
        assert words in error.words

    async def test_second_file_before_the_end_of_the_first_is_refused(self, tmp_path: Path) -> None:
        async with serve_shell(tmp_path) as (stub, _):
            with refused() as error:
                await copy_to_machine(
                    stub,
                    copy_request("", MULTIPLE),
                    chunk("a", b"1"),
                    chunk("b", b"2"),
                    end_of_file(),
                )
            await wait_until(lambda: list(tmp_path.iterdir()) == [])
        assert error.words == 'the client sent "b" before "a" was complete'


async def copy_from_machine(
    stub: ShellServiceStub, *paths: str, recursive: bool = False, preserve: bool = False
) -> tuple[Any, list[tuple[messages.FileData, bytes]]]:
    """Return the source type, and every file with its content."""
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


def file_names(files: Iterable[tuple[messages.FileData, bytes]]) -> list[str]:
    return [described.name for described, _ in files]


class TestFromMachine:
    async def test_file_in_several_chunks_is_sent(self, tmp_path: Path) -> None:
        data = os.urandom(3 * CHUNK_SIZE + 5)
        (tmp_path / "file").write_bytes(data)
        async with serve_shell(tmp_path) as (stub, _):
            kind, [(described, got)] = await copy_from_machine(stub, "file")
        assert kind == FILE
        assert (described.name, described.size, described.is_dir) == ("file", len(data), False)
        assert not described.HasField("mode")
        assert got == data

    async def test_directory_follows_its_content(self, tmp_path: Path) -> None:
        deep = tmp_path / "tree/a/deep"
        deep.mkdir(parents=True)
        (deep / "file").write_text("x")
        (tmp_path / "tree/b").touch(0o600)
        os.utime(deep, ns=(0, 1_000_000_000_000_000_005))
        deep.chmod(0o700)
        async with serve_shell(tmp_path) as (stub, _):
            kind, files = await copy_from_machine(stub, "tree/", recursive=True, preserve=True)
        assert kind == DIRECTORY
        assert file_names(files) == ["tree/a/deep/file", "tree/a/deep", "tree/a", "tree/b", "tree"]
        described = files[1][0]
        assert (described.is_dir, described.mode) == (True, 0o700 | 1 << 31)
        assert described.mod_time.ToNanoseconds() == 1_000_000_000_000_000_005
        assert files[3][0].mode == 0o600

    async def test_several_files_are_sent(self, tmp_path: Path) -> None:
        (tmp_path / "a").write_text("1")
        (tmp_path / "b").write_text("2")
        async with serve_shell(tmp_path) as (stub, _):
            kind, files = await copy_from_machine(stub, "a", str(tmp_path / "b"))
        assert kind == MULTIPLE
        assert file_names(files) == ["a", "b"]

    async def test_links_out_of_the_directory_are_skipped(
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
        async with serve_shell(tmp_path) as (stub, _):
            _, files = await copy_from_machine(stub, "tree", recursive=True)
        assert file_names(files) == ["tree/inside", "tree/plain", "tree"]
        assert files[0][1] == b"plain"
        assert "skipped at least 4 entries" in caplog.text
        assert "tree/out" in caplog.text

    async def test_requested_link_is_followed(self, tmp_path: Path) -> None:
        (tmp_path / "tree").mkdir()
        (tmp_path / "link").symlink_to("tree")
        async with serve_shell(tmp_path) as (stub, _):
            kind, files = await copy_from_machine(stub, "link", recursive=True)
        assert kind == DIRECTORY
        assert file_names(files) == ["link"]

    @pytest.mark.parametrize(
        ("paths", "status", "words"),
        [
            (["tree"], Status.INVALID_ARGUMENT, "tree is a directory; copy it recursively"),
            (["nothing"], Status.NOT_FOUND, "No such file or directory"),
            (["pipe"], Status.FAILED_PRECONDITION, "it is neither a file nor a directory"),
            ([], Status.INVALID_ARGUMENT, "there are no files to copy"),
            ([""], Status.INVALID_ARGUMENT, "one of the paths is empty"),
        ],
        ids=["directory", "nothing", "pipe", "none", "empty"],
    )
    async def test_invalid_paths_are_refused(
        self, tmp_path: Path, paths: list[str], status: Status, words: str
    ) -> None:
        (tmp_path / "tree").mkdir()
        os.mkfifo(tmp_path / "pipe")
        async with serve_shell(tmp_path) as (stub, _):
            with refused() as error:
                await copy_from_machine(stub, *paths)
        assert error.status is status
        assert words in error.words

    async def test_cancelled_call_closes_the_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_bytes(bytes(64 * CHUNK_SIZE))
        async with serve_shell(tmp_path) as (stub, _), stub.CopyFilesFromMachine.open() as stream:
            await stream.send_message(
                messages.CopyFilesFromMachineRequest(
                    metadata=messages.CopyFilesFromMachineRequestMetadata(name="sh", paths=["file"])
                )
            )
            await stream.recv_message()
            await stream.recv_message()
            await stream.cancel()

    async def test_viam_home_variable_is_expanded(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home = tmp_path / "home"
        home.mkdir()
        (home / "file").write_text("x")
        monkeypatch.setenv("COGWORK_HOME", str(home))
        async with serve_shell(tmp_path) as (stub, _):
            _, files = await copy_from_machine(stub, "$VIAM_HOME/file")
        assert file_names(files) == ["file"]
