"""The configuration of the machine that `cogwork module run` starts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cogwork.cli.demo.run import find_free_port
from cogwork.cli.module.project import ModuleProject, NotAModule, read_json_object, state_path
from cogwork.core.files import atomic
from cogwork.core.os_error_text import write_reason
from cogwork.graph.name import Api

_MAX_RUNS = 16
_WILDCARD_HOSTS = ("", "0.0.0.0", "::", "[::]")  # noqa: S104


@contextlib.contextmanager
def reserve_file(module: ModuleProject) -> Iterator[Path]:
    """Yield the file for the machine's configuration, and keep it from other runs of the module.

    The first run always gets the same file, because the server's saved state depends on its path.
    """
    with contextlib.ExitStack() as stack:
        for number in range(1, _MAX_RUNS + 1):
            file = state_path(module.executable, ".json" if number == 1 else f"-{number}.json")
            if _try_lock(file.with_suffix(".lock"), stack):
                yield file
                return
    raise NotAModule(f"{module.name} already runs in {_MAX_RUNS} machines; stop one of them")


def _try_lock(file: Path, stack: contextlib.ExitStack) -> bool:
    """Lock a file until the stack is closed, or return False if another process has locked it."""
    try:
        atomic.make_directory(file.parent)
        lock = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise NotAModule(f"cannot write {file}: {write_reason(error)}") from error
    stack.callback(os.close, lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class DevConfig:
    """The author's configuration, with the module added to it."""

    def __init__(
        self, module: ModuleProject, source: Path | None, port: int | None, file: Path
    ) -> None:
        """`file` is the file that the server reads."""
        self.source = source
        self.file = file
        self._module = module
        self._port = port
        self._chosen_port = 0
        self._bind_address = ""
        self.module_name = module.name
        """The name of the module in the configuration."""

    @property
    def directory(self) -> Path | None:
        """The working directory of the server; None for the current one. Relative paths in the
        author's configuration refer to its directory, but `file` is in another directory."""
        return self.source.parent if self.source is not None else None

    @property
    def address(self) -> str:
        """The address at which this computer reaches the machine."""
        host, _, port = self._bind_address.rpartition(":")
        return f"{'localhost' if host in _WILDCARD_HOSTS else host}:{port}"

    def write(self) -> None:
        """Write the file that the server watches. Call it again when the author's file changes."""
        base = (
            read_json_object(self.source)
            if self.source is not None
            else _default_config(self._module)
        )
        modules = _merge_module(base.get("modules"), self._module)
        self.module_name = str(modules[-1]["name"])
        given = base.get("network")
        network = dict(given) if isinstance(given, dict) else {}
        if self._port is not None or not network.get("bind_address"):
            self._chosen_port = self._chosen_port or find_free_port(self._port)
            network["bind_address"] = f"localhost:{self._chosen_port}"
        self._bind_address = str(network["bind_address"])
        text = json.dumps({**base, "network": network, "modules": modules}, indent=2)
        try:
            atomic.write(self.file, text.encode())
        except OSError as error:
            raise NotAModule(f"cannot write {self.file}: {write_reason(error)}") from error


def find_config(given: str | None, module: ModuleProject) -> Path | None:
    if given is not None:
        return Path(given).absolute()
    beside = module.root / "machine.json"
    return beside if module.includes_subfolders and beside.is_file() else None


def _default_config(module: ModuleProject) -> dict[str, Any]:
    """Return a configuration with one resource per model of the module."""
    config: dict[str, Any] = {}
    for each in module.models:
        api = Api.parse(each["api"])
        entries = config.setdefault(f"{api.kind}s", [])
        count = sum(other["api"] == each["api"] for other in entries)
        name = f"{api.subtype}-{count + 1}" if count else api.subtype
        entries.append({"name": name, **each})
    return config


def _merge_module(listed: Any, module: ModuleProject) -> list[dict[str, Any]]:
    """Append the module's entry. An existing entry of the module keeps its other settings."""
    modules = listed if isinstance(listed, list) else []
    ours: dict[str, Any] = next((each for each in modules if _matches_module(each, module)), {})
    entry = {"name": module.name, **ours, "executable_path": str(module.executable)}
    return [*(each for each in modules if each is not ours), entry]


def _matches_module(entry: Any, module: ModuleProject) -> bool:
    if not isinstance(entry, dict):
        return False
    path = Path(str(entry.get("executable_path", ""))).expanduser()
    return entry.get("name") == module.name or path == module.executable
