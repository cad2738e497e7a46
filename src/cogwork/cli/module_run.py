"""`cogwork module run`: a module in a machine, started anew whenever its author saves.

The machine is a child process and the module is one of that: whatever the module does, this
command goes on.
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
from typing import Any

import psutil

from cogwork.cli.authored import Module, module_at
from cogwork.cli.authored_machine import Machine, config_of
from cogwork.cli.logs import shown as shown_entry
from cogwork.cli.saves import Looks
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, orderly_end, paint
from cogwork.config.diagnose import printable
from cogwork.core.errors import CogworkError

_LOOK_EVERY = 0.25
_ENDING = 30.0
"""Seconds that the server gets to end, with the module."""


class ServerEnded(CogworkError):
    """The server of the machine is gone, and nobody asked it to go."""


def run(arguments: argparse.Namespace) -> int:
    try:
        module = module_at(Path(arguments.path))
        machine = Machine(module, config_of(arguments.config, module), arguments.port)
        machine.write()
    except CogworkError as error:
        complain(str(error))
        return USAGE
    try:
        title = f"{module.name} runs at http://{machine.address}; Ctrl-C ends it"
        with orderly_end(), Server(machine.file, title) as server:
            _attend(module, machine, server)
    except ServerEnded as error:
        complain(str(error))
        return FAULTS
    except KeyboardInterrupt:
        print()
    return FINE


class Server:
    """`cogwork-server` as a child, whose lines are shown."""

    def __init__(self, config: Path, title: str) -> None:
        self.unread = False
        """Whether whoever read the lines is gone."""
        self._config = config
        self._title = title

    def __enter__(self) -> Server:
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def again(self) -> None:
        self._stop()
        self._start()

    def _start(self) -> None:
        # Ctrl-C is for this command, which ends the server itself.
        self._process = subprocess.Popen(  # noqa: S603 - our own server
            [sys.executable, "-m", "cogwork.server.main", "-config", str(self._config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=_environment(),
        )
        self._reader = threading.Thread(target=self._show, name="server-lines", daemon=True)
        self._reader.start()

    def _show(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            try:
                for line in lines:
                    self._show_line(line.decode(errors="replace").rstrip("\n"))
            except BrokenPipeError:
                self.unread = True

    def _show_line(self, line: str) -> None:
        if line.startswith("serving\t"):
            say(self._title)
        else:
            print(_readable(line), flush=True)

    def _stop(self) -> None:
        family = self._family()
        self._process.terminate()
        # Whoever presses Ctrl-C twice does not want to wait.
        with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):
            self._process.wait(_ENDING)
        for each in family:
            # Mostly they are gone with the server, which ends them itself.
            with contextlib.suppress(psutil.Error):
                each.kill()
        self._process.wait()
        self._reader.join(_ENDING)

    def _family(self) -> list[psutil.Process]:
        """The server and all that it started. Each knows when it began, so that none is mistaken
        for another that has its number later."""
        with contextlib.suppress(psutil.Error):
            server = psutil.Process(self._process.pid)
            return [server, *server.children(recursive=True)]
        return []


def _attend(module: Module, machine: Machine, server: Server) -> None:
    """Until somebody ends it."""
    looks = Looks(module, machine.source)
    while True:
        time.sleep(_LOOK_EVERY)
        if server.exit_code is not None:
            raise ServerEnded(f"the server ended with exit code {server.exit_code}")
        if server.unread:
            raise BrokenPipeError
        saved = looks.saved()
        if machine.source is not None and machine.source in saved:
            saved.remove(machine.source)
            _change(machine)
        if saved:
            names = ", ".join(str(path.relative_to(module.root)) for path in saved[:3])
            more = f" and {len(saved) - 3} more" if len(saved) > 3 else ""
            say(f"{names}{more} saved: {module.name} is started anew")
            _restart(machine, server)


def _change(machine: Machine) -> None:
    try:
        machine.write()
    except CogworkError as error:
        print(paint(f"{error}; the machine stays as it is", "red"), flush=True)
    else:
        say(f"{machine.source} saved: the machine follows it")


def _restart(machine: Machine, server: Server) -> None:
    """The module alone, where the machine can; otherwise the machine with it."""
    try:
        asked = _restarted(machine.address, machine.module_name)
    except Exception as error:
        say(f"the machine is started anew, because it does not answer: {error}")
        asked = False
    if not asked:
        server.again()


def _restarted(address: str, name: str) -> bool:
    # gRPC takes a moment to import: the server starts meanwhile.
    import grpc

    from cogwork.cli.dial import ask
    from cogwork.wire.grpc import OPTIONS

    robot: Any = importlib.import_module("viam.gen.robot.v1.robot_pb2")
    with grpc.insecure_channel(address, OPTIONS) as channel:
        try:
            request = robot.RestartModuleRequest(module_name=name)
            ask(channel, "RestartModule", request, robot.RestartModuleResponse)
        except grpc.RpcError as error:
            # One that takes long is under way.
            return bool(error.code() is grpc.StatusCode.DEADLINE_EXCEEDED)
    return True


def _environment() -> dict[str, str]:
    """The module finds the Python that this command runs with, and the lines can be read."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, "PATH": path, "COGWORK_LOG_FORMAT": "json"}


def _readable(line: str) -> str:
    try:
        entry = json.loads(line)
        return shown_entry(entry)
    except (ValueError, LookupError, TypeError):
        return printable(line)


def say(text: str) -> None:
    print(paint(f"-- {text}", "bold"), flush=True)
