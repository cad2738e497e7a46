"""`cogwork module run`: run a module in a machine and restart it when its files change.

The server is a child process and the module is a child of the server, so this command survives
a crash of the module.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NoReturn

import psutil

from cogwork.cli.machine.logs import format_entry
from cogwork.cli.module.dev_config import DevConfig, find_config, reserve_file
from cogwork.cli.module.project import ModuleProject, NotAModule, load_project
from cogwork.cli.module.source_watcher import PollingWatcher
from cogwork.cli.terminal import (
    EXIT_FAILURE,
    EXIT_USAGE,
    exit_on_signals,
    paint,
    print_error,
)
from cogwork.config.check.diagnostics import replace_unprintable
from cogwork.core.errors import CogworkError, InvalidName
from cogwork.core.paths import cogwork_home
from cogwork.graph.name import Api, ModelName
from cogwork.resource.registry import installed_packages

_POLL_INTERVAL = 0.25
_STOP_TIMEOUT = 30.0
"""Seconds to wait for the server and the module to exit."""


class ServerEnded(CogworkError):
    """The server exited unexpectedly."""


def run(arguments: argparse.Namespace) -> int:
    try:
        module = load_project(Path(arguments.path))
        _check_not_installed(module)
        with reserve_file(module) as file:
            source = find_config(arguments.config, module)
            _run_in_machine(module, DevConfig(module, source, arguments.port, file))
    except ServerEnded as error:
        print_error(str(error))
        return EXIT_FAILURE
    except CogworkError as error:
        print_error(str(error))
    return EXIT_USAGE


def _run_in_machine(module: ModuleProject, machine: DevConfig) -> NoReturn:
    machine.write()
    title = f"{module.name} is running at http://{machine.address}; press Ctrl-C to stop"
    with exit_on_signals(), DevServer(machine, title) as server:
        _watch(module, machine, server)


def _check_not_installed(module: ModuleProject) -> None:
    """Raise NotAModule if the server would use an installed class instead of the module."""
    packages = installed_packages()
    for each in module.models:
        try:
            model = Api.parse(each["api"]), ModelName.parse(each["model"])
        except InvalidName:
            continue  # the server reports the invalid name
        if model in packages:
            raise NotAModule(
                f"model {each['model']} is installed in this Python environment by package "
                f"{packages[model]}, so the machine would use that class instead of the module; "
                f"run: pip uninstall {packages[model]}"
            )


class DevServer:
    """`cogwork-server` as a child process whose log is printed."""

    def __init__(self, machine: DevConfig, title: str) -> None:
        self.output_closed = False
        """Whether standard output is a broken pipe."""
        self._machine = machine
        self._title = title

    def __enter__(self) -> DevServer:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def restart(self) -> None:
        self._stop()
        self._start()

    def _start(self) -> None:
        file = str(self._machine.file.absolute())
        # Start the server in its own session, so that Ctrl-C reaches only this command, which stops
        # the server.
        self._process = subprocess.Popen(  # noqa: S603 - our own server
            # -P: do not import from the author's directory.
            [sys.executable, "-P", "-m", "cogwork.server.main", "-config", file],
            cwd=self._machine.directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=_server_environment(),
        )
        self._reader = threading.Thread(target=self._print_output, name="server-lines", daemon=True)
        self._reader.start()

    def _print_output(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            try:
                for line in lines:
                    self._print_line(line.decode(errors="replace").rstrip("\n"))
            except BrokenPipeError:
                self.output_closed = True

    def _print_line(self, line: str) -> None:
        if line.startswith("serving\t"):
            print_notice(self._title)
        else:
            print(_format_line(line), flush=True)

    def _stop(self) -> None:
        processes = self._process_tree()
        self._process.terminate()
        # A second Ctrl-C skips the wait.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.wait(_STOP_TIMEOUT)
        for each in processes:
            # Kill the remaining processes. Usually the server has already stopped all of them.
            with contextlib.suppress(psutil.Error):
                each.kill()
        self._process.wait()
        self._reader.join(_STOP_TIMEOUT)

    def _process_tree(self) -> list[psutil.Process]:
        """Return the server and its descendants.

        psutil remembers the start time of each process, so a reused process ID is not mistaken for
        the process.
        """
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(self._process.pid)
            return [server, *server.children(recursive=True)]
        return []


def _watch(module: ModuleProject, machine: DevConfig, server: DevServer) -> NoReturn:
    """Restart the module on changes until Ctrl-C."""
    watcher = PollingWatcher(module, machine.source)
    while True:
        time.sleep(_POLL_INTERVAL)
        if server.exit_code is not None:
            raise ServerEnded(f"the server exited with code {server.exit_code}")
        if server.output_closed:
            raise BrokenPipeError
        changed = watcher.poll_changes()
        if machine.source is not None and machine.source in changed:
            changed.remove(machine.source)
            _update_config(machine)
        if changed:
            names = ", ".join(str(path.relative_to(module.root)) for path in changed[:3])
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            print_notice(f"{names}{more} changed; restarting {module.name}")
            _restart_module(machine, server)


def _update_config(machine: DevConfig) -> None:
    try:
        machine.write()
    except CogworkError as error:
        print(paint(f"{error}; keeping the previous configuration", "red"), flush=True)
    else:
        print_notice(f"{machine.source} changed; updating the machine")


def _restart_module(machine: DevConfig, server: DevServer) -> None:
    """Restart only the module if the machine supports this, or else the whole machine."""
    try:
        accepted = _request_restart(machine.address, machine.module_name)
    except Exception as error:
        print_notice(f"the machine does not respond ({error}); restarting the machine")
        accepted = False
    if not accepted:
        server.restart()


def _request_restart(address: str, name: str) -> bool:
    # gRPC imports slowly, so import it while the server runs.
    import grpc

    from cogwork.cli.client.grpc_client import call_robot
    from cogwork.wire.transports.grpc_options import GRPC_OPTIONS

    robot: Any = importlib.import_module("viam.gen.robot.v1.robot_pb2")
    with grpc.insecure_channel(address, GRPC_OPTIONS) as channel:
        try:
            request = robot.RestartModuleRequest(module_name=name)
            call_robot(channel, "RestartModule", request, robot.RestartModuleResponse)
        except grpc.RpcError as error:
            # If the call exceeds the deadline, the machine is still restarting the module.
            return bool(error.code() is grpc.StatusCode.DEADLINE_EXCEEDED)
    return True


def _server_environment() -> dict[str, str]:
    """Return an environment with this Python first in PATH, and with logs as JSON. The server has
    another working directory, so the path of its data must be absolute."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    home = str(cogwork_home(os.environ).absolute())
    return {**os.environ, "PATH": path, "COGWORK_HOME": home, "COGWORK_LOG_FORMAT": "json"}


def _format_line(line: str) -> str:
    try:
        entry = json.loads(line)
        return format_entry(entry)
    except (ValueError, LookupError, TypeError):
        return replace_unprintable(line)


def print_notice(text: str) -> None:
    print(paint(f"-- {text}", "bold"), flush=True)
