"""The executable as users, supervisors and scripts see it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import pytest_asyncio
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from tests.support.machine.running import (
    DEADLINE,
    Server,
    http_get,
    plug_in,
    run_server,
    save,
    start_server,
    with_free_port,
)
from tests.support.sizes import FULL, limit
from tests.support.waiting import wait_until

from cogwork import __version__

SENSOR = {"api": "rdk:component:sensor", "model": "fake"}

# Addresses from a documentation network, a different part of it for each test run.
_FIRST = os.getpid() % 64 * 4
HERE, THERE = f"198.51.100.{_FIRST + 1}", f"198.51.100.{_FIRST + 2}"

PLUG_IN = """
import asyncio, logging, threading, time
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model

log = logging.getLogger("acme")


class Settings(Attributes):
    hangs_in_close: bool = False
    blocks_a_thread: bool = False
    blocks_the_loop: bool = False
    crashes_when_checked: bool = False

    def model_post_init(self, context):
        if self.crashes_when_checked:
            raise KeyError("a slip of the plug-in's author")


class Thing:
    def __init__(self, name, settings):
        self.name, self.settings = name, settings

    async def close(self):
        log.info("closing %s", self.name.short)
        if self.settings.blocks_the_loop:
            time.sleep(3600)
        if self.settings.hangs_in_close:
            await asyncio.Event().wait()
        log.info("closed %s", self.name.short)


async def new(name, settings, dependencies):
    if settings.blocks_a_thread:
        asyncio.get_running_loop().run_in_executor(None, time.sleep, 3600)
    return Thing(name, settings)


THING = Model(Api.parse("rdk:component:generic"), ModelName.parse("acme:test:thing"), Settings, new)
"""


def sensor(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, **SENSOR, "attributes": attributes}


def thing(name: str, needs: str = "", **attributes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "api": "rdk:component:generic",
        "model": "acme:test:thing",
        "attributes": attributes,
        "depends_on": needs.split(),
    }


@pytest.fixture
def acme(tmp_path: Path) -> dict[str, str]:
    return plug_in(tmp_path / "plugged-in", PLUG_IN, "thing = {module}:THING")


@pytest.fixture
def sockets() -> Iterator[Path]:
    """Create a temporary directory for a server, with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="cw") as directory:
        yield Path(directory)


on_shared_loop = pytest.mark.asyncio(loop_scope="module")


class TestCommandLine:
    @pytest.mark.parametrize(
        ("arguments", "code"),
        [([], 2), (["-confg", "x"], 2), (["machine.json"], 2), (["-h"], 0), (["-version"], 0)],
    )
    async def test_exit_codes_without_a_machine(self, arguments: list[str], code: int) -> None:
        async with start_server(arguments) as server:
            assert await server.exit_code() == code
        usage = "usage: cogwork-server -config FILE [options]"
        if code == 2:
            assert server.out.lines == []
            error, hint = server.err.lines
            assert error.startswith("cogwork-server: ")
            assert hint == "for help, run: cogwork-server -h"
        else:
            assert server.err.lines == []
            assert server.out.lines[0] in (usage, f"cogwork-server {__version__}")

    async def test_port_option_takes_precedence_over_the_file(self, tmp_path: Path) -> None:
        file = tmp_path / "machine.json"
        save(file, {"network": {"bind_address": "localhost:1"}})
        home = {"COGWORK_HOME": str(tmp_path / "home")}
        async with start_server(["-config", str(file), "-port", "0"], home) as server:
            await server.wait_until_serving()
            assert (await server.get("/status.json"))[0] == 200
            so_far = len(server.out.lines)
            save(file, {"network": {"bind_address": "localhost:2"}})
            await server.out.wait_for(r"configuration \w+ applied", since=so_far)
            assert (await server.get("/status.json"))[0] == 200
            server.signal(signal.SIGTERM)
            assert await server.exit_code() == 0

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    async def test_signal_stops_the_server_with_exit_code_0(
        self, tmp_path: Path, number: signal.Signals
    ) -> None:
        async with run_server({"components": [sensor("s")]}, tmp_path) as server:
            await server.wait_for_status(state="running")
            server.signal(number)
            assert await server.exit_code() == 0
        assert f"stopping: {number.name}" in server.out.text
        assert server.err.lines == []

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    async def test_signal_during_startup_stops_the_server(
        self, tmp_path: Path, number: signal.Signals
    ) -> None:
        async with run_server({}, tmp_path, serves=False) as server:
            await wait_for_library(server, "cygrpc")
            server.signal(number)
        assert server.err.lines == []

    async def test_missing_config_file_is_an_error(self, tmp_path: Path) -> None:
        missing = tmp_path / "none.json"
        async with start_server(
            ["-config", str(missing)], {"COGWORK_HOME": str(tmp_path)}
        ) as server:
            assert await server.exit_code() == 1
        error, stopping = server.out.text.splitlines()
        assert f"{missing} does not exist; check the path given with -config, or" in error
        assert "stopping: startup failed" in stopping
        assert server.err.lines == []

    async def test_port_in_use_is_an_error(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            address = f"127.0.0.1:{other.getsockname()[1]}"
            config = {"network": {"bind_address": address}}
            async with run_server(config, tmp_path, exits=1, serves=False) as server:
                assert await server.exit_code() == 1
        assert (
            f"cannot listen on {address}: the port is in use by another program" in server.out.text
        )
        assert server.err.lines == []

    async def test_undecodable_file_name_is_reported_escaped(self, tmp_path: Path) -> None:
        missing = os.fsencode(tmp_path) + b"/\xff.json"
        async with start_server(
            ["-config", os.fsdecode(missing)], {"COGWORK_HOME": str(tmp_path)}
        ) as server:
            assert await server.exit_code() == 1
        assert r"\udcff.json does not exist; check the path given with -config" in server.out.text


class TestDumpResources:
    async def dump(self, path: Path, environment: dict[str, str] | None = None) -> Server:
        async with start_server(["-dump-resources", str(path)], environment) as server:
            await server.exit_code()
        return server

    async def test_dump_lists_every_model_with_its_schema(
        self, tmp_path: Path, acme: dict[str, str]
    ) -> None:
        path = tmp_path / "resources.json"
        server = await self.dump(path, acme)
        assert server.process.returncode == 0, server.output
        text = path.read_text()
        listed = json.loads(text)
        assert "\n\t{" in text
        assert [set(each) for each in listed] == [{"api", "model", "attribute_schema"}] * len(
            listed
        )
        keys = [(each["api"], each["model"]) for each in listed]
        assert keys == sorted(keys)
        assert ("rdk:component:sensor", "rdk:builtin:fake") in keys
        assert ("rdk:component:generic", "acme:test:thing") in keys
        for each in listed:
            Draft202012Validator.check_schema(each["attribute_schema"])
        schemas = {key: each["attribute_schema"] for key, each in zip(keys, listed, strict=True)}
        fake = Draft202012Validator(schemas["rdk:component:motor", "rdk:builtin:fake"])
        fake.validate({"max_rpm": 60})
        assert not fake.is_valid({"max_rpm": "fast"})

    async def test_unwritable_path_is_reported(self, tmp_path: Path) -> None:
        server = await self.dump(tmp_path)
        assert server.process.returncode == 1
        assert server.err.lines == [f"cogwork-server: cannot write {tmp_path}: Is a directory"]

    async def test_special_file_is_written_and_not_replaced(self, tmp_path: Path) -> None:
        """`/dev/stdout` is such a file."""
        device = tmp_path / "stdout"
        device.symlink_to("/proc/self/fd/1")
        server = await self.dump(device)
        assert server.process.returncode == 0, server.output
        assert json.loads(server.out.text)[0]["api"] == "rdk:component:arm"
        assert device.is_symlink()

    async def test_link_to_a_file_is_kept(self, tmp_path: Path) -> None:
        file, link = tmp_path / "file", tmp_path / "link"
        file.write_text("old")
        link.symlink_to(file)
        await self.dump(link)
        assert link.is_symlink()
        assert json.loads(file.read_text())


class TestStarting:
    async def test_server_answers_before_resources_are_built(self, tmp_path: Path) -> None:
        slow = {"components": [sensor("slow", start={"delay": "1m"}), sensor("quick")]}
        async with run_server(slow, tmp_path) as server:
            status = await server.status()
            assert status["state"] == "initializing"
            assert status["revision"] == ""
            states = {each["name"]: each["state"] for each in status["resources"]}
            assert states["rdk:component:sensor/slow"] in ("configuring", "unconfigured")
            assert "initializing · " in (await server.get("/status"))[1]
            verdict = json.loads((await server.get("/restart_status"))[1])
            assert verdict["restart_allowed"]  # nothing that ran before is being replaced
            server.save(with_free_port({"components": [sensor("slow"), sensor("quick")]}))
            status = await server.wait_for_status(state="running")
            assert {each["state"] for each in status["resources"]} == {"ready"}
            assert status["revision"]

    @pytest.mark.timeout(60, func_only=True)
    async def test_invalid_config_is_reported_until_it_is_fixed(
        self, tmp_path: Path, default_port: int
    ) -> None:
        if is_port_in_use(default_port):
            pytest.skip(f"somebody else listens on {default_port}")
        async with run_server('{"components": [', tmp_path) as server:
            assert server.port == default_port
            assert re.search(r"machine\.json:1:16 +error", server.out.text)
            assert "there is no earlier configuration to run: fix" in server.out.text
            status, page = await server.get("/status")
            assert status == 200
            assert "initializing" in page
            server.save({"components": [sensor("s")]})
            await server.wait_for_status(state="running")
            assert "rdk:component:sensor" in (await server.get("/status"))[1]
            server.save("{")
            await server.out.wait_for(
                "the changed configuration is refused; keeping the current configuration"
            )
            assert (await server.status())["state"] == "running"

    async def test_last_good_config_runs_when_the_file_is_broken(self, tmp_path: Path) -> None:
        async with run_server({"components": [sensor("old")]}, tmp_path) as server:
            await wait_for_last_good_config(tmp_path)
        for broken in ("{", '{"network": {"bind_address": 5}}'):
            async with run_server(broken, tmp_path) as server:
                assert "RUNNING THE LAST GOOD CONFIGURATION" in server.out.text
                status = await server.wait_for_status(state="running")
                assert resource_names(status) == ["old"]
                server.save(with_free_port({"components": [sensor("old"), sensor("new")]}))
                await server.out.wait_for("sensor/new is ready")
                server.save(with_free_port({"components": [sensor("old")]}))
                await server.out.wait_for("removing .*sensor/new")
                await wait_for_last_good_config(tmp_path, without="new")

    async def test_last_good_config_runs_when_the_file_is_missing(self, tmp_path: Path) -> None:
        async with run_server({"components": [sensor("old")]}, tmp_path) as server:
            await wait_for_last_good_config(tmp_path)
            server.file.unlink()
            await server.out.wait_for(
                "the changed configuration is refused; keeping the current configuration"
            )
            assert resource_names(await server.status()) == ["old"]
        around = {"COGWORK_HOME": str(tmp_path / "home")}
        async with start_server(["-config", str(server.file)], around) as server:
            await server.wait_until_serving()
            assert resource_names(await server.wait_for_status(state="running")) == ["old"]
            server.signal(signal.SIGTERM)
            assert await server.exit_code() == 0

    async def test_error_in_a_plugin_is_reported_and_does_not_stop_the_server(
        self, tmp_path: Path, acme: dict[str, str]
    ) -> None:
        good = {"components": [sensor("s"), thing("t")]}
        async with run_server(good, tmp_path, environment=acme) as server:
            await server.wait_for_status(state="running")
            slip = {"components": [sensor("s"), thing("t", crashes_when_checked=True)]}
            server.save(with_free_port(slip))
            await server.out.wait_for("generic/t is unhealthy: validation failed with KeyError")
            assert resource_names(await server.status()) == ["s", "t"]
            server.save(with_free_port({"components": [sensor("s"), sensor("later")]}))
            await server.out.wait_for("sensor/later is ready")


class TestStopping:
    async def test_dependents_close_before_their_dependencies(
        self, tmp_path: Path, acme: dict[str, str]
    ) -> None:
        config = {"components": [thing("a"), thing("c", "b"), thing("b", "a")]}
        async with run_server(config, tmp_path, environment=acme) as server:
            await server.wait_for_status(state="running")
        closed = re.findall(r"\tclosed (\w)", server.out.text)
        assert closed == ["c", "b", "a"]

    @pytest.mark.parametrize("trouble", ["hangs_in_close", "blocks_the_loop"])
    async def test_second_signal_ends_the_server_at_once(
        self, tmp_path: Path, acme: dict[str, str], sockets: Path, trouble: str
    ) -> None:
        config = {"components": [thing("a", "", **{trouble: True})]}
        around = {**acme, "TMPDIR": str(sockets)}
        async with run_server(config, tmp_path, exits=1, environment=around) as server:
            await server.wait_for_status(state="running")
            server.signal(signal.SIGINT)
            await server.out.wait_for("closing a")
            assert await repeat_signal(server, signal.SIGINT) == 1
        assert "received SIGINT again; exiting immediately" in server.out.text
        assert list(sockets.iterdir()) == []

    async def test_blocked_thread_does_not_keep_the_process(
        self, tmp_path: Path, acme: dict[str, str]
    ) -> None:
        config = {"components": [thing("a", blocks_a_thread=True)]}
        async with run_server(config, tmp_path, exits=1, environment=acme) as server:
            await server.wait_for_status(state="running")
            server.signal(signal.SIGTERM)
            await server.out.wait_for("closed a")
            await server.exit_code(within=10)
        assert "Thread 0x" in server.err.text

    @pytest.mark.skipif(not FULL, reason="takes as long as a close may take: half a minute")
    async def test_resource_that_hangs_in_close_times_out(
        self, tmp_path: Path, acme: dict[str, str]
    ) -> None:
        config = {"components": [thing("a"), thing("b", "a", hangs_in_close=True), thing("c")]}
        async with run_server(config, tmp_path, environment=acme) as server:
            await server.wait_for_status(state="running")
            server.signal(signal.SIGTERM)
            await server.out.wait_for("closed c")
            assert await server.exit_code(within=50) == 0
        assert re.findall(r"\tclosed (\w)", server.out.text) == ["c", "a"]
        assert "generic/b: closing failed: closing timed out after 30s" in server.out.text

    async def test_open_connections_do_not_delay_the_stop(self, tmp_path: Path) -> None:
        async with run_server({}, tmp_path) as server:
            connections = [
                await asyncio.open_connection("localhost", server.port) for _ in range(20)
            ]
            for _, writer in connections[::2]:
                writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            server.signal(signal.SIGTERM)
            assert await server.exit_code(within=limit(5)) == 0
            for _, writer in connections:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    async def test_temporary_files_are_removed(self, tmp_path: Path, sockets: Path) -> None:
        async with run_server({}, tmp_path, environment={"TMPDIR": str(sockets)}):
            (private,) = sockets.iterdir()
            assert stat.S_IMODE(private.stat().st_mode) == 0o700
        assert list(sockets.iterdir()) == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Server]:
    """A server that goes on when its file changes."""
    directory = tmp_path_factory.mktemp("running")
    async with run_server({"components": [sensor("s")]}, directory) as running:
        await running.out.wait_for("applied in")
        yield running


class TestRunning:
    @on_shared_loop
    async def test_sigusr1_prints_the_stacks(self, server: Server) -> None:
        for _ in range(2):
            seen = len(server.out.lines)
            server.signal(signal.SIGUSR1)
            await server.out.wait_for(r"\ttask configuration:", since=seen)
            await server.out.wait_for(r"\ttask reconciler:", since=seen)
            await server.out.wait_for(r"\tthread MainThread:", since=seen)
        assert (await server.status())["state"] == "running"
        assert 'server/serve.py", line' in server.out.text

    async def test_changed_address_is_served_and_open_connections_stay(
        self, tmp_path: Path
    ) -> None:
        config = {"components": [sensor("s")]}
        async with run_server(config, tmp_path) as server:
            await server.wait_for_status(state="running")
            before = server.port
            reader, writer = await asyncio.open_connection("localhost", before)
            await request_status(reader, writer)
            moved = {**config, "network": {"bind_address": "127.0.0.1:0"}}
            server.save(moved)
            found = await server.out.wait_for(r"listening on 127\.0\.0\.1:(\d+)")
            server.url = f"http://127.0.0.1:{found[1]}"
            assert server.port != before
            assert (await server.get("/", "127.0.0.1"))[0] == 200
            with pytest.raises(OSError):
                await http_get("127.0.0.1", before, "/")
            await request_status(reader, writer)
            writer.close()
            await writer.wait_closed()

    @on_shared_loop
    async def test_unavailable_address_keeps_the_current_one(self, server: Server) -> None:
        config = {"components": [sensor("s")]}
        for host in ("192.0.2.1", "a..b", "x" * 64):
            since = len(server.out.lines)
            network = {"bind_address": f"{host}:80", "insecure_without_auth": True}
            server.save({**config, "network": network})
            await server.out.wait_for("still listening on localhost:0", since=since)
            await server.out.wait_for("applied in", since)
            assert (await server.status())["state"] == "running"

    @on_shared_loop
    async def test_pages_escape_text_and_report_the_restart_status(self, server: Server) -> None:
        config = {
            "components": [
                sensor("safe", readings={"idle": False, "<b>": 1}),
                sensor("dead", start={"error": "<script>alert('x')</script>"}),
            ],
            "maintenance": {
                "sensor_name": "rdk:component:sensor/safe",
                "maintenance_allowed_key": "idle",
            },
        }
        since = len(server.out.lines)
        server.save(with_free_port(config))
        await server.out.wait_for("applied in", since)
        status, page = await server.get("/status")
        assert status == 200
        assert "1 of 2 resources ready" in page
        assert "<script>" not in page
        assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in page
        assert json.loads((await server.get("/restart_status"))[1]) == {
            "restart_allowed": False,
            "reason": '"idle" of rdk:component:sensor/safe is false',
            "version": __version__,
            "does_not_handle_needs_restart": True,
            "module_server_tcp_addr": "",
        }
        status, page = await server.get("/nothing%20here")
        assert (status, page) == (404, "/nothing here not found; the control page is at /\n")


class TestOutput:
    """The reader of standard output may be slow, stuck or gone."""

    @contextlib.asynccontextmanager
    async def start_piped(self, directory: Path) -> AsyncIterator[tuple[Server, int]]:
        """Yield a server and the read end of its standard output, which is not read yet."""
        file = directory / "machine.json"
        save(file, with_free_port({"components": [sensor("s")]}))
        read, write = os.pipe()
        try:
            around = {"COGWORK_HOME": str(directory / "home")}
            async with start_server(["-config", str(file)], around, out=write) as server:
                server.file = file
                os.close(write)
                yield server, read
                server.signal(signal.SIGTERM)
                assert await server.exit_code() == 0, server.output
                assert server.err.lines == []
        finally:
            with contextlib.suppress(OSError):
                os.close(read)

    async def test_server_survives_a_reader_that_goes_away(self, tmp_path: Path) -> None:
        async with self.start_piped(tmp_path) as (server, read):
            await wait_for_port(server)
            os.close(read)
            await self.assert_survives(server)

    async def test_server_survives_without_a_reader(self, tmp_path: Path) -> None:
        async with self.start_piped(tmp_path) as (server, read):
            os.close(read)
            await wait_for_port(server)
            await self.assert_survives(server)

    async def test_server_survives_a_reader_that_does_not_read(self, tmp_path: Path) -> None:
        async with self.start_piped(tmp_path) as (server, _):
            await wait_for_port(server)
            # The log takes some hundred kilobytes; a pipe holds 64.
            noisy = {f"unknown-{number}": 0 for number in range(1500)}
            server.save(with_free_port({**noisy, "components": [sensor("noisy")]}))
            await wait_for_resource(server, "noisy")
            await self.assert_survives(server)

    async def assert_survives(self, server: Server) -> None:
        server.save(with_free_port({"components": [sensor("s"), sensor("another")]}))
        await wait_for_resource(server, "another")
        server.signal(signal.SIGUSR1)
        # The pages are still served, and the process still ends.
        assert (await server.get("/"))[0] == 200
        server.err.lines.clear()

    async def test_closed_standard_streams_are_replaced_by_dev_null(self, tmp_path: Path) -> None:
        file = tmp_path / "machine.json"
        save(file, with_free_port({"components": [sensor("s")]}))
        command = f'exec "$0" -m cogwork.server.main -config "{file}" <&- >&- 2>&-'
        server = await asyncio.create_subprocess_exec(
            *("sh", "-c", command, sys.executable),
            env={**os.environ, "COGWORK_HOME": str(tmp_path / "home")},
        )
        try:
            port = await find_listening_port(server.pid)
            assert (await http_get("localhost", port, "/"))[0] == 200
            for number in range(3):
                assert Path(f"/proc/{server.pid}/fd/{number}").resolve() == Path(os.devnull)
            server.terminate()
            assert await asyncio.wait_for(server.wait(), DEADLINE) == 0
        finally:
            if server.returncode is None:
                server.kill()
            await server.wait()


class TestRemoteClients:
    """A second network namespace, connected to this one."""

    @pytest.fixture
    def remote_network(self) -> Iterator[str]:
        name = f"cw{os.getpid()}"
        here, there = f"{name}a", f"{name}b"
        lines = (
            f"netns add {name}",
            f"link add {here} type veth peer name {there} netns {name}",
            f"addr add {HERE}/30 dev {here}",
            f"link set {here} up",
            f"-n {name} addr add {THERE}/30 dev {there}",
            f"-n {name} link set {there} up",
        )
        try:
            for line in lines:
                done = subprocess.run(["ip", *line.split()], capture_output=True, check=False)
                if done.returncode:
                    pytest.skip(f"no second network here: {done.stderr.decode().strip()}")
            yield name
        except FileNotFoundError:
            pytest.skip("there is no ip command here")
        finally:
            with contextlib.suppress(FileNotFoundError):
                for line in (f"link del {here}", f"netns del {name}"):
                    subprocess.run(["ip", *line.split()], capture_output=True, check=False)

    async def test_restart_status_is_refused_to_remote_clients(
        self, tmp_path: Path, remote_network: str
    ) -> None:
        config = {"network": {"bind_address": f"{HERE}:0", "insecure_without_auth": True}}
        async with run_server(config, tmp_path) as server:
            assert f"listening on {HERE}:0 without login" in server.out.text
            assert (await server.get("/restart_status", HERE))[0] == 200
            far = await asyncio.to_thread(self.request_from, remote_network, server.port)
        assert far == {"/": 200, "/restart_status": 403}

    def request_from(self, name: str, port: int) -> dict[str, int]:
        program = (
            "import http.client, json\n"
            "def ask(path):\n"
            f"    connection = http.client.HTTPConnection('{HERE}', {port}, timeout=60)\n"
            "    connection.request('GET', path)\n"
            "    return connection.getresponse().status\n"
            "print(json.dumps({path: ask(path) for path in ('/', '/restart_status')}))"
        )
        done = subprocess.run(
            ["ip", "netns", "exec", name, sys.executable, "-I", "-c", program],
            capture_output=True,
            text=True,
            timeout=DEADLINE,
            check=True,
        )
        answers: dict[str, int] = json.loads(done.stdout)
        return answers


def resource_names(status: Any) -> list[str]:
    return [each["name"].rpartition("/")[2] for each in status["resources"]]


async def request_status(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send one request over a connection that stays open."""
    writer.write(b"GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE)
    assert head.startswith(b"HTTP/1.1 200 ")
    length = re.search(rb"content-length: (\d+)", head)
    assert length is not None
    await asyncio.wait_for(reader.readexactly(int(length[1])), DEADLINE)


async def wait_for_port(server: Server) -> None:
    """Wait for a server whose output is not read."""
    server.url = f"http://localhost:{await find_listening_port(server.pid)}"


async def find_listening_port(pid: int) -> int:
    ports: set[int] = set()

    def find_ports() -> bool:
        for connection in psutil.Process(pid).net_connections("tcp"):
            if connection.status == psutil.CONN_LISTEN:
                ports.add(connection.laddr.port)
        return bool(ports)

    await until(find_ports)
    return ports.pop()


async def until(condition: Callable[[], bool]) -> None:
    await wait_until(condition, DEADLINE, every=0.002)


async def wait_for_resource(server: Server, name: str) -> None:
    async with asyncio.timeout(DEADLINE):
        while name not in resource_names(await server.status()):
            pass


async def wait_for_last_good_config(directory: Path, without: str = "nothing") -> None:
    """Wait until the last good configuration is on the disk."""
    await until(
        lambda: any(
            without not in file.read_text() for file in directory.glob("home/last-good/*.json")
        )
    )


async def repeat_signal(server: Server, number: signal.Signals) -> int:
    """Repeat the signal: Python misses one that comes just before it sleeps."""
    over = asyncio.ensure_future(server.exit_code(within=limit(3)))
    while not over.done():
        with contextlib.suppress(ProcessLookupError):
            server.signal(number)
        await asyncio.wait({over}, timeout=0.2)
    return over.result()


async def wait_for_library(server: Server, library: str) -> None:
    maps = Path(f"/proc/{server.pid}/maps")
    await until(lambda: library in maps.read_text())


def is_port_in_use(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
