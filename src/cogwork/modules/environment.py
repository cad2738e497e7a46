"""With what arguments and variables a module is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_OUR_INTERPRETER = (
    "PYTHONHOME",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "__PYVENV_LAUNCHER__",
)
"""Another interpreter that is told them does not start, or starts with our libraries."""
_FOR_US_ALONE = (
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
)
"""What systemd tells the server: a module that takes it up would speak in our name."""
_SET_BY_US = {
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_VERBOSITY": "NONE",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""What the server sets for itself (server/process.py)."""


@dataclass(frozen=True, slots=True)
class CloudIds:
    """Who the machine is in its cloud, and the key that modules speak to the cloud with."""

    primary_org_id: str = ""
    location_id: str = ""
    machine_fqdn: str = ""
    machine_id: str = ""
    machine_part_id: str = ""
    api_key_id: str = ""
    api_key: str = ""


def module_argv(
    executable: str, address: str, log_level: str | None = None, tcp: bool = False
) -> tuple[str, ...]:
    level = (f"--log-level={log_level}",) if log_level else ()
    return (executable, address, *level, *(("--tcp-mode",) if tcp else ()))


def module_environment(
    base: Mapping[str, str],
    *,
    name: str,
    home: Path,
    data: Path,
    root: Path,
    address: str,
    configured: Mapping[str, str],
    module_id: str = "",
    cloud: CloudIds | None = None,
    tracing: bool = False,
) -> dict[str, str]:
    """The server's own variables, what the module is told of itself, and what is configured."""
    told = {
        "VIAM_HOME": str(home),
        "VIAM_MODULE_DATA": str(data),
        "VIAM_MODULE_NAME": name,
        "VIAM_MODULE_ID": module_id,
        "VIAM_MODULE_ROOT": str(root),
        "VIAM_MODULE_ADDRESS": address,
        "VIAM_MODULE_TRACING": "1" if tracing else "",
        **_cloud(cloud or CloudIds()),
    }
    known = {variable: value for variable, value in told.items() if value}
    return {**_inherited(base), **known, **configured}


def module_data(home: Path, part_id: str, name: str) -> Path:
    """Where a module keeps what it wants to find again. Whoever starts it makes it, 0750."""
    return home / "module-data" / (part_id or "local") / name


def _inherited(base: Mapping[str, str]) -> dict[str, str]:
    environment = dict(base)
    if "PYTHONHOME" in environment:
        # Set by a bundle, and then this is too. Alone, a person set it, who may mean modules.
        environment.pop("PYTHONPATH", None)
    for variable in (*_OUR_INTERPRETER, *_FOR_US_ALONE):
        environment.pop(variable, None)
    for variable, value in _SET_BY_US.items():
        if environment.get(variable) == value:
            del environment[variable]
    # A bundle puts its own libraries first, and keeps here what there was before.
    if (libraries := environment.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


def _cloud(ids: CloudIds) -> dict[str, str]:
    return {
        "VIAM_PRIMARY_ORG_ID": ids.primary_org_id,
        "VIAM_LOCATION_ID": ids.location_id,
        "VIAM_MACHINE_FQDN": ids.machine_fqdn,
        "VIAM_MACHINE_ID": ids.machine_id,
        "VIAM_MACHINE_PART_ID": ids.machine_part_id,
        "VIAM_API_KEY_ID": ids.api_key_id,
        "VIAM_API_KEY": ids.api_key,
    }
