"""The machine's interfaces to its modules, processes, packages and remotes.

They do not depend on what runs them, or how they are reached.
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
    """The state of a module, with the numbers of the public API."""

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
    """Consecutive failures."""
    starts: int
    pid: int | None


class ModuleModel(NamedTuple):
    module: str
    api: Api
    model: ModelName
    is_local: bool


class ModuleHost(Protocol):
    def any_configured(self) -> bool:
        """Return whether any module is configured. Checked with every call."""

    def services(self) -> Mapping[Api, str]:
        """Return the gRPC service of each API that modules provide."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of the services that only modules know, by service."""

    def pending_reason(self) -> str | None:
        """Return why some modules are not ready, which may provide more APIs; None if all are."""

    def restricted_modules(self) -> Collection[str]:
        """Return the modules that may call only their dependencies. Checked with every call."""

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
    """It is being started, or waits until its former process has ended."""
    RUNNING = "running"
    FINISHED = "finished"
    """It ran once and succeeded."""
    UNHEALTHY = "unhealthy"
    """It failed, and is restarted unless it runs only once."""
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
    """It has not begun yet."""
    DOWNLOADING = "downloading"
    UNPACKING = "unpacking"
    READY = "ready"
    FAILED = "failed"
    """It is tried again by itself."""


class PackageStatus(NamedTuple):
    name: str
    type: str
    version: str
    state: PackageState
    since: float
    reason: str
    """Why it is not ready, and what to do; empty if there is nothing to say."""
    done: int
    """Bytes of the archive that have arrived or, while it is unpacked, that are processed."""
    total: int | None
    """Bytes of the archive; None if that is not known."""


class PackageHost(Protocol):
    def statuses(self) -> Iterable[PackageStatus]: ...


class NoPackages:
    def statuses(self) -> Iterable[PackageStatus]:
        return ()


class RemoteHost(Protocol):
    def services(self) -> Mapping[Api, str]:
        """Return the gRPC services of the APIs that only remotes have."""

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        """Return the descriptors of these services, by service."""

    def frames(self) -> Sequence[PlacedFrame]:
        """Return the frames of all remotes: the same sequence until they change."""


class NoRemotes:
    def services(self) -> Mapping[Api, str]:
        return {}

    def descriptor_pools(self) -> Mapping[str, DescriptorPool]:
        return {}

    def frames(self) -> Sequence[PlacedFrame]:
        return ()
