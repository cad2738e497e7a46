"""The section `modules`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cogwork.config.schema import codes
from cogwork.config.schema.fields import (
    Duration,
    LevelField,
    LongNameField,
    Section,
    UnsetIfZero,
    fault,
)

_NEVER_FORWARDED = frozenset({"authorization", "cookie", "viam-sid"})


def _check_header(value: str) -> str:
    if value in _NEVER_FORWARDED or value.startswith("grpc-"):
        raise fault(codes.BAD_VALUE, f'the header "{value}" is never forwarded to a module')
    return value


Header = Annotated[str, Field(pattern=r"^[a-z0-9_.-]{1,100}$"), AfterValidator(_check_header)]
"""The name of a header, in lower case as in gRPC."""


class AppStatus(Section):
    """The status that the cloud reports for a module or a package."""

    error: str | None = None
    """The error message, if there is an error."""


class ProgramLimits(Section):
    """Resource limits of a module or a process."""

    memory_mb: Annotated[float, Field(gt=0)] | None = None
    """Maximum memory in megabytes."""
    cpu_cores: Annotated[float, Field(gt=0)] | None = None
    """Maximum number of CPU cores, such as `0.5`. Requires a control group for the server."""
    open_files: Annotated[int, Field(gt=0)] | None = None
    """Maximum number of open files and connections."""
    no_new_privileges: bool = False
    """Whether to prevent the program from gaining privileges, such as with `sudo`."""


def run_reloaded(module: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the module's entry, with its development build as the program if `reload_enabled` is
    set."""
    path = module.get("reload_path")
    if module.get("reload_enabled") is not True or not path:
        return module
    return {**module, "type": "local", "executable_path": path}


class ModuleConfig(Section):
    """A program that provides models and runs in its own process."""

    name: LongNameField
    """The name of the module. The name `parent` is reserved."""
    executable_path: str = ""
    """The program to start, or an archive (`.tar.gz`) whose `meta.json` names it, as an absolute
    path. Also required for a registry module, unless the machine has joined a cloud, which fills
    it in."""
    type: Annotated[Literal["local", "registry"], UnsetIfZero()] = "local"
    """The source of the module: a path on this computer, or the registry."""
    module_id: str = ""
    """The ID of the module in the registry. Required for a registry module."""
    version: str = ""
    """The version of a registry module. Only a cloud reads it."""
    reload_enabled: bool = False
    """Whether to run the development build in `reload_path` instead. This works for modules of both
    types."""
    reload_path: str = ""
    """The development build: a program or archive like `executable_path`. Commands such as `module
    reload-local` copy it to this computer."""
    log_level: Annotated[LevelField, UnsetIfZero()] | None = None
    """The lowest level that the module logs. Defaults to the level of the machine."""
    env: dict[str, str] = {}
    """Variables to add to the module's environment."""
    environment: Literal["inherit", "clean"] = "inherit"
    """The environment variables of the server that the module inherits: all except credentials, or
    only `PATH`, `HOME`, `USER`, `LANG`, `LC_*`, `TZ` and `TMPDIR`."""
    username: str = ""
    """The user to run the module as. This requires a server that runs as root, and a program that
    this user can reach. Defaults to the user of the server."""
    access: Literal["machine", "dependencies"] = "machine"
    """The resources that the module may call: every resource of the machine, or only its own
    resources and their dependencies."""
    forward_headers: list[Header] = []
    """Headers of a client's call that are forwarded to the module, besides `opid` and
    `traceparent`. The headers `authorization`, `cookie` and `viam-sid` are never forwarded."""
    tcp_mode: bool = False
    """Whether to use TCP instead of a Unix socket. Any local process can then call the module."""
    first_run_timeout: Duration = 3600.0
    """Maximum duration of the first run of a new version."""
    limits: ProgramLimits | None = None
    """The resource limits of the module. Unlimited by default."""
    disabled: bool = False
    """Whether the module is disabled. Its resources wait."""
    status: AppStatus | None = None
    """The status of the module in the cloud. Filled in by the cloud."""

    @property
    def program_key(self) -> str:
        """The key with the path of the program: `reload_path` or `executable_path`."""
        is_reloaded = self.reload_enabled and self.reload_path
        return "reload_path" if is_reloaded else "executable_path"

    @model_validator(mode="before")
    @classmethod
    def _run_reloaded(cls, value: Any) -> Any:
        return run_reloaded(value) if isinstance(value, dict) else value

    @model_validator(mode="after")
    def _check_startable(self) -> Self:
        if self.name == "parent":
            raise fault(
                codes.BAD_NAME, 'the name "parent" is reserved for the server\'s own socket'
            )
        if self.type == "local" and not self.executable_path:
            raise fault(
                codes.MISSING_FIELD, '"executable_path" is missing; a local module requires it'
            )
        if self.type == "registry" and not self.module_id:
            raise fault(
                codes.MISSING_FIELD, '"module_id" is missing; a registry module requires it'
            )
        return self
