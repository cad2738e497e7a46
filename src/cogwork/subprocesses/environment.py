"""Environment variables that programs inherit from the server."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cogwork.config.text.secrets import is_secret_name
from cogwork.subprocesses.orphans import MARK_VARIABLE

HOME_VARIABLE = "VIAM_HOME"
"""Variable with the directory in which the server stores its files."""
_INTERPRETER_VARIABLES = (
    "PYTHONHOME",
    "PYTHONEXECUTABLE",
    "PYTHONPLATLIBDIR",
    "__PYVENV_LAUNCHER__",
)
"""Variables that keep another interpreter from starting, or make it load our libraries."""
_SYSTEMD_VARIABLES = (
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "LISTEN_PID",
)
"""Variables of systemd for the server. A program that used them would act as the server."""
_CREDENTIAL_VARIABLES = ("CREDENTIALS_DIRECTORY",)
"""Variables that are withheld, in addition to the `COGWORK_` variables that contain secrets."""
_ESSENTIAL_VARIABLES = frozenset({"PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR", MARK_VARIABLE})
"""Variables that every program inherits, even if the configuration uses them in a secret."""
_SERVER_DEFAULTS = {
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "GRPC_VERBOSITY": "NONE",
    "PYDANTIC_DISABLE_PLUGINS": "__all__",
}
"""Variables that the server sets for itself in serving/process.py."""


def inherited_environment(
    base: Mapping[str, str], *, withheld: Collection[str] = (), clean: bool = False
) -> dict[str, str]:
    """Return the server's variables without its own settings and credentials.

    `withheld`: variables that the configuration uses in secrets. `clean`: return only essential
    variables.
    """
    return {
        variable: value
        for variable, value in _filter_inherited(base).items()
        if _is_essential(variable)
        or not (clean or variable in withheld or _is_server_credential(variable))
    }


def _filter_inherited(base: Mapping[str, str]) -> dict[str, str]:
    environment = dict(base)
    if "PYTHONHOME" in environment:
        # A bundled server sets PYTHONHOME and PYTHONPATH. If only PYTHONPATH is set, the user may
        # have set it for programs.
        environment.pop("PYTHONPATH", None)
    for variable in (*_INTERPRETER_VARIABLES, *_SYSTEMD_VARIABLES):
        environment.pop(variable, None)
    for variable, value in _SERVER_DEFAULTS.items():
        if environment.get(variable) == value:
            del environment[variable]
    # A bundled server puts its own libraries first, and saves the previous value in this variable.
    if (libraries := environment.pop("LD_LIBRARY_PATH_ORIG", None)) is not None:
        environment["LD_LIBRARY_PATH"] = libraries
    return environment


def _is_essential(variable: str) -> bool:
    return variable in _ESSENTIAL_VARIABLES or variable.startswith("LC_")


def _is_server_credential(variable: str) -> bool:
    return variable in _CREDENTIAL_VARIABLES or (
        variable.startswith("COGWORK_") and is_secret_name(variable)
    )
