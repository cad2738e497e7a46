"""`cogwork module run` as an author runs it, and its parts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import psutil
import pytest
from tests.interop.cli.test_demo import free_port
from tests.support.machine.commands import run_command
from tests.support.machine.running import DEADLINE, plug_in

from cogwork.cli.main import main
from cogwork.cli.module.dev_config import DevConfig
from cogwork.cli.module.project import ModuleProject, load_project
from cogwork.cli.module.run import _request_restart
from cogwork.cli.module.source_watcher import PollingWatcher
from cogwork.resource.sdk import clean_import as sdk

assert sdk.VERSION  # ahead of whatever else imports the SDK
from viam.gen.robot.v1 import robot_pb2 as robot  # noqa: E402


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COGWORK_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def demo(tmp_path: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    folder = tmp_path / "demo"
    assert main(["module", "new", "demo", "--directory", str(folder)]) == 0
    capsys.readouterr()
    return folder


class Run:
    """Runs the command and reads its output."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cogwork.cli.main", "module", "run", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def wait_for_line(self, pattern: str) -> str:
        """Return the first line that matches."""
        assert self.process.stdout is not None
        stop = threading.Timer(2 * DEADLINE, self.process.kill)
        stop.start()
        seen = ""
        try:
            for line in self.process.stdout:
                seen += line
                if re.search(pattern, line):
                    return line
        finally:
            stop.cancel()
            stop.join()
        raise AssertionError(f"it ended without {pattern!r}:\n{seen}")

    def wait_for_exit(self) -> tuple[int, str, str]:
        out, err = self.process.communicate(timeout=2 * DEADLINE)
        return self.process.returncode, out, err


@contextlib.contextmanager
def start_run(*arguments: str) -> Iterator[Run]:
    command = Run(*arguments)
    try:
        yield command
    finally:
        if command.process.poll() is None:
            command.process.send_signal(signal.SIGINT)
        command.process.communicate(timeout=2 * DEADLINE)


def test_saved_source_restarts_the_module_and_ctrl_c_ends_everything(demo: Path) -> None:
    port = free_port()
    with start_run(str(demo), "--port", str(port)) as command:
        assert f"demo is running at http://localhost:{port}; " in command.wait_for_line(
            "is running at"
        )
        command.wait_for_line(r"configuration \w+ applied")
        source = demo / "demo" / "motor.py"
        source.write_text(source.read_text().replace("120.0", "60.0"))
        assert "-- demo/motor.py changed; restarting demo" in command.wait_for_line("changed")
        source.write_text("this is no Python at all")
        assert "-- demo/motor.py changed; restarting demo" in command.wait_for_line("changed")
        command.process.send_signal(signal.SIGINT)
        code, _, err = command.wait_for_exit()
    assert (code, err) == (130, "")
    assert not find_servers(demo)


def test_relative_paths_refer_to_the_directory_of_the_configuration(demo: Path) -> None:
    (demo / "picture.png").touch()
    file = demo / "machine.json"
    config = json.loads(file.read_text())
    camera = {"name": "eye", "api": "rdk:component:camera", "model": "image_file"}
    attributes = {"color_image_file_path": "picture.png"}
    config["components"].append({**camera, "attributes": attributes})
    file.write_text(json.dumps(config))
    with start_run(str(demo), "--port", str(free_port())) as command:
        assert "applied" in command.wait_for_line(r"does not exist|configuration \w+ applied")


INSTALLED = """
from cogwork.config.schema.fields import Attributes
from cogwork.graph.name import Api, ModelName
from cogwork.resource.model import Model


async def construct(name, settings, dependencies):
    return object()


model = Model(
    Api.parse("rdk:component:motor"), ModelName.parse("acme:demo:motor"), Attributes, construct
)
"""


async def test_module_that_an_installed_package_hides_is_refused(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in plug_in(tmp_path / "installed", INSTALLED, "x = {module}:model").items():
        monkeypatch.setenv(name, value)
    told = await run_command("module", "run", str(demo), "--port", str(free_port()))
    assert (told.code, told.out) == (2, "")
    assert told.err == (
        "model acme:demo:motor is installed in this Python environment by package tests_plug_in, "
        "so the machine would use that class instead of the module; run: pip uninstall "
        "tests_plug_in\n"
    )


def find_servers(demo: Path) -> list[psutil.Process]:
    """Return the servers that run a file in the home directory beside the demo."""
    found = psutil.process_iter(["cmdline"])
    home = str(demo.parent / "home")
    return [each for each in found if any(home in word for word in each.info["cmdline"] or ())]


def test_machine_follows_changes_of_the_authors_config(demo: Path, tmp_path: Path) -> None:
    config = tmp_path / "mine.json"
    port = free_port()
    network = {"bind_address": f"localhost:{port}"}
    config.write_text(json.dumps({"network": network}))
    with start_run(str(demo), "--config", str(config)) as command:
        assert f"localhost:{port}" in command.wait_for_line("is running at")
        command.wait_for_line(r"applied in .*: 0 ready")
        fake = {"name": "t", "api": "rdk:component:sensor", "model": "fake"}
        config.write_text(json.dumps({"network": network, "components": [fake]}))
        assert str(config) in command.wait_for_line("changed; updating the machine")
        command.wait_for_line(r"applied in .*: 1 ready")
        config.write_text('{"network": {},')
        command.wait_for_line(r"mine.json:1: expected .*; keeping the previous configuration")


def test_second_run_of_a_module_has_a_machine_of_its_own(demo: Path) -> None:
    (demo / "machine.json").unlink()
    with start_run(str(demo), "--port", str(free_port())) as first:
        first.wait_for_line("is running at")
        (file,) = find_config_files(demo)
        before = file.read_text()
        with start_run(str(demo), "--port", str(free_port())) as second:
            second.wait_for_line("is running at")
            assert file.read_text() == before
            assert len(find_config_files(demo)) == len(find_servers(demo)) == 2
        # The next run has the first file again, with the state of its machine.
    with start_run(str(demo), "--port", str(free_port())) as third:
        third.wait_for_line("is running at")
        assert file.read_text() != before


def find_config_files(demo: Path) -> list[Path]:
    return sorted((demo.parent / "home" / "module-run").glob("*.json"))


def test_server_that_cannot_start_is_reported(demo: Path, tmp_path: Path) -> None:
    config = tmp_path / "mine.json"
    config.write_text(
        '{"network": {"bind_address": "256.256.256.256:1", "insecure_without_auth": true}}'
    )
    with start_run(str(demo), "--config", str(config)) as command:
        code, _, err = command.wait_for_exit()
    assert (code, err) == (1, "the server exited with code 1\n")


def test_closed_standard_output_ends_the_command(demo: Path) -> None:
    with start_run(str(demo), "--port", str(free_port())) as command:
        command.wait_for_line("is running at")
        assert len(find_servers(demo)) == 1
        assert command.process.stdout is not None
        command.process.stdout.close()
        (demo / "main.py").touch()
        assert command.process.wait(2 * DEADLINE) == 0
        command.process.stdout = None
    assert not find_servers(demo)


def test_folder_is_loaded_by_its_meta_json(demo: Path) -> None:
    module = load_project(demo)
    assert (module.name, module.executable, module.root) == ("demo", demo / "run.sh", demo)
    assert module.models == ({"api": "rdk:component:motor", "model": "acme:demo:motor"},)
    assert load_project(demo / "run.sh") == module
    (demo / "meta.json").unlink()
    assert load_project(demo) == ModuleProject("demo", demo / "run.sh", demo)
    (demo / "run.sh").unlink()
    assert load_project(demo).executable.suffix == ".sh"


def test_python_file_is_loaded_as_a_module(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "my module.py"
    file.write_text("import sys; print(sys.argv[1:])")
    module = load_project(file)
    assert module.name == "my-module"
    assert module.executable.is_relative_to(home)
    said = subprocess.run([module.executable, "a b", "c"], capture_output=True, check=True)
    assert said.stdout == b"['a b', 'c']\n"


@pytest.mark.usefixtures("home")
def test_invalid_projects_are_refused(
    demo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_and_read_error(path: Path, *arguments: str) -> str:
        assert main(["module", "run", str(path), *arguments]) == 2
        return capsys.readouterr().err

    assert run_and_read_error(tmp_path / "nobody").endswith(
        "create a module with `cogwork module new`\n"
    )
    (tmp_path / "empty").mkdir()
    assert "has no meta.json, run.sh or main.py; pass the file" in run_and_read_error(
        tmp_path / "empty"
    )
    (demo / "run.sh").chmod(0o644)
    assert "run.sh is not executable; run: chmod +x" in run_and_read_error(demo)
    (demo / "meta.json").write_text('{"entrypoint": "gone.sh"}')
    assert 'set "entrypoint" to an existing file' in run_and_read_error(demo)
    (demo / "meta.json").write_text('{"entrypoint":\n run.sh}')
    assert run_and_read_error(demo).startswith(f"{demo / 'meta.json'}:2: ")
    (demo / "meta.json").write_text("[]")
    assert "meta.json is not a JSON object" in run_and_read_error(demo)
    (demo / "meta.json").write_text(
        '{"entrypoint": "main.py", "models": [{"api": "m", "model": "n"}]}'
    )
    (demo / "machine.json").unlink()
    assert '"m" is not an API' in run_and_read_error(demo)
    assert "the file does not exist" in run_and_read_error(
        demo, "--config", str(tmp_path / "none.json")
    )


def write_and_load(machine: DevConfig) -> Any:
    machine.write()
    return json.loads(machine.file.read_text())


def test_config_is_generated_for_the_models(demo: Path) -> None:
    (demo / "machine.json").unlink()
    meta = json.loads((demo / "meta.json").read_text())
    meta["models"] += [
        {"api": "rdk:component:motor", "model": "acme:demo:other"},
        {"api": "rdk:service:vision", "model": "acme:demo:eye"},
    ]
    (demo / "meta.json").write_text(json.dumps(meta))
    machine = DevConfig(load_project(demo), None, None, demo / "dev.json")
    value = write_and_load(machine)
    assert value["modules"] == [{"name": "demo", "executable_path": str(demo / "run.sh")}]
    assert [(each["name"], each["model"]) for each in value["components"]] == [
        ("motor", "acme:demo:motor"),
        ("motor-2", "acme:demo:other"),
    ]
    assert [each["name"] for each in value["services"]] == ["vision"]
    assert value["network"]["bind_address"] == machine.address


def test_config_of_the_author_is_kept(demo: Path, tmp_path: Path) -> None:
    config = tmp_path / "mine.json"
    other = {"name": "other", "executable_path": "/bin/true"}
    mine = {"name": "m", "executable_path": str(demo / "run.sh"), "log_level": "debug"}
    network = {"bind_address": "0.0.0.0:9999"}
    config.write_text(
        "// with a comment\n" + json.dumps({"modules": [mine, other], "network": network})
    )
    machine = DevConfig(load_project(demo), config, None, tmp_path / "dev.json")
    value = write_and_load(machine)
    assert value["modules"] == [other, mine]
    assert value["network"] == network
    assert (machine.module_name, machine.address) == ("m", "localhost:9999")


def test_watcher_reports_only_source_files(demo: Path) -> None:
    (demo / "deep" / "er").mkdir(parents=True)
    looks = PollingWatcher(load_project(demo), demo / "machine.json")
    assert looks.poll_changes() == []
    for name in (".hidden.py", "state.json", "module.log", "data.db"):
        (demo / name).write_text("x")
    for folder in (".venv", "__pycache__", "node_modules"):
        (demo / folder).mkdir()
        (demo / folder / "other.py").write_text("x")
    assert looks.poll_changes() == []
    (demo / "deep" / "er" / "new.py").write_text("x")
    (demo / "demo" / "motor.py").unlink()
    (demo / "machine.json").write_text("{}")
    assert looks.poll_changes() == [
        demo / "deep" / "er" / "new.py",
        demo / "demo" / "motor.py",
        demo / "machine.json",
    ]
    assert looks.poll_changes() == []


@contextlib.asynccontextmanager
async def serve_restart_module(answers: Any) -> AsyncIterator[str]:
    """Serve a RestartModule that calls the function."""
    handler = grpc.unary_unary_rpc_method_handler(
        answers,
        request_deserializer=robot.RestartModuleRequest.FromString,
        response_serializer=robot.RestartModuleResponse.SerializeToString,
    )
    server = grpc.aio.server()
    server.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "viam.robot.v1.RobotService", {"RestartModule": handler}
            ),
        )
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_request_restart_reports_whether_the_machine_restarted_it() -> None:
    asked = []

    async def restart(request: Any, context: Any) -> Any:
        asked.append(request.module_name)
        return robot.RestartModuleResponse()

    async def refuse(request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.NOT_FOUND, "no such module")

    async with serve_restart_module(restart) as address:
        assert await asyncio.to_thread(_request_restart, address, "demo")
    assert asked == ["demo"]
    async with serve_restart_module(refuse) as address:
        assert not await asyncio.to_thread(_request_restart, address, "demo")
    assert not await asyncio.to_thread(_request_restart, address, "demo")
