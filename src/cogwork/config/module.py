"""The section `modules`."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from cogwork.config import codes
from cogwork.config.fields import Duration, LevelField, LongNameField, Section, fault


class AppStatus(Section):
    """What the cloud found wrong with a module or a package."""

    error: str | None = None
    """What is wrong. By default nothing is."""


class ModuleLimits(Section):
    """What a module may use at most."""

    memory_mb: Annotated[float, Field(gt=0)] | None = None
    """Megabytes of memory."""
    cpu_cores: Annotated[float, Field(gt=0)] | None = None
    """How many cores of the processor, such as `0.5`, where the server has a control group."""
    open_files: Annotated[int, Field(gt=0)] | None = None
    """How many files and connections it may have open."""
    no_new_privileges: bool = False
    """Whether programs like `sudo` do nothing for it."""


class ModuleConfig(Section):
    """Other people's resources, in a process of their own."""

    name: LongNameField
    """What it is called. The name `parent` is taken."""
    executable_path: str = ""
    """The program to start, or an archive (`.tar.gz`) whose `meta.json` names it. A local module
    needs it."""
    type: Literal["local", "registry"] = "local"
    """Where it comes from: a path on this computer, or the registry."""
    module_id: str = ""
    """Its name in the registry. A registry module needs it."""
    log_level: LevelField | None = None
    """The lowest level that it logs. By default it is that of the machine."""
    env: dict[str, str] = {}
    """Variables to add to its environment."""
    tcp_mode: bool = False
    """Whether to talk to it by TCP instead of a Unix socket."""
    first_run_timeout: Duration = 3600.0
    """How long the first run of a new version may take to set itself up."""
    limits: ModuleLimits | None = None
    """What it may use at most. By default as much as there is."""
    status: AppStatus | None = None
    """What the cloud found wrong with it. The cloud fills it."""

    @model_validator(mode="after")
    def _can_start(self) -> Self:
        if self.name == "parent":
            raise fault(codes.BAD_NAME, 'the name "parent" is kept for the server\'s own socket')
        if self.type == "local" and not self.executable_path:
            raise fault(
                codes.MISSING_FIELD, '"executable_path" is missing: a local module needs it'
            )
        if self.type == "registry" and not self.module_id:
            raise fault(codes.MISSING_FIELD, '"module_id" is missing: a registry module needs it')
        return self
