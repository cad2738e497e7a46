"""The arguments and environment variables of a module."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from cogwork.subprocesses.environment import HOME_VARIABLE, inherited_environment


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
    """Merge the variables of the server, of the module protocol, and of the configuration.

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
    inherited = inherited_environment(base, withheld=withheld, clean=clean)
    return {**inherited, **set_variables, **configured}


def module_data_directory(home: Path, part_id: str, name: str) -> Path:
    """Return the directory for the persistent data of a module. The caller creates it with mode
    0750."""
    return home / "module-data" / (part_id or "local") / name


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
