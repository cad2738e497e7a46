"""The machine that an author tries a module in: its configuration, as the server reads it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cogwork.cli.authored import Module, NotAModule, kept_file, object_in
from cogwork.cli.demo import free_port
from cogwork.core import atomic
from cogwork.graph.name import Api

_EVERY_INTERFACE = ("", "0.0.0.0", "::", "[::]")  # noqa: S104


class Machine:
    """The configuration of the machine: the author's, with the module in it."""

    def __init__(self, module: Module, source: Path | None, port: int | None) -> None:
        self.source = source
        self.file = kept_file(module.executable, ".json")
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
        base = object_in(self.source) if self.source is not None else _made_for(self._module)
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


def config_of(given: str | None, module: Module) -> Path | None:
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
