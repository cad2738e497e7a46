"""The machine's interfaces to its modules, processes, packages and remotes.

The interfaces do not depend on the code that implements them.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from google.protobuf.descriptor_pool import DescriptorPool

from cogwork.core.errors import NotFound
from cogwork.graph.name import Api, ModelName
from cogwork.robot.placed_frame import PlacedFrame


class ModuleState(enum.IntEnum):
    """The state of a module, with the enum numbers of the public API."""

    PENDING = 1
    STARTING = 2
    READY = 3
    UNHEALTHY = 4
    CLOSING = 5


class ModuleStatus(NamedTuple):
    name: str
    state: ModuleState
    since: float
    error: str
    failures: int
    """Number of consecutive failures."""
    starts: int
    pid: int | None


class ModuleModel(NamedTuple):
    module: str
    api: Api
    model: ModelName
    is_local: bool


class ModuleHost(Protocol):
    def any_configured(self) -> bool:
        """Return whether any module is configured. Called for every request, so it must be fast."""

    def services(self) -> Mapping[Api, str]:
        """Return the gRPC service of each API that modules provide."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of the services that only modules provide, by service."""

    def pending_reason(self) -> str | None:
        """Return why some modules are not ready and may still add APIs; None if all modules are
        ready."""

    def restricted_modules(self) -> Collection[str]:
        """Return the modules that may call only their dependencies. Called for every request, so it
        must be fast."""

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        """Return whether the module runs the resources of this model."""

    def statuses(self) -> Iterable[ModuleStatus]: ...

    def models(self) -> Iterable[ModuleModel]: ...

    def restart(self, name: str, module_id: str) -> None:
        """Restart a module. Raise NotFound if there is no such module."""


class NoModules:
    def any_configured(self) -> bool:
        return False

    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

    def pending_reason(self) -> str | None:
        return None

    def restricted_modules(self) -> Collection[str]:
        return ()

    def provides_model(self, module: str, api: Api, model: ModelName) -> bool:
        del module, api, model
        return False

    def statuses(self) -> Iterable[ModuleStatus]:
        return ()

    def models(self) -> Iterable[ModuleModel]:
        return ()

    def restart(self, name: str, module_id: str) -> None:
        raise NotFound(f"module not found with id={module_id}, name={name}; no modules are running")


class ProcessState(enum.StrEnum):
    PENDING = "pending"
    """The process is starting, or the previous process has not ended yet."""
    RUNNING = "running"
    FINISHED = "finished"
    """The process runs only once, and succeeded."""
    UNHEALTHY = "unhealthy"
    """The process failed. It is restarted unless it runs only once."""
    STOPPING = "stopping"


class ProcessStatus(NamedTuple):
    id: str
    state: ProcessState
    since: float
    error: str
    restarts: int
    pid: int | None


class ProcessHost(Protocol):
    def statuses(self) -> Iterable[ProcessStatus]: ...


class NoProcesses:
    def statuses(self) -> Iterable[ProcessStatus]:
        return ()


class PackageState(enum.StrEnum):
    WAITING = "waiting"
    """The download has not begun."""
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    READY = "ready"
    FAILED = "failed"
    """The download failed and is retried automatically."""


class PackageStatus(NamedTuple):
    name: str
    type: str
    version: str
    state: PackageState
    since: float
    reason: str
    """The reason why the package is not ready, and how to fix it; empty if there is no problem."""
    done: int
    """Archive bytes downloaded so far; during unpacking, archive bytes unpacked so far."""
    total: int | None
    """Size of the archive in bytes; None if unknown."""


class PackageHost(Protocol):
    def statuses(self) -> Iterable[PackageStatus]: ...


class NoPackages:
    def statuses(self) -> Iterable[PackageStatus]:
        return ()


class RemoteHost(Protocol):
    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of the APIs that only remotes provide, by API."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of the services that only remotes provide, by service."""

    def frames(self) -> Sequence[PlacedFrame]:
        """Return the frames of all remotes: the same object until the frames change."""


class NoRemotes:
    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

    def frames(self) -> Sequence[PlacedFrame]:
        return ()
