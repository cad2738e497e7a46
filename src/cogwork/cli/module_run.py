"""`cogwork module run`: a module in a machine, started anew whenever its author saves.

The machine is a child process and the module is one of that: whatever the module does, this
command goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from cogwork.cli.demo import free_port
from cogwork.cli.logs import shown as shown_entry
from cogwork.cli.terminal import FAULTS, FINE, USAGE, complain, orderly_end, paint
from cogwork.config.diagnose import printable
from cogwork.config.file import Unreadable, read_text
from cogwork.config.json_faults import JsonFault
from cogwork.config.json_reader import read
from cogwork.config.positions import position_at
from cogwork.core import atomic
from cogwork.core.errors import CogworkError
from cogwork.core.home import cogwork_home
from cogwork.graph.name import Api

_LOOK_EVERY = 0.25
_QUIET = 0.25
"""Seconds without a change after which whoever saves has finished."""
_ENDING = 30.0
"""Seconds that the server gets to end, with the module."""
_SOURCES = frozenset(
    (
        *(".c", ".cc", ".cpp", ".go", ".h", ".hpp", ".js", ".mjs", ".py", ".rs", ".sh", ".ts"),
        *(".toml", ".yaml", ".yml"),
    )
)
"""What an author saves. What else appears there the module may have written itself."""
_NOT_LOOKED_INTO = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "target"})
_MOST_FILES = 10_000
_EVERY_INTERFACE = ("", "0.0.0.0", "::", "[::]")  # noqa: S104

Signature = tuple[int, int, int, int]
Seen = dict[Path, Signature]


class NotAModule(CogworkError):
    """The path does not lead to something that can be run as a module."""


class ServerEnded(CogworkError):
    """The server of the machine is gone, and nobody asked it to go."""


def run(arguments: argparse.Namespace) -> int:
    try:
        module = module_at(Path(arguments.path))
        machine = Machine(module, _config_of(arguments.config, module), arguments.port)
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


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    executable: Path
    root: Path
    """The folder with all that it is made of."""
    models: tuple[Mapping[str, str], ...] = ()
    """Their `api` and `model`, as far as its meta.json tells."""
    whole_folder: bool = True
    """Whether folders in the folder belong to it, too."""


def module_at(path: Path) -> Module:
    path = path.absolute()
    if path.is_dir():
        return _described(path)
    if not path.is_file():
        raise NotAModule(f"there is no {path}; `cogwork module new` writes a module")
    if (path.parent / "meta.json").is_file():
        described = _described(path.parent)
        if described.executable == path:
            return described
    executable = _executable(path)
    return Module(_as_name(path.stem), executable, path.parent, whole_folder=False)


def _described(folder: Path) -> Module:
    meta = folder / "meta.json"
    if not meta.is_file():
        for name in ("run.sh", "main.py"):
            if (folder / name).is_file():
                return Module(_as_name(folder.name), _executable(folder / name), folder)
        raise NotAModule(f"{folder} has no meta.json, run.sh or main.py: name the file to start")
    told = _object_in(meta)
    entry = told.get("entrypoint")
    if not isinstance(entry, str) or not (folder / entry).is_file():
        raise NotAModule(f'{meta} names no file that is there as "entrypoint": add it')
    listed = told.get("models")
    models = tuple(
        {"api": str(each["api"]), "model": str(each["model"])}
        for each in (listed if isinstance(listed, list) else ())
        if isinstance(each, dict) and {"api", "model"} <= each.keys()
    )
    name = str(told.get("module_id") or folder.name).rpartition(":")[2]
    return Module(_as_name(name), _executable(folder / entry), folder, models)


def _executable(file: Path) -> Path:
    """The file itself; for a Python file that is none, one that starts it."""
    if os.access(file, os.X_OK):
        return file
    if file.suffix != ".py":
        raise NotAModule(f"{file} cannot be executed: chmod +x {shlex.quote(str(file))}")
    starter = _kept(file, ".sh")
    command = shlex.join([sys.executable, str(file)])
    atomic.write(starter, f'#!/bin/sh\nexec {command} "$@"\n'.encode(), 0o700)
    return starter


class Machine:
    """The configuration of the machine: the author's, with the module in it."""

    def __init__(self, module: Module, source: Path | None, port: int | None) -> None:
        self.source = source
        self.file = _kept(module.executable, ".json")
        self._module = module
        self._port = port
        self._free = 0
        self._bound = ""
        self.module_name = module.name
        """As the configuration has it."""

    @property
    def address(self) -> str:
        """Where it is reached from here."""
        host, _, port = self._bound.rpartition(":")
        return f"{'localhost' if host in _EVERY_INTERFACE else host}:{port}"

    def write(self) -> None:
        """Also when the author's file changed: the server looks at this one."""
        base = _object_in(self.source) if self.source is not None else _made_for(self._module)
        modules = _with_module(base.get("modules"), self._module)
        self.module_name = str(modules[-1]["name"])
        given = base.get("network")
        network = dict(given) if isinstance(given, dict) else {}
        if self._port is not None or not network.get("bind_address"):
            self._free = self._free or free_port(self._port)
            network["bind_address"] = f"localhost:{self._free}"
        self._bound = str(network["bind_address"])
        text = json.dumps({**base, "network": network, "modules": modules}, indent=2)
        try:
            atomic.write(self.file, text.encode())
        except OSError as error:
            raise NotAModule(f"{self.file} cannot be written: {error.strerror}") from error


def _config_of(given: str | None, module: Module) -> Path | None:
    if given is not None:
        return Path(given).absolute()
    beside = module.root / "machine.json"
    return beside if module.whole_folder and beside.is_file() else None


def _made_for(module: Module) -> dict[str, Any]:
    """A machine with one resource of each of its models."""
    made: dict[str, Any] = {}
    for each in module.models:
        api = Api.parse(each["api"])
        listed = made.setdefault(f"{api.kind}s", [])
        taken = sum(other["api"] == each["api"] for other in listed)
        name = f"{api.subtype}-{taken + 1}" if taken else api.subtype
        listed.append({"name": name, **each})
    return made


def _with_module(listed: Any, module: Module) -> list[dict[str, Any]]:
    """An entry that is there for it already keeps what else it says. It comes last."""
    modules = listed if isinstance(listed, list) else []
    ours: dict[str, Any] = next((each for each in modules if _is_ours(each, module)), {})
    entry = {"name": module.name, **ours, "executable_path": str(module.executable)}
    return [*(each for each in modules if each is not ours), entry]


def _is_ours(entry: Any, module: Module) -> bool:
    if not isinstance(entry, dict):
        return False
    path = Path(str(entry.get("executable_path", ""))).expanduser()
    return entry.get("name") == module.name or path == module.executable


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


@dataclass
class Looks:
    """Looks at the files instead of waiting for the system's word: the same for every way to save
    and every file system."""

    module: Module
    config: Path | None
    _seen: Seen = field(init=False)

    def __post_init__(self) -> None:
        self._seen = self._look()

    def saved(self) -> list[Path]:
        """What changed, appeared or went since the last time; when it has settled."""
        latest = self._look()
        if latest == self._seen:
            return []
        until = time.monotonic() + 8 * _QUIET
        while time.monotonic() < until:
            time.sleep(_QUIET)
            before, latest = latest, self._look()
            if latest == before:
                break
        seen, self._seen = self._seen, latest
        return sorted(p for p in seen.keys() | latest.keys() if seen.get(p) != latest.get(p))

    def _look(self) -> Seen:
        seen: Seen = {}
        for file in self._files():
            # Between two looks anything may go.
            with contextlib.suppress(OSError):
                seen[file] = _signature(file.stat())
            if len(seen) >= _MOST_FILES:
                break
        return seen

    def _files(self) -> Iterator[Path]:
        if self.config is not None:
            yield self.config
        for folder, inside, names in os.walk(self.module.root):
            inside[:] = [
                name
                for name in inside
                if self.module.whole_folder
                and not name.startswith(".")
                and name not in _NOT_LOOKED_INTO
            ]
            for name in names:
                file = Path(folder, name)
                if file != self.config and self._is_source(file):
                    yield file

    def _is_source(self, file: Path) -> bool:
        return not file.name.startswith(".") and (
            file.suffix in _SOURCES or file.name == "meta.json" or file == self.module.executable
        )


def _signature(status: os.stat_result) -> Signature:
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


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


def _kept(file: Path, suffix: str) -> Path:
    """A file of ours that belongs to one of the author's, the same every time: what the server
    remembers of a machine goes by the path of its file."""
    mark = hashlib.sha256(str(file).encode()).hexdigest()[:8]
    return cogwork_home(os.environ) / "module-run" / f"{_as_name(file.parent.name)}-{mark}{suffix}"


def _as_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text).lstrip("-_") or "module"


def _object_in(file: Path) -> dict[str, Any]:
    try:
        text = read_text(file)
        value = read(text).value
    except Unreadable as error:
        raise NotAModule(f"{file}: {error}") from error
    except JsonFault as error:
        line = position_at(text, error.span.start).line
        raise NotAModule(f"{file}:{line}: {error.message}") from error
    if not isinstance(value, dict):
        raise NotAModule(f"{file} holds no object")
    return value
