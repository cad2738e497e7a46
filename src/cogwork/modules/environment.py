"""The arguments and environment variables of a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cogwork.config.secrets import is_secret_name
from cogwork.modules.orphans import MARK_VARIABLE

HOME_VARIABLE = "VIAM_HOME"
"""The variable that holds the directory in which the server keeps its files."""
_INTERPRETER_VARIABLES = (
    "PYTHONHOME",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "__PYVENV_LAUNCHER__",
)
"""With these, another interpreter does not start, or starts with our libraries."""
_SYSTEMD_VARIABLES = (
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
)
"""Variables of systemd for the server: a module that used them would act in its name."""
_CREDENTIAL_VARIABLES = ("CREDENTIALS_DIRECTORY",)
"""Withheld in addition to all `COGWORK_` variables with the name of a secret."""
_ESSENTIAL_VARIABLES = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", MARK_VARIABLE})
"""Variables that every module gets, even if the configuration uses them in a secret."""
_SERVER_DEFAULTS = {
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_VERBOSITY": "NONE",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""Variables that the server sets for itself (serving/process.py)."""


@dataclass(frozen=True, slots=True)
class CloudIds:
    """The identity of the machine in its cloud, and the API key for modules."""

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
    withheld: Collection[str] = (),
    clean: bool = False,
) -> dict[str, str]:
    """Merge the server's variables, those of the module protocol, and the configured ones.

    `withheld`: variables that the configuration uses in secrets. `clean`: inherit only essential
    variables from the server.
    """
    protocol = {
        HOME_VARIABLE: str(home),
        "VIAM_MODULE_DATA": str(data),
        "VIAM_MODULE_NAME": name,
        "VIAM_MODULE_ID": module_id,
        "VIAM_MODULE_ROOT": str(root),
        "VIAM_MODULE_ADDRESS": address,
        "VIAM_MODULE_TRACING": "1" if tracing else "",
        **_cloud_variables(cloud or CloudIds()),
    }
    set_variables = {variable: value for variable, value in protocol.items() if value}
    inherited = {
        variable: value
        for variable, value in _filter_inherited(base).items()
        if _is_essential(variable)
        or not (clean or variable in withheld or _is_server_credential(variable))
    }
    return {**inherited, **set_variables, **configured}


def module_data_directory(home: Path, part_id: str, name: str) -> Path:
    """Return the directory for the persistent data of a module; the caller creates it, 0750."""
    return home / "module-data" / (part_id or "local") / name


def _filter_inherited(base: Mapping[str, str]) -> dict[str, str]:
    environment = dict(base)
    if "PYTHONHOME" in environment:
        # A bundled server sets both. PYTHONPATH alone was set by a person, maybe for modules.
        environment.pop("PYTHONPATH", None)
    for variable in (*_INTERPRETER_VARIABLES, *_SYSTEMD_VARIABLES):
        environment.pop(variable, None)
    for variable, value in _SERVER_DEFAULTS.items():
        if environment.get(variable) == value:
            del environment[variable]
    # A bundled server puts its own libraries first, and saves the previous value here.
    if (libraries := environment.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


def _is_essential(variable: str) -> bool:
    return variable in _ESSENTIAL_VARIABLES or variable.startswith("LC_")


def _is_server_credential(variable: str) -> bool:
    return variable in _CREDENTIAL_VARIABLES or (
        variable.startswith("COGWORK_") and is_secret_name(variable)
    )


def _cloud_variables(ids: CloudIds) -> dict[str, str]:
    return {
        "VIAM_PRIMARY_ORG_ID": ids.primary_org_id,
        "VIAM_LOCATION_ID": ids.location_id,
        "VIAM_MACHINE_FQDN": ids.machine_fqdn,
        "VIAM_MACHINE_ID": ids.machine_id,
        "VIAM_MACHINE_PART_ID": ids.machine_part_id,
        "VIAM_API_KEY_ID": ids.api_key_id,
        "VIAM_API_KEY": ids.api_key,
    }
